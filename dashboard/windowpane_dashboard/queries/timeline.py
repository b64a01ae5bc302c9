"""The course of one session as data frames: turns, limits, marked events, facts and regrets.

Missing values stay missing (NaN or None) all the way to the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

from windowpane.core.events import AlertFired, ContentRegretted, FidelityEvaluated, LimitChanged, SessionStarted
from windowpane.core.limits import Thresholds, WindowLimits
from windowpane.core.vocabulary import COMPONENTS, ZONES
from windowpane.report.headline import FactTotals
from windowpane.store.interface import EventFilter, EventReader
from windowpane.store.records import DamagedEvent, StoredEvent, TurnRow, intact_events
from windowpane.text.formats import turns_band, turns_until
from windowpane.text.labels import MARK_OF
from windowpane_dashboard.queries.events import line_of

TRACK_EVENTS: Final = 5_000
"""Marked events of one session that its event lane shows at most."""
TRACK_TYPES: Final = tuple(name for name in MARK_OF if name not in ("checkpoint.rejected", "alert.resolved"))


@dataclass(frozen=True, slots=True)
class LimitSpan:
    """The window's size and where its zones begin, over a run of turns; tokens."""

    first_turn: int
    limits: WindowLimits | None
    """None while the size is unknown."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """All that the picture of one session needs."""

    turns: pd.DataFrame
    """Indexed by position; see `turns_frame`."""
    spans: tuple[LimitSpan, ...]
    marks: pd.DataFrame
    """`letter`, `turn`, `number`, `text`, `severity`: one row for each letter and turn."""
    marks_cut: bool
    """Whether there are more marked events than are shown."""
    facts: FactTotals | None
    """None where no compression was evaluated."""
    regrets: pd.DataFrame
    """`turn`, `turn_left`, `cause`, `tokens`, `block`: what was needed again, and when and how it had left."""

    @property
    def worst_turn(self) -> int | None:
        """The first turn in the worst zone of the session."""
        zones = self.turns["zone"]
        for zone in reversed(ZONES):
            at = self.turns.loc[zones == zone, "turn"]
            if len(at):
                return int(at.iloc[0])
        return None


def read_timeline(reader: EventReader, session_id: str) -> Timeline:
    """The whole course of one session."""

    def record(*types: str, limit: int = TRACK_EVENTS) -> Sequence[StoredEvent | DamagedEvent]:
        return reader.events_or_damage(EventFilter(session_id=session_id, types=types, limit=limit))

    marked = record(*TRACK_TYPES, limit=TRACK_EVENTS + 1)
    return Timeline(
        turns=turns_frame(reader.turns(session_id)),
        spans=limit_spans(intact_events(record("session.started", "limit.changed", limit=500))),
        marks=marks_frame(marked[:TRACK_EVENTS]),
        marks_cut=len(marked) > TRACK_EVENTS,
        facts=fact_totals(intact_events(record("fidelity.evaluated"))),
        regrets=regrets_frame(intact_events(marked[:TRACK_EVENTS])),
    )


def regrets_frame(events: Sequence[StoredEvent]) -> pd.DataFrame:
    """From each re-fetch back to what had made it necessary."""
    found = [
        (stored.event.context.turn, data.turn_left, data.cause, data.tokens, data.block_id)
        for stored in events
        if isinstance(data := stored.event.data, ContentRegretted)
    ]
    return pd.DataFrame(found, columns=["turn", "turn_left", "cause", "tokens", "block"])


_TURN_FIGURES: Final = (
    "limit_tokens", "usable_tokens", "red_tokens", "utilization", "velocity", "turns_until_red",
    "turns_until_red_p10", "turns_until_red_p90", "burn_rate", "input_tokens", "output_tokens",
    "cache_read_tokens", "cache_write_tokens", "cost_dollars", "latency_seconds", "estimate_error", "at",
    "used_before", "used_after",
)  # fmt: skip
_TURN_WORDS: Final = ("model", "count_source", "zone")


def turns_frame(rows: Sequence[TurnRow]) -> pd.DataFrame:
    """One row a measured turn: figures as floats, missing as NaN, words as text or None.

    `used` is the final size, else the latest known; `input_tokens` is all that a call sent, `fresh_tokens` the
    part that was neither read from nor written to the prompt cache.
    """
    rows = [row for row in rows if _used(row) is not None]
    data: dict[str, Any] = {"turn": pd.array([row.turn for row in rows], dtype="int64")}
    data["window_id"] = pd.array([row.window_id for row in rows], dtype="int64")
    data["used"] = pd.array([_used(row) for row in rows], dtype="float64")
    for component in COMPONENTS:
        data[component] = pd.array([row.components.get(component, 0) for row in rows], dtype="float64")
    for name in _TURN_FIGURES:
        values = [getattr(row, name) for row in rows]
        data[name] = pd.array([float("nan") if v is None else float(v) for v in values], dtype="float64")
    for name in ("added_tokens", "stale_tokens", "duplicate_tokens"):
        data[name] = pd.array([getattr(row, name) for row in rows], dtype="float64")
    for name in _TURN_WORDS:
        data[name] = pd.Series([getattr(row, name) for row in rows], dtype="object")
    frame = pd.DataFrame(data)
    cached = frame["cache_read_tokens"].fillna(0) + frame["cache_write_tokens"].fillna(0)
    return frame.assign(fresh_tokens=(frame["input_tokens"] - cached).clip(lower=0))


def _used(row: TurnRow) -> int | None:
    known = (value for value in (row.used_final, row.used_after, row.used_before) if value is not None)
    return next(known, None)


def limit_spans(events: Sequence[StoredEvent]) -> tuple[LimitSpan, ...]:
    """The sizes the window had, in the order of turns, from the events that state them."""
    spans: dict[int, WindowLimits | None] = {}
    for stored in events:
        data = stored.event.data
        if isinstance(data, SessionStarted | LimitChanged):
            spans[stored.event.context.turn] = _limits(data)
    return tuple(LimitSpan(turn, spans[turn]) for turn in sorted(spans))


def _limits(data: SessionStarted | LimitChanged) -> WindowLimits | None:
    if data.limit_tokens is None or data.limit_source is None:
        return None
    try:
        thresholds = Thresholds(data.yellow_ratio, data.orange_ratio, data.red_ratio, hysteresis=0.0)
        return WindowLimits(
            data.limit_tokens, data.limit_source, data.reserved_tokens, data.margin_tokens, thresholds
        )
    except ValueError:  # a recording may state a window that cannot be; then none is drawn
        return None


def marks_frame(record: Sequence[StoredEvent | DamagedEvent]) -> pd.DataFrame:
    """The marks of an event lane, those of one kind and turn gathered into one; damaged events have theirs."""
    gathered: dict[tuple[str, int], list[str]] = {}
    severities: dict[tuple[str, int], str] = {}
    for one in record:
        line = line_of(one)
        place = (MARK_OF[line.type].letter, line.turn)
        gathered.setdefault(place, []).append(line.what)
        if isinstance(one, StoredEvent) and isinstance(data := one.event.data, AlertFired):
            severities[place] = "critical" if severities.get(place) == "critical" else data.severity
    records = [
        (letter, turn, len(texts), _gathered_text(texts), severities.get((letter, turn), ""))
        for (letter, turn), texts in gathered.items()
    ]
    return pd.DataFrame(records, columns=["letter", "turn", "number", "text", "severity"])


def _gathered_text(texts: list[str], shown: int = 4) -> str:
    lines = texts[:shown] + ([f"and {len(texts) - shown} more"] if len(texts) > shown else [])
    return "\n".join(lines)


def fact_totals(events: Sequence[StoredEvent]) -> FactTotals | None:
    """Facts over all evaluations by probe; None where there were none."""
    found = [stored.event.data for stored in events]
    seen = [data for data in found if isinstance(data, FidelityEvaluated) and data.facts_total]
    if not seen:
        return None
    return FactTotals(
        total=sum(data.facts_total for data in seen),
        kept=sum(data.facts_kept for data in seen),
        recoverable=sum(data.facts_recoverable for data in seen),
        lost=sum(data.facts_lost for data in seen),
        contradicted=sum(data.facts_contradicted for data in seen),
    )


def red_in(turn: pd.Series) -> str:
    """A turn's forecast as `4 (3–7)`."""
    band = turns_band(turn["turns_until_red_p10"], turn["turns_until_red_p90"])
    median = turns_until(turn["turns_until_red"])
    return f"{median} ({band})" if band else median
