"""Manages the windows of LangChain's agents, as a middleware."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import new_class
from typing import Any

from windowpane.agents.frameworks.conversations import Conversations, ManagedCall, boundary
from windowpane.agents.frameworks.messages import (
    FrameworkMessage,
    Message,
    assistant_message,
    text_of,
    tool_message,
)
from windowpane.models.wire.usage import LANGCHAIN


def langchain_middleware(*, agent: str, model: str, **options: Any) -> Any:
    """Return a middleware that manages the window of each conversation; the arguments are the manager's.

    Use it in `create_agent(..., middleware=[langchain_middleware(agent="reviewer", model="gpt-5")])`. The state
    of the agent keeps every message: the managed window is what the model is sent.
    """
    from langchain.agents.middleware import AgentMiddleware

    made = new_class("WindowpaneMiddleware", (MiddlewareMethods, AgentMiddleware))
    return made(Conversations(agent=agent, model=model, **options))


class MiddlewareMethods:
    """The methods of the middleware."""

    def __init__(self, conversations: Conversations) -> None:
        super().__init__()
        self._conversations = conversations

    def close(self) -> None:
        """End the sessions of all conversations."""
        self._conversations.close()

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Send the managed window, and a smaller one if the provider rejects it as too large."""
        call = self._prepare(request)
        try:
            response = handler(_managed(request, call))
        except Exception as error:
            smaller = _after_overflow(request, call, error)
            if smaller is None:
                raise
            response = handler(smaller)
        _end_turn(call, response)
        return response

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """Await `wrap_model_call`; the engine runs on a thread."""
        call = await asyncio.to_thread(self._prepare, request)
        try:
            response = await handler(_managed(request, call))
        except Exception as error:
            smaller = await asyncio.to_thread(_after_overflow, request, call, error)
            if smaller is None:
                raise
            response = await handler(smaller)
        await asyncio.to_thread(_end_turn, call, response)
        return response

    def _prepare(self, request: Any) -> ManagedCall | None:
        try:
            from langchain_core.utils.function_calling import convert_to_openai_tool

            return self._conversations.prepare(
                [_read(message) for message in request.messages],
                build=_build,
                system="" if request.system_message is None else text_of(request.system_message.content),
                scope=_thread(),
                tools=[convert_to_openai_tool(tool) for tool in request.tools],
            )
        except Exception as error:  # noqa: BLE001  # the agent then sends its own messages
            boundary.log_failure("managing a call of LangChain", error)
            return None


def _managed(request: Any, call: ManagedCall | None) -> Any:
    if call is None:
        return request
    from langchain_core.messages import SystemMessage

    if not call.system:
        return request.override(messages=call.messages)
    system = "\n\n".join(filter(None, (request.system_prompt, call.system)))
    return request.override(messages=call.messages, system_message=SystemMessage(system))


def _after_overflow(request: Any, call: ManagedCall | None, error: Exception) -> Any:
    """Return the request with less content; None if that is not the error or nothing can be removed."""
    if call is None or not call.conversation.window.on_overflow(error).retry:
        return None
    passed = [_read(message) for message in request.messages]
    return _managed(request, call.conversation.messages_for(_build, passed))


def _end_turn(call: ManagedCall | None, response: Any) -> None:
    if call is None:
        return
    with boundary.contain("adding a reply of LangChain"):
        reply = next(message for message in response.result if message.type == "ai")
        read = _read(reply)
        call.conversation.end_turn(read.chat, read.usage)


def _read(message: Any) -> FrameworkMessage:
    match message.type:
        case "ai":
            calls = [(call["id"], call["name"], call["args"]) for call in message.tool_calls]
            return FrameworkMessage(
                assistant_message(message.text, calls), (message,), LANGCHAIN.read(message.usage_metadata)
            )
        case "tool":
            name, text, failed = message.name or "", text_of(message.content), message.status == "error"
            return FrameworkMessage(tool_message(message.tool_call_id, name, text, is_error=failed), (message,))
        case "system":
            return FrameworkMessage({"role": "system", "content": text_of(message.content)}, (message,))
    return FrameworkMessage({"role": "user", "content": message.content}, (message,))


def _thread() -> str:
    """Return the id of the thread that the graph runs in; empty without a checkpointer."""
    from langgraph.config import get_config

    return str(get_config().get("configurable", {}).get("thread_id") or "")


def _build(chat: Message) -> list[Any]:
    from langchain_core.messages import convert_to_messages

    return list(convert_to_messages([chat]))
