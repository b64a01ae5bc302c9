"""Repair of message histories whose tool calls and results do not match, in OpenAI's and in Anthropic's shape.

A history from outside may be broken. Results without a call are removed; a call without a result gets a
placeholder result, or is removed with its group. In OpenAI's shape results are messages that follow the assistant
message of their calls. In Anthropic's shape calls and results are parts: an assistant message holds `tool_use`
parts, and the next user message has to start with one `tool_result` for each; a message that holds other content
beside a broken part loses only that part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from windowpane.core.window.boundaries import Message

ABORTED: Final = "[no result: the call was aborted]"
"""Placeholder result of a call without a result."""

Unanswered = Literal["answer", "drop"]
"""Repair of a call without a result: add a placeholder result, or remove its whole group."""


@dataclass(frozen=True, slots=True)
class Repaired:
    """A history that can be sent, and the repairs of it."""

    messages: list[dict[str, Any]]
    repairs: dict[str, int] = field(default_factory=dict)
    """Number of repairs by name; empty for a complete history."""


def call_ids(message: Message) -> list[str]:
    """Return the ids of the tool calls of an assistant message, without empty ids."""
    calls = message.get("tool_calls") or ()
    return [call["id"] for call in calls if isinstance(call, Mapping) and call.get("id")]


def repair(messages: Sequence[Message], *, unanswered: Unanswered = "answer") -> Repaired:
    """Return the history with one result directly after every tool call, and no result without its call.

    Results may follow their call in any order, also after a later assistant message of the same run of tools.
    Of several results to one call the first wins. An id used again in a later group is another call.
    """
    repairer = _Repairer(unanswered)
    run: list[Message] = []
    for message in messages:
        role = message.get("role")
        if role == "tool" or (role == "assistant" and call_ids(message)):
            run.append(message)
            continue
        repairer.settle(run)
        run = []
        repairer.messages.append(dict(message))
    repairer.settle(run)
    return Repaired(repairer.messages, repairer.repairs)


class _Repairer:
    """Repairs one run of tool calls and results after the other."""

    def __init__(self, unanswered: Unanswered) -> None:
        self.messages: list[dict[str, Any]] = []
        self.repairs: dict[str, int] = {}
        self._unanswered = unanswered

    def count(self, repair_name: str) -> None:
        self.repairs[repair_name] = self.repairs.get(repair_name, 0) + 1

    def settle(self, run: Sequence[Message]) -> None:
        """Add the run with one result after every call, in the order of the calls."""
        open_calls: list[tuple[Message, dict[str, Message | None]]] = []
        for message in run:
            if message.get("role") == "assistant":
                open_calls.append((message, dict.fromkeys(call_ids(message))))
                continue
            self._assign(message, open_calls)
        for message, answers in open_calls:
            self._emit(message, answers)

    def _assign(self, result: Message, open_calls: list[tuple[Message, dict[str, Message | None]]]) -> None:
        call_id = result.get("tool_call_id")
        owners = [answers for _, answers in open_calls if call_id and call_id in answers]
        if not owners:
            self.count("orphan_result")
            return
        for answers in reversed(owners):  # an id in use twice: the result belongs to the latest call
            if answers[call_id] is None:  # type: ignore[index]  # owners exist only for an id
                answers[call_id] = result  # type: ignore[index]
                return
        self.count("duplicate_result")

    def _emit(self, message: Message, answers: dict[str, Message | None]) -> None:
        missing = [call_id for call_id, result in answers.items() if result is None]
        if missing and self._unanswered == "drop":
            self.count("dropped_call")
            if message.get("content"):
                self.messages.append({key: value for key, value in message.items() if key != "tool_calls"})
            return
        self.messages.append(dict(message))
        for call_id, result in answers.items():
            if result is None:
                self.count("aborted_result")
            answer = result or {"role": "tool", "tool_call_id": call_id, "content": ABORTED}
            self.messages.append(dict(answer))


_RESULT: Final = "tool_result"
_CALL: Final = "tool_use"


def repair_parts(messages: Sequence[Message], *, unanswered: Unanswered = "answer") -> Repaired:
    """Return the history with one `tool_result` for every `tool_use`, and no result without its call.

    Of two results to one call the first wins. A call without a result gets a placeholder result or is removed.
    Messages without remaining content are removed.
    """
    repaired: list[dict[str, Any]] = []
    repairs: dict[str, int] = {}
    waiting: list[str] = []
    for message in messages:
        parts = _parts(message)
        if message.get("role") == "user":
            parts = _answered(parts, waiting, repairs, unanswered)
            if unanswered == "drop":
                _drop_calls(repaired, waiting, parts, repairs)
        elif waiting:
            _close(repaired, waiting, repairs, unanswered)
        waiting = [str(part["id"]) for part in parts if part.get("type") == _CALL and part.get("id")]
        if parts:
            repaired.append({**message, "content": parts})
    _close(repaired, waiting, repairs, unanswered)
    return Repaired([message for message in repaired if message["content"]], repairs)


def _parts(message: Message) -> list[Mapping[str, Any]]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return list(content or ())


def _answered(
    parts: Sequence[Mapping[str, Any]], waiting: Sequence[str], repairs: dict[str, int], unanswered: Unanswered
) -> list[Mapping[str, Any]]:
    """Return the parts of a user message: results of the waiting calls in their order, then the rest."""
    results: dict[str, Mapping[str, Any]] = {}
    for part in parts:
        if part.get("type") != _RESULT:
            continue
        call_id = str(part.get("tool_use_id") or "")
        if call_id not in waiting:
            _count(repairs, "orphan_result")
        elif call_id in results:
            _count(repairs, "duplicate_result")
        else:
            results[call_id] = part
    if unanswered == "answer":
        for call_id in waiting:
            if call_id not in results:
                _count(repairs, "aborted_result")
                results[call_id] = _aborted(call_id)
    ordered = [results[call_id] for call_id in waiting if call_id in results]
    return [*ordered, *(part for part in parts if part.get("type") != _RESULT)]


def _close(
    repaired: list[dict[str, Any]], waiting: Sequence[str], repairs: dict[str, int], unanswered: Unanswered
) -> None:
    """Repair calls without a following user message."""
    if not waiting:
        return
    if unanswered == "drop":
        _drop_calls(repaired, waiting, (), repairs)
        return
    for _ in waiting:
        _count(repairs, "aborted_result")
    repaired.append({"role": "user", "content": [_aborted(call_id) for call_id in waiting]})


def _drop_calls(
    repaired: list[dict[str, Any]],
    waiting: Sequence[str],
    answers: Sequence[Mapping[str, Any]],
    repairs: dict[str, int],
) -> None:
    """Remove the calls without a result from their message."""
    answered = {part.get("tool_use_id") for part in answers if part.get("type") == _RESULT}
    missing = {call_id for call_id in waiting if call_id not in answered}
    if not missing:
        return
    for _ in missing:
        _count(repairs, "dropped_call")
    last = repaired[-1]
    last["content"] = [
        part for part in last["content"] if part.get("type") != _CALL or part.get("id") not in missing
    ]


def _aborted(call_id: str) -> dict[str, Any]:
    return {"type": _RESULT, "tool_use_id": call_id, "content": ABORTED}


def _count(repairs: dict[str, int], name: str) -> None:
    repairs[name] = repairs.get(name, 0) + 1
