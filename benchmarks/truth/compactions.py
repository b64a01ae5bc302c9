"""Compactions as the product measures them, against the raw recordings.

The recordings are read with nothing but JSON: the rows that record a compaction, and the input totals of the
calls of the main thread before and after each.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from truth.money import json_values
from truth.recordings import Session
from windowpane.core.events import CompactionMeasured, ContentCompressed


class RawCompaction(NamedTuple):
    """A recorded compaction; a total is None where no call of the recording is on that side of it."""

    stated: int | None
    """The size before, as the recording states it."""
    before: int | None
    """Total of the last call before it."""
    after: int | None
    """Total of the first call after it."""


class _Total(NamedTuple):
    tokens: int


class _Boundary(NamedTuple):
    stated: int | None


def raw_compactions(path: Path, format_name: str) -> list[RawCompaction]:
    """Return the compactions of a recording's main thread, in order."""
    read = _READERS.get(format_name)
    rows = [] if read is None else list(read(path.read_text(encoding="utf-8")))
    found: list[RawCompaction] = []
    for index, row in enumerate(rows):
        if isinstance(row, _Boundary):
            before = next((one.tokens for one in reversed(rows[:index]) if isinstance(one, _Total)), None)
            after = next((one.tokens for one in rows[index:] if isinstance(one, _Total)), None)
            found.append(RawCompaction(row.stated, before, after))
    return found


def _claude_code(text: str) -> Iterator[_Total | _Boundary]:
    """A message is written in several lines, the first of which has its input.

    Early releases wrote the summary alone.
    """
    seen: set[str] = set()
    is_bounded = False
    for row in json_values(text):
        if row.get("isSidechain"):
            continue
        if row.get("subtype") == "compact_boundary":
            yield _Boundary((row.get("compactMetadata") or {}).get("preTokens"))
            is_bounded = True
        elif row.get("isCompactSummary") is True and not is_bounded:
            yield _Boundary(None)
        elif row.get("type") == "assistant":
            is_bounded = False
        message: Any = row.get("message") or {}
        usage = message.get("usage") if isinstance(message, dict) and row.get("type") == "assistant" else None
        if usage and message["id"] not in seen:
            total = sum(
                usage.get(name) or 0
                for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
            )
            if total:
                seen.add(message["id"])
                yield _Total(total)


def _codex(text: str) -> Iterator[_Total | _Boundary]:
    """A count is written again without a call between: its totals have not changed then."""
    totals = None
    for row in json_values(text):
        payload = row.get("payload") or {}
        if row.get("type") == "compacted":
            yield _Boundary(None)
        info = payload.get("info") if payload.get("type") == "token_count" else None
        if info and info["total_token_usage"] != totals and info["last_token_usage"]["input_tokens"]:
            yield _Total(info["last_token_usage"]["input_tokens"])
        totals = info["total_token_usage"] if info else totals


_READERS: Final[Mapping[str, Callable[[str], Iterator[_Total | _Boundary]]]] = {
    "claude_code": _claude_code, "codex": _codex,
}  # fmt: skip


# -- table ----------------------------------------------------------------------------------------------------


class _Compared(NamedTuple):
    raw: list[RawCompaction]
    accepted: int
    measured: list[CompactionMeasured]


def compactions_section(sessions: Sequence[Session]) -> list[str]:
    """Return the table of the compactions by format."""
    compared: dict[str, list[_Compared]] = defaultdict(list)
    for session in sessions:
        if session.format in _READERS and "/" not in session.key:
            events = [event.data for event in session.events]
            accepted = sum(isinstance(data, ContentCompressed) and data.outcome == "accepted" for data in events)
            measured = [data for data in events if isinstance(data, CompactionMeasured)]
            raw = raw_compactions(session.path, session.format)
            compared[session.format].append(_Compared(raw, accepted, measured))
    others = sorted({session.format for session in sessions} - set(_READERS))
    intro = (
        "Each recorded compaction against what the product derives: sizes of the window by the provider's totals "
        "before and after (before the first call, the size that the recording states), and their ratio. "
        f"Recordings of other formats ({', '.join(others)}) hold no compaction."
    )
    return [
        intro,
        "",
        "| format | sessions | recorded | found | invented | before equal | after equal | ratio (10 to 90%) |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        *(_row(name, found) for name, found in sorted(compared.items())),
    ]


def _row(name: str, compared: Sequence[_Compared]) -> str:
    recorded = sum(len(one.raw) for one in compared)
    found = sum(min(len(one.raw), one.accepted) for one in compared)
    invented = sum(max(0, one.accepted - len(one.raw)) for one in compared)
    pairs = [pair for one in compared for pair in zip(one.raw, one.measured, strict=False)]
    before = sum(
        measured.tokens_before == (raw.stated if raw.before is None else raw.before) for raw, measured in pairs
    )
    after = sum(measured.tokens_after == raw.after for raw, measured in pairs)
    low, middle, high = np.quantile(
        [one.tokens_before / max(1, one.tokens_after) for _, one in pairs], [0.1, 0.5, 0.9]
    )
    return (
        f"| {name} | {len(compared)} | {recorded} | {found} | {invented} | {before} | {after} "
        f"| {middle:.1f} ({low:.1f} to {high:.1f}) |"
    )
