"""Conversations that started elsewhere, in the shape of OpenAI's chat API or of Anthropic's messages.

Where calls and results do not match, the history is repaired: the message is removed, or the call is answered by
a placeholder result. Each repair is counted and reported. Calls at the very end that have no result yet are not
broken: the agent continues with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from windowpane.core.events import HistoryRepaired
from windowpane.core.window.repair import Repaired, Unanswered, call_ids, repair, repair_parts
from windowpane.effects.commands import Effect
from windowpane.exceptions import ConfigurationError
from windowpane.manager.content import add_reply, add_user, returned_reply
from windowpane.manager.engine import Engine
from windowpane.manager.tool_results import add_tool_result
from windowpane.models.wire.messages import as_dict

Message = dict[str, Any]

_PENDING: Final = "\0pending"
"""Placeholder, during the repair, of results that have not come yet."""
_SYSTEM_ROLES: Final = ("system", "developer")
_ROLES: Final = (*_SYSTEM_ROLES, "user", "assistant", "tool")


def add_history(engine: Engine, messages: Iterable[object], *, unanswered: Unanswered) -> Effect[dict[str, int]]:
    """Add the messages to the window and return the repairs by kind. Raises `ConfigurationError` when called."""
    if unanswered not in ("answer", "drop"):
        raise ConfigurationError("unanswered", f"{unanswered!r}", expected="answer or drop")
    return _add_all(engine, messages, unanswered=unanswered)


def _add_all(engine: Engine, messages: Iterable[object], *, unanswered: Unanswered) -> Effect[dict[str, int]]:
    repaired = repair_history([as_dict(message) for message in messages], unanswered=unanswered)
    for name, count in repaired.repairs.items():
        engine.tracker.record(HistoryRepaired(name, count))
    for message in repaired.messages:
        yield from _add(engine, message)
    return repaired.repairs


def repair_history(messages: list[Message], *, unanswered: Unanswered) -> Repaired:
    """Return the history with every call answered, except at its open end, and no result without its call."""
    readable = [message for message in messages if message.get("role") in _ROLES]
    in_parts = any(_parts(message, "tool_use", "tool_result") for message in readable)
    system = [message for message in readable if message["role"] in _SYSTEM_ROLES]
    if in_parts:
        conversation = [message for message in readable if message["role"] not in _SYSTEM_ROLES]
        whole = _with_pending_parts(conversation)
        repaired = repair_parts(whole, unanswered=unanswered)
        retained = [*system, *filter(None, map(_without_pending, repaired.messages))]
    else:
        repaired = repair([*readable, *_pending(readable)], unanswered=unanswered)
        retained = [message for message in repaired.messages if message.get("content") != _PENDING]
    repairs = dict(repaired.repairs)
    if len(readable) < len(messages):
        repairs["unreadable_message"] = len(messages) - len(readable)
    return Repaired(retained, repairs)


def _add(engine: Engine, message: Mapping[str, Any]) -> Effect[None]:
    role, content = message["role"], message.get("content")
    if role in _SYSTEM_ROLES:
        engine.add("system_prompt", _text(content))
    elif role == "assistant":
        add_reply(engine, returned_reply(message).parts)
    elif role == "tool":
        yield from add_tool_result(
            engine, str(message.get("name") or ""), content or "", message.get("tool_call_id")
        )
    elif content:
        yield from add_user(engine, content)


def _pending(messages: list[Message]) -> list[Message]:
    """Return a placeholder result for each call at the open end of a history."""
    last = next((at for at in range(len(messages) - 1, -1, -1) if messages[at]["role"] != "tool"), None)
    if last is None or messages[last]["role"] != "assistant":
        return []
    answered = {message.get("tool_call_id") for message in messages[last + 1 :]}
    open_ids = [call_id for call_id in call_ids(messages[last]) if call_id not in answered]
    return [{"role": "tool", "tool_call_id": call_id, "content": _PENDING} for call_id in open_ids]


def _with_pending_parts(messages: list[Message]) -> list[Message]:
    """Return the history with a result for each call at its open end: the last reply, or only results of it."""
    last = len(messages) - 1
    if last > 0 and messages[last]["role"] == "user" and _only_results(messages[last]):
        last -= 1
    if last < 0 or messages[last]["role"] != "assistant":
        return messages
    answered = {
        part.get("tool_use_id") for message in messages[last + 1 :] for part in _parts(message, "tool_result")
    }
    pending = [
        {"type": "tool_result", "tool_use_id": part["id"], "content": _PENDING}
        for part in _parts(messages[last], "tool_use")
        if part.get("id") and part["id"] not in answered
    ]
    results = [part for message in messages[last + 1 :] for part in message["content"]]
    if not pending:
        return messages
    return [*messages[: last + 1], {"role": "user", "content": [*results, *pending]}]


def _without_pending(message: Message) -> Message | None:
    """Return the message without placeholder results; None if nothing else is in it."""
    if message["role"] != "user":
        return message
    parts = [part for part in message["content"] if part.get("content") != _PENDING]
    return {**message, "content": parts} if parts else None


def _only_results(message: Message) -> bool:
    content = message.get("content")
    return (
        isinstance(content, list | tuple) and bool(content) and all(_is(part, "tool_result") for part in content)
    )


def _parts(message: Mapping[str, Any], *kinds: str) -> list[Mapping[str, Any]]:
    content = message.get("content")
    return [part for part in content if _is(part, *kinds)] if isinstance(content, list | tuple) else []


def _is(part: object, *kinds: str) -> bool:
    return isinstance(part, Mapping) and part.get("type") in kinds


def _text(content: object) -> str:
    if isinstance(content, list | tuple):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return str(content or "")
