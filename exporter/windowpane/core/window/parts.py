"""Repair of histories in Anthropic's shape, where calls and results are parts of messages.

An assistant message holds `tool_use` parts, and the next message, the user's, has to begin with one `tool_result`
for each. A message that holds other content beside a broken part loses only that part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from windowpane.core.window.boundaries import Message
from windowpane.core.window.groups import ABORTED, Repaired, Unanswered

_RESULT: Final = "tool_result"
_CALL: Final = "tool_use"


def repair_parts(messages: Sequence[Message], *, unanswered: Unanswered = "answer") -> Repaired:
    """The history with every `tool_use` answered once in the message after it, and no result without its call.

    Of two results to one call the first wins. A call without a result gets a marked stand-in, or is removed with
    what its message answers otherwise. A message left without content goes.
    """
    mended: list[dict[str, Any]] = []
    repairs: dict[str, int] = {}
    waiting: list[str] = []
    for message in messages:
        parts = _parts(message)
        if message.get("role") == "user":
            parts = _answered(parts, waiting, repairs, unanswered)
            if unanswered == "drop":
                _drop_calls(mended, waiting, parts, repairs)
        elif waiting:
            _close(mended, waiting, repairs, unanswered)
        waiting = [str(part["id"]) for part in parts if part.get("type") == _CALL and part.get("id")]
        if parts:
            mended.append({**message, "content": parts})
    _close(mended, waiting, repairs, unanswered)
    return Repaired([message for message in mended if message["content"]], repairs)


def _parts(message: Message) -> list[Mapping[str, Any]]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return list(content or ())


def _answered(
    parts: Sequence[Mapping[str, Any]], waiting: Sequence[str], repairs: dict[str, int], unanswered: Unanswered
) -> list[Mapping[str, Any]]:
    """The parts of a user message: results of the calls that wait first, in their order, then the rest."""
    found: dict[str, Mapping[str, Any]] = {}
    for part in parts:
        if part.get("type") != _RESULT:
            continue
        call_id = str(part.get("tool_use_id") or "")
        if call_id not in waiting:
            _count(repairs, "orphan_result")
        elif call_id in found:
            _count(repairs, "duplicate_result")
        else:
            found[call_id] = part
    if unanswered == "answer":
        for call_id in waiting:
            if call_id not in found:
                _count(repairs, "aborted_result")
                found[call_id] = _aborted(call_id)
    results = [found[call_id] for call_id in waiting if call_id in found]
    return [*results, *(part for part in parts if part.get("type") != _RESULT)]


def _close(
    mended: list[dict[str, Any]], waiting: Sequence[str], repairs: dict[str, int], unanswered: Unanswered
) -> None:
    """Calls that no user message follows."""
    if not waiting:
        return
    if unanswered == "drop":
        _drop_calls(mended, waiting, (), repairs)
        return
    for _ in waiting:
        _count(repairs, "aborted_result")
    mended.append({"role": "user", "content": [_aborted(call_id) for call_id in waiting]})


def _drop_calls(
    mended: list[dict[str, Any]],
    waiting: Sequence[str],
    answers: Sequence[Mapping[str, Any]],
    repairs: dict[str, int],
) -> None:
    """Take the calls that got no answer out of the message that made them."""
    answered = {part.get("tool_use_id") for part in answers if part.get("type") == _RESULT}
    missing = {call_id for call_id in waiting if call_id not in answered}
    if not missing:
        return
    for _ in missing:
        _count(repairs, "dropped_call")
    last = mended[-1]
    last["content"] = [
        part for part in last["content"] if part.get("type") != _CALL or part.get("id") not in missing
    ]


def _aborted(call_id: str) -> dict[str, Any]:
    return {"type": _RESULT, "tool_use_id": call_id, "content": ABORTED}


def _count(repairs: dict[str, int], name: str) -> None:
    repairs[name] = repairs.get(name, 0) + 1
