"""Tool results: reading a tool's output, cutting one that is too large, and adding it to the window.

Images and documents in an output are never counted as text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from windowpane.core.events import BudgetBlocked, HistoryRepaired
from windowpane.effects.commands import ArchiveOriginals, Effect
from windowpane.exceptions import WindowError
from windowpane.manager.engine import Engine
from windowpane.manager.plans.findings import finding_of
from windowpane.manager.state import Payload
from windowpane.models.wire.messages import MEDIA_KINDS

TEXT_PARTS: Final = frozenset({"text", "input_text", "output_text"})


@dataclass(frozen=True, slots=True)
class Output:
    """An output as it enters the window."""

    text: str
    media: tuple[Mapping[str, Any], ...] = ()
    """Content parts as they came; the text names them."""
    is_error: bool = False
    """True if the tool failed."""


def read_output(output: object) -> Output:
    """Return the output of a tool: a text, content parts, an exception, or anything else as JSON."""
    if isinstance(output, str):
        return Output(output)
    if output is None:
        return Output("")
    if isinstance(output, bytes | bytearray):
        return Output(output.decode("utf-8", "replace"))
    if isinstance(output, BaseException):
        return Output(f"{type(output).__name__}: {output}", is_error=True)
    if not isinstance(output, list | tuple) or not any(_kind(part) in MEDIA_KINDS for part in output):
        texts = _texts(output)
        return Output(_json(output) if texts is None else texts)
    media = tuple(part for part in output if _kind(part) in MEDIA_KINDS)
    rest = [part for part in output if _kind(part) not in MEDIA_KINDS]
    described = [part["text"] if _is_text(part) else _json(part) for part in rest]
    kinds = [str(part["type"]).removeprefix("input_").removesuffix("_url") for part in media]
    return Output("\n".join([*described, *(f"[{kind}]" for kind in kinds)]), media)


def add_tool_result(
    engine: Engine,
    name: str,
    output: object,
    tool_call_id: str | None,
    *,
    interim: bool = False,
    is_error: bool = False,
) -> Effect[None]:
    """Add a tool's output; one that is too large is cut to head and tail, with the original in the archive.

    An *interim* output replaces the result of a call that continues, until the real one comes.
    """
    name, read = str(name or ""), read_output(output)
    text, source, tokens = read.text, engine.counter.source, engine.counter.count(read.text)
    finding, handle = finding_of(text), None
    if tokens > (cap := _result_cap(engine, tokens)):
        if engine.settings.archive:
            handle = engine.next_handle()
            archived = yield ArchiveOriginals(((handle, text),))
            handle = None if archived.failed else handle
        text = engine.settings.shorten(text, cap, engine.counter, handle or "")
        tokens = engine.counter.count(text)
    call_id = engine.calls.find(name, tool_call_id)
    if call_id is not None and interim:
        if not engine.calls.hold(call_id):
            raise WindowError(f"the call {call_id} is answered already")
        engine.show_interim(call_id, text)
        return
    if call_id in engine.calls.answered:
        engine.tracker.record(HistoryRepaired("duplicate_result", 1))
        return
    tokens += len(read.media) * engine.settings.image_tokens
    engine.watch_budget("tool_results", tokens)
    if call_id is None:
        engine.tracker.record(HistoryRepaired("unmatched_result", 1))
    else:
        engine.remove_interim(call_id)
        call = engine.calls.answer(call_id)
        name = name or (call.name if call else "")
    engine.insert_opening()
    block = engine.tracker.add(
        "tool_result",
        text,
        tokens,
        count_source=source,
        digest=engine.digest(f"{text}\0{json.dumps(read.media, default=str)}") if read.media else "",
        tool_call_id=call_id,
        tool_name=name,
        handle=handle,
    )
    engine.index(block)
    is_error = is_error or read.is_error
    if finding or read.media or is_error:
        engine.payloads[block.id] = Payload(finding=finding, media=read.media, is_error=is_error)


def _result_cap(engine: Engine, tokens: int) -> int:
    """Return the most tokens that a result may have; record a component budget that it would exceed."""
    settings, limits, budget = engine.settings, engine.limits, engine.budget
    if limits is None or budget is None:
        return settings.result_tokens
    cap = min(settings.result_tokens, int(settings.result_ratio * limits.usable_tokens))
    if settings.enforce == "component":
        ruling = budget.check("tool_results", tokens, engine.tracker.window.tokens_by_component)
        if ruling.outcome == "blocked" and ruling.budget_tokens is not None:
            engine.tracker.record(
                BudgetBlocked("tool_results", tokens, ruling.used_tokens, ruling.budget_tokens, "truncated")
            )
            cap = min(cap, max(ruling.remaining_tokens or 0, ruling.budget_tokens // 10))
    return cap


def _texts(output: object) -> str | None:
    """Text parts as one text; None for anything else."""
    if isinstance(output, list | tuple) and output and all(_is_text(part) for part in output):
        return "\n".join(part["text"] for part in output)
    return None


def _is_text(part: object) -> bool:
    return isinstance(part, Mapping) and part.get("type") in TEXT_PARTS and isinstance(part.get("text"), str)


def _kind(part: object) -> object:
    return part.get("type") if isinstance(part, Mapping) else None


def _json(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):  # keys that are not text, or a value that contains itself
        return str(value)
