"""Manages the windows of Strands' agents, as a conversation manager."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from types import new_class
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from windowpane.adapters.conversations import Conversations, ManagedCall, boundary
from windowpane.adapters.messages import FrameworkMessage, Message, assistant_message, tool_message
from windowpane.core.events import Usage


def strands_conversation_manager(*, agent: str, model: str, **options: Any) -> Any:
    """Return a conversation manager that manages the window of each agent; the arguments are the manager's.

    Use it in `Agent(..., conversation_manager=...)`. As with Strands' own managers the agent's messages become
    those of the managed window.
    """
    from strands.agent.conversation_manager import ConversationManager

    made = new_class("WindowpaneConversationManager", (ManagerMethods, ConversationManager))
    return made(Conversations(agent=agent, model=model, **options))


class ManagerMethods:
    """The methods of the conversation manager."""

    def __init__(self, conversations: Conversations) -> None:
        super().__init__()
        self.removed_message_count = 0
        self._conversations = conversations
        self._calls: WeakKeyDictionary[Any, ManagedCall] = WeakKeyDictionary()
        """The latest call of each agent."""

    def close(self) -> None:
        """End the sessions of all conversations."""
        self._conversations.close()

    def register_hooks(self, registry: Any, **_: Any) -> None:
        """Register the callbacks around the calls of the model."""
        from strands.hooks import AfterModelCallEvent, BeforeModelCallEvent

        registry.add_callback(BeforeModelCallEvent, self._before_call)
        registry.add_callback(AfterModelCallEvent, self._after_call)

    def apply_management(self, agent: Any, **_: Any) -> None:
        """Do nothing at the end of a run: each call is managed before it is sent."""

    def reduce_context(self, agent: Any, e: Exception | None = None, **_: Any) -> None:
        """Remove content after the provider rejected a call as too large; raises its error if nothing can be."""
        call = self._calls.get(agent)
        if e is None:
            return
        if call is None or not call.conversation.window.on_overflow(e).retry:
            raise e
        self._replace(agent, call.conversation.messages_for(build_messages, read_messages(agent.messages)))

    async def _before_call(self, event: Any) -> None:
        """Put the managed messages in place of the agent's."""
        try:
            call = await asyncio.to_thread(self._prepare, event.agent)
        except Exception as error:  # noqa: BLE001  # the agent then sends its own messages
            self._calls.pop(event.agent, None)
            boundary.log_failure("managing a call of Strands", error)
            return
        self._calls[event.agent] = call
        self._replace(event.agent, call)

    async def _after_call(self, event: Any) -> None:
        """Add the reply with the provider's counts."""
        call = self._calls.get(event.agent)
        if call is not None and event.stop_response is not None:
            with boundary.contain("adding a reply of Strands"):
                (reply,) = read_messages([event.stop_response.message])
                await asyncio.to_thread(call.conversation.end_turn, reply.chat, reply.usage)

    def _prepare(self, agent: Any) -> ManagedCall:
        specs = agent.tool_registry.get_all_tool_specs()
        return self._conversations.prepare(
            read_messages(agent.messages),
            build=build_messages,
            system=agent.system_prompt or "",
            tools=[read_tool(spec) for spec in specs],
            scope=agent.agent_id,
        )

    def _replace(self, agent: Any, call: ManagedCall) -> None:
        added = [Part({"text": call.system}, None)] if call.system else []
        messages = list(joined_messages([*added, *call.messages]))
        self.removed_message_count += max(0, len(agent.messages) - len(messages))
        agent.messages[:] = messages


class Part(NamedTuple):
    """A part of a user message, which may be sent in another one."""

    block: dict[str, Any]
    message: Any
    """The message that it was in; None for a part that was made."""


def read_messages(messages: Sequence[Mapping[str, Any]]) -> list[FrameworkMessage]:
    """Return the messages; each part of a user message is one, since parts are removed one by one."""
    read: list[FrameworkMessage] = []
    names: dict[str, str] = {}
    for message in messages:
        blocks = message["content"]
        if message["role"] == "assistant":
            calls = [block["toolUse"] for block in blocks if "toolUse" in block]
            names.update((call["toolUseId"], call["name"]) for call in calls)
            text = "\n".join(block["text"] for block in blocks if "text" in block)
            chat = assistant_message(text, [(call["toolUseId"], call["name"], call["input"]) for call in calls])
            read.append(FrameworkMessage(chat, (message,), _usage(message)))
        else:
            read += [FrameworkMessage(_chat(block, names), (Part(block, message),)) for block in blocks]
    return read


def _chat(block: Mapping[str, Any], names: Mapping[str, str]) -> Message:
    result = block.get("toolResult")
    if result is None:
        return {"role": "user", "content": block["text"] if "text" in block else [dict(block)]}
    parts = [part.get("text") or str(part.get("json", part)) for part in result["content"]]
    name, failed = names.get(result["toolUseId"], ""), result.get("status") == "error"
    return tool_message(result["toolUseId"], name, "\n".join(parts), is_error=failed)


def _usage(message: Mapping[str, Any]) -> Usage | None:
    usage = message.get("metadata", {}).get("usage")
    if not usage:
        return None
    cached, written = usage.get("cacheReadInputTokens") or 0, usage.get("cacheWriteInputTokens") or 0
    return Usage.of_prompt(usage["inputTokens"], usage["outputTokens"], cached=cached, written=written)


def read_tool(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the definition of a tool."""
    schema = spec["inputSchema"].get("json", spec["inputSchema"])
    return {"name": spec["name"], "description": spec["description"], "parameters": schema}


def build_messages(chat: Message) -> list[Any]:
    """Return a message that the manager wrote or changed."""
    if chat["role"] == "tool":
        status = "error" if chat.get("is_error") else "success"
        content = [{"text": chat["content"]}]
        return [
            Part({"toolResult": {"toolUseId": chat["tool_call_id"], "status": status, "content": content}}, None)
        ]
    text = chat.get("content") or ""
    if chat["role"] != "assistant":
        return [Part(block, None) for block in ([{"text": text}] if isinstance(text, str) else text)]
    calls = [(call["id"], call["function"]) for call in chat.get("tool_calls") or ()]
    uses = [
        {"toolUse": {"toolUseId": call_id, "name": function["name"], "input": json.loads(function["arguments"])}}
        for call_id, function in calls
    ]
    return [{"role": "assistant", "content": [*([{"text": text}] if text else []), *uses]}]


def joined_messages(pieces: Iterable[Any]) -> Iterator[Any]:
    """Yield messages of alternating roles: neighboring parts of the user are one, unchanged where they were."""
    for is_part, group in groupby(pieces, lambda piece: isinstance(piece, Part)):
        parts = list(group)
        if not is_part:
            yield from parts
            continue
        original = parts[0].message
        whole = [part.block for part in parts]
        yield original if original and original["content"] == whole else {"role": "user", "content": whole}
