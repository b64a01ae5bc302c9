"""Groups of messages, and the repair of histories whose tool calls and results do not match.

A group is an assistant message with tool calls and all their results, or any other single message. It enters
and leaves whole. A history from outside may be broken: results without a call are removed, calls without a
result are answered by a marked stand-in or removed with what was answered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from windowpane.core.window.boundaries import Message

ABORTED: Final = "[no result: the call was aborted]"
"""What a call without a result is answered with."""

Unanswered = Literal["answer", "drop"]
"""What becomes of a call without a result: a stand-in answers it, or its whole group is removed."""


@dataclass(frozen=True, slots=True)
class Repaired:
    """A history that can be sent, and what was done to it."""

    messages: list[dict[str, Any]]
    repairs: dict[str, int] = field(default_factory=dict)
    """How often each repair was made; empty for a history that was whole."""


def groups(messages: Sequence[Message]) -> list[range]:
    """The groups of a valid history, as ranges of indices that cover it."""
    found: list[range] = []
    start = 0
    for index in range(1, len(messages) + 1):
        if index == len(messages) or messages[index].get("role") != "tool":
            found.append(range(start, index))
            start = index
    return found if messages else []


def call_ids(message: Message) -> list[str]:
    """Ids of the tool calls of an assistant message; empty ids are left out."""
    calls = message.get("tool_calls") or ()
    return [call["id"] for call in calls if isinstance(call, Mapping) and call.get("id")]


def repair(
    messages: Sequence[Message], *, unanswered: Unanswered = "answer", leading_calls: bool = True
) -> Repaired:
    """The history with every tool call answered once, directly after it, and no result without its call.

    Results may follow their call in any order, also behind a later assistant message of the same run of tools.
    Of several results to one call the first wins. An id used again in a later group is another call. Without
    *leading_calls*, tool calls before the first user message are removed with their results.
    """
    mender = _Mender(unanswered)
    seen_user = leading_calls
    run: list[Message] = []
    for message in messages:
        role = message.get("role")
        seen_user = seen_user or role == "user"
        if role == "assistant" and call_ids(message) and not seen_user:
            mender.count("leading_call")
            continue
        if role == "tool" or (role == "assistant" and call_ids(message)):
            run.append(message)
            continue
        mender.settle(run)
        run = []
        mender.messages.append(dict(message))
    mender.settle(run)
    return Repaired(mender.messages, mender.repairs)


class _Mender:
    """Mends one run of tool calls and results after the other."""

    def __init__(self, unanswered: Unanswered) -> None:
        self.messages: list[dict[str, Any]] = []
        self.repairs: dict[str, int] = {}
        self._unanswered = unanswered

    def count(self, repair_name: str) -> None:
        self.repairs[repair_name] = self.repairs.get(repair_name, 0) + 1

    def settle(self, run: Sequence[Message]) -> None:
        """Give every call of the run its result, in the order of the calls."""
        open_calls: list[tuple[Message, dict[str, Message | None]]] = []
        for message in run:
            if message.get("role") == "assistant":
                open_calls.append((message, dict.fromkeys(call_ids(message))))
                continue
            self._place(message, open_calls)
        for message, answers in open_calls:
            self._emit(message, answers)

    def _place(self, result: Message, open_calls: list[tuple[Message, dict[str, Message | None]]]) -> None:
        call_id = result.get("tool_call_id")
        owners = [answers for _, answers in open_calls if call_id and call_id in answers]
        if not owners:
            self.count("orphan_result")
            return
        for answers in owners:
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
