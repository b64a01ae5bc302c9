"""Manages the windows of the OpenAI Agents SDK, as an input filter of the run."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from dataclasses import replace
from types import new_class
from typing import Any, Final

from windowpane.agents.frameworks.conversations import Conversation, Conversations, ManagedCall, boundary
from windowpane.agents.frameworks.messages import (
    FrameworkMessage,
    Message,
    assistant_message,
    text_of,
    tool_message,
)
from windowpane.models.wire.usage import read_usage

_REPLY_ITEMS: Final = ("message", "function_call", "reasoning")
_current: Final[ContextVar[Conversation | None]] = ContextVar("windowpane_conversation", default=None)
"""The conversation whose call is under way in this run."""


def agents_input_filter(*, agent: str, model: str, **options: Any) -> Any:
    """Return an input filter that manages the windows of a run's agents; the arguments are the manager's.

    Use it in `RunConfig(call_model_input_filter=managed)`, and pass it as `hooks=managed` too: then the counts of
    the provider are used, and an agent that is handed the conversation gets a child session. Sessions have the
    names of their agents.
    """
    from agents import RunHooks

    made = new_class("WindowpaneInputFilter", (FilterMethods, RunHooks[Any]))
    return made(Conversations(agent=agent, model=model, **options))


class FilterMethods:
    """The filter, and the hooks of a run that add to it."""

    def __init__(self, conversations: Conversations) -> None:
        self._conversations = conversations
        self._parents: dict[str, Conversation] = {}
        """Names of agents that were handed a conversation, and the conversation."""

    def close(self) -> None:
        """End the sessions of all conversations."""
        self._conversations.close()

    async def __call__(self, data: Any) -> Any:
        """Return the managed input of a call."""
        _current.set(None)
        try:
            call = await asyncio.to_thread(self._prepare, data)
        except Exception as error:  # noqa: BLE001  # the agent then sends its own input
            boundary.log_failure("managing a call of the Agents SDK", error)
            return data.model_data
        _current.set(call.conversation)
        instructions = data.model_data.instructions
        if call.system:
            instructions = "\n\n".join(filter(None, (instructions, call.system)))
        return replace(data.model_data, input=call.messages, instructions=instructions)

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        """Add the reply with the provider's counts."""
        del context, agent
        conversation = _current.get()
        if conversation is not None:
            with boundary.contain("adding a reply of the Agents SDK"):
                (reply,) = _read(response.to_input_items())
                await asyncio.to_thread(conversation.end_turn, reply.chat, read_usage(response.usage))

    async def on_handoff(self, context: Any, from_agent: Any, to_agent: Any) -> None:
        """Make the session that *to_agent* starts next a child of this one."""
        del context, from_agent
        conversation = _current.get()
        if conversation is not None:
            self._parents[to_agent.name] = conversation

    def _prepare(self, data: Any) -> ManagedCall:
        name = data.agent.name
        return self._conversations.prepare(
            _read(data.model_data.input),
            build=_build,
            system=data.model_data.instructions or "",
            tools=[_tool(tool) for tool in data.agent.tools],
            scope=name,
            agent=name,
            parent=self._parents.pop(name, None),
        )


def _read(items: Iterable[Mapping[str, Any]]) -> list[FrameworkMessage]:
    """Return the messages of a list of items; neighboring items of the model are one reply."""
    messages: list[FrameworkMessage] = []
    reply: list[Mapping[str, Any]] = []
    names: dict[str, str] = {}
    for item in items:
        if _is_reply(item):
            reply.append(item)
            if item.get("type") == "function_call":
                names[item["call_id"]] = item["name"]
            continue
        messages += _reply(reply)
        reply = []
        messages.append(FrameworkMessage(_chat(item, names), (item,)))
    return [*messages, *_reply(reply)]


def _is_reply(item: Mapping[str, Any]) -> bool:
    return item.get("role") == "assistant" or (
        "role" not in item and not str(item.get("type")).endswith("_output")
    )


def _reply(items: list[Mapping[str, Any]]) -> list[FrameworkMessage]:
    if not items:
        return []
    for kind in {str(item.get("type", "message")) for item in items} - {*_REPLY_ITEMS}:
        boundary.warn_once(kind, "items of type %s are passed on unchanged, and not counted", kind)
    text = "\n".join(text_of(item.get("content")) for item in items if item.get("role") == "assistant")
    functions = [item for item in items if item.get("type") == "function_call"]
    calls = [(item["call_id"], item["name"], item["arguments"]) for item in functions]
    return [FrameworkMessage(assistant_message(text, calls), tuple(items))]


def _chat(item: Mapping[str, Any], names: Mapping[str, str]) -> Message:
    if "role" not in item:
        call_id = item.get("call_id", "")
        return tool_message(call_id, names.get(call_id, ""), text_of(item.get("output")))
    if item["role"] in ("system", "developer"):
        return {"role": "system", "content": text_of(item["content"])}
    return {"role": "user", "content": item["content"]}


def _tool(tool: Any) -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool.name,
        "description": getattr(tool, "description", ""),
        "parameters": getattr(tool, "params_json_schema", {}),
    }


def _build(chat: Message) -> list[Any]:
    if chat["role"] == "tool":
        return [{"type": "function_call_output", "call_id": chat["tool_call_id"], "output": chat["content"]}]
    text = [{"role": chat["role"], "content": text_of(chat["content"])}] if chat.get("content") else []
    calls = chat.get("tool_calls") or ()
    return [*text, *({"type": "function_call", "call_id": call["id"], **call["function"]} for call in calls)]
