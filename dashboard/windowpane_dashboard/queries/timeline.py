"""The course of one session as data frames: turns, limits, marked events, facts and regrets.

Missing values stay missing (NaN or None) all the way to the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd

from windowpane.core.events import (
    AlertFired,
    ContentRegretted,
    FidelityEvaluated,
    LimitChanged,
    PressureMeasured,
    RulesFollowed,
    SessionStarted,
)
from windowpane.core.limits import WindowLimits
from windowpane.core.tracking.peak import corrects, limits_of
from windowpane.core.vocabulary import COMPONENTS, Zone
from windowpane.report.calls import open_turn, sent_calls, worst_turn
from windowpane.report.forecast_record import ForecastRecord, compaction_turns, forecast_record
from windowpane.report.headline import FactTotals, Phrase, largest_again, session_phrases
from windowpane.store.filters import EventFilter
from windowpane.store.reads.notes import NOTE_EVENTS, without_deleted
from windowpane.store.reads.project_reader import EventReader
from windowpane.store.records import DamagedEvent, SessionRow, StoredEvent, TurnRow, intact_events
from windowpane.text.labels import ALERT_MARKS, MARK_OF
from windowpane_dashboard.queries.events import event_line

TRACK_EVENTS: Final = 5_000
"""Marked events of one session that its event track shows at most."""
TRACK_TYPES: Final = tuple(name for name in MARK_OF if name != "alert.resolved")


@dataclass(frozen=True, slots=True)
class LimitSpan:
    """The limits of the window from one turn on."""

    first_turn: int
    limits: WindowLimits | None
    """None while the size is unknown."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """The data of one session's chart."""

    turns: pd.DataFrame
    """Indexed by position; see `turns_frame`."""
    spans: tuple[LimitSpan, ...]
    marks: pd.DataFrame
    """`letter`, `turn`, `number`, `text`: one row for each letter and turn."""
    marks_cut: bool
    """True where more events are marked than are shown."""
    facts: FactTotals | None
    """None where no compression was evaluated."""
    lost_rules: int
    forecasts: ForecastRecord
    """Forecasts at the distance of the last one."""
    regrets: pd.DataFrame
    """`turn`, `turn_left`, `cause`, `tokens`, `block`, `target`: re-fetches and the removals that caused them."""
    latest: PressureMeasured | None = None
    """The last measurement, of what the next call would send, as in lists; `turns` has what each call sent."""
    worst_turn: int | None = None
    """The first turn in the session's worst zone; None where that was before the first recorded call."""
    open_turn: int | None = None
    """The turn whose call has not ended, which no count of turns contains; it may not be measured yet."""

    def fullest(self, turn: int) -> tuple[float, float, Zone | None] | None:
        """Return tokens, utilization and zone of the window when it was fullest in a turn; None where unknown."""
        limits = next((span.limits for span in reversed(self.spans) if span.first_turn <= turn), None)
        here = self.turns[self.turns["turn"] == turn]
        if here.empty or limits is None:
            return None
        used = float(np.nanmax(here[["used", "used_before"]].to_numpy()))
        return used, used / limits.limit_tokens, limits.zone_of(int(used))

    def headline(self, row: SessionRow, *, live: bool) -> tuple[Phrase, ...]:
        """Return the headline of this session, which is *row* in the lists."""
        return session_phrases(
            row, worst_turn=self.worst_turn, open_turn=self.open_turn, facts=self.facts,
            lost_rules=self.lost_rules, live=live,
            again=largest_again(zip(self.regrets["target"], self.regrets["tokens"], strict=True)),
        )  # fmt: skip

    @property
    def ended_turns(self) -> int:
        """The number of measured turns whose call has ended."""
        return int(self.turns["ended"].sum())


def read_timeline(reader: EventReader, session_id: str) -> Timeline:
    """Read the timeline of one session."""

    def record(*types: str, limit: int = TRACK_EVENTS) -> Sequence[StoredEvent | DamagedEvent]:
        return reader.events_or_damage(EventFilter(session_id=session_id, types=types, limit=limit))

    marked = without_deleted(record(*TRACK_TYPES, *NOTE_EVENTS, limit=TRACK_EVENTS + 1))
    session, turns = reader.session(session_id), reader.turns(session_id)
    compressed, followed = intact_events(record("content.compressed")), intact_events(record("rules.followed"))
    return Timeline(
        turns=turns_frame(turns),
        spans=limit_spans(intact_events(record("session.started", "limit.changed", limit=500))),
        marks=marks_frame(marked[:TRACK_EVENTS]),
        marks_cut=len(marked) > TRACK_EVENTS,
        facts=fact_totals(intact_events(record("fidelity.evaluated"))),
        lost_rules=max(
            (one.event.data.lost for one in followed if isinstance(one.event.data, RulesFollowed)), default=0
        ),
        forecasts=forecast_record(turns, compaction_turns(stored.event for stored in compressed)),
        regrets=regrets_frame(intact_events(record("content.regretted"))),
        latest=latest_pressure(reader, session_id),
        worst_turn=None if session is None else worst_turn(reader, turns, session),
        open_turn=open_turn(turns),
    )


def latest_pressure(reader: EventReader, session_id: str) -> PressureMeasured | None:
    """Return the last measurement of a session; None before the first."""
    query = EventFilter(session_id=session_id, types=("pressure.measured",), newest_first=True, limit=1)
    for stored in intact_events(reader.events_or_damage(query)):
        if isinstance(stored.event.data, PressureMeasured):
            return stored.event.data
    return None


def regrets_frame(events: Sequence[StoredEvent]) -> pd.DataFrame:
    """Return one row per re-fetch, with the removal that caused it."""
    rows = [
        (stored.event.context.turn, data.turn_left, data.cause, data.tokens, data.block_id, data.target)
        for stored in events
        if isinstance(data := stored.event.data, ContentRegretted)
    ]
    return pd.DataFrame(rows, columns=["turn", "turn_left", "cause", "tokens", "block", "target"])


_TURN_VALUES: Final = (
    "limit_tokens", "usable_tokens", "red_tokens", "utilization", "velocity", "turns_until_red",
    "turns_until_red_p10", "turns_until_red_p90", "compaction_tokens", "turns_until_compaction",
    "turns_until_compaction_p10", "turns_until_compaction_p90", "burn_rate", "input_tokens", "output_tokens",
    "cache_read_tokens", "cache_write_tokens", "cost_dollars", "latency_seconds", "estimate_error", "at",
    "used_before", "used_after", "recorded_output_tokens", "list_cost_dollars",
)  # fmt: skip
_TURN_LABELS: Final = ("model", "count_source", "zone")


def turns_frame(rows: Sequence[TurnRow]) -> pd.DataFrame:
    """Return one row per measured turn: numbers as floats, missing as NaN, labels as text or None.

    `used` is the final size, else the latest measured; `sent` is that of the calls that count as sent. The call
    of the last turn may not have `ended`; no count of turns contains it then.
    `input_tokens` is all that a call reported, `fresh_tokens` the part that was neither read from nor written to
    the prompt cache. `ahead_tokens`, `ahead`, `ahead_p10` and `ahead_p90` are the forecast of the next
    event: the agent's own compaction where its level is known, else red.
    """
    rows = [row for row in rows if row.used_tokens is not None]
    data: dict[str, Any] = {"turn": pd.array([row.turn for row in rows], dtype="int64")}
    data["window_id"] = pd.array([row.window_id for row in rows], dtype="int64")
    data["used"] = pd.array([row.used_tokens for row in rows], dtype="float64")
    data["ended"] = pd.array([row.used_final is not None for row in rows], dtype="bool")
    sent = {row.turn: row.used_final for row in sent_calls(rows)}
    data["sent"] = pd.array([sent.get(row.turn) for row in rows], dtype="Float64").to_numpy(
        "float64", na_value=float("nan")
    )
    for component in COMPONENTS:
        data[component] = pd.array([row.components.get(component, 0) for row in rows], dtype="float64")
    for name in _TURN_VALUES:
        values = [getattr(row, name) for row in rows]
        data[name] = pd.array([float("nan") if v is None else float(v) for v in values], dtype="float64")
    for name in ("added_tokens", "stale_tokens", "duplicate_tokens"):
        data[name] = pd.array([getattr(row, name) for row in rows], dtype="float64")
    for name in _TURN_LABELS:
        data[name] = pd.Series([getattr(row, name) for row in rows], dtype="object")
    frame = pd.DataFrame(data)
    cached = frame["cache_read_tokens"].fillna(0) + frame["cache_write_tokens"].fillna(0)
    compacts = frame["turns_until_compaction"].notna()
    return frame.assign(
        fresh_tokens=(frame["input_tokens"] - cached).clip(lower=0),
        ahead_tokens=frame["compaction_tokens"].where(compacts, frame["red_tokens"]),
        ahead=frame["turns_until_compaction"].where(compacts, frame["turns_until_red"]),
        ahead_p10=frame["turns_until_compaction_p10"].where(compacts, frame["turns_until_red_p10"]),
        ahead_p90=frame["turns_until_compaction_p90"].where(compacts, frame["turns_until_red_p90"]),
    )


def limit_spans(events: Sequence[StoredEvent]) -> tuple[LimitSpan, ...]:
    """Return the limits of the window in the order of turns; a correction replaces the limits that never were."""
    spans: dict[int, WindowLimits | None] = {}
    source, model = None, ""
    for stored in events:
        context, data = stored.event.context, stored.event.data
        if isinstance(data, SessionStarted | LimitChanged):
            limits = limits_of(data)
            if isinstance(data, LimitChanged) and corrects(
                data.limit_source, source, is_same_model=model in ("", context.model)
            ):
                spans = {
                    turn: limits if span and span.limit_tokens == data.previous_tokens else span
                    for turn, span in spans.items()
                }
            spans[context.turn] = limits
            source, model = data.limit_source, context.model
    turns = sorted(spans)
    changes = [turn for at, turn in enumerate(turns) if at == 0 or spans[turn] != spans[turns[at - 1]]]
    return tuple(LimitSpan(turn, spans[turn]) for turn in changes)


def marks_frame(record: Sequence[StoredEvent | DamagedEvent]) -> pd.DataFrame:
    """Return the marks of the event track, one per kind and turn; damaged events are marked too."""
    gathered: dict[tuple[str, int], list[str]] = {}
    for one in record:
        line = event_line(one)
        mark = MARK_OF[line.type]
        if isinstance(one, StoredEvent) and isinstance(data := one.event.data, AlertFired):
            mark = ALERT_MARKS[data.severity]
        gathered.setdefault((mark.letter, line.turn), []).append(line.what)
    records = [(letter, turn, len(texts), _gathered_text(texts)) for (letter, turn), texts in gathered.items()]
    return pd.DataFrame(records, columns=["letter", "turn", "number", "text"])


def _gathered_text(texts: list[str], limit: int = 4) -> str:
    lines = texts[:limit] + ([f"and {len(texts) - limit} more"] if len(texts) > limit else [])
    return "\n".join(lines)


def fact_totals(events: Sequence[StoredEvent]) -> FactTotals | None:
    """Return the facts of all evaluations; None without any."""
    payloads = (stored.event.data for stored in events)
    return FactTotals.of(data for data in payloads if isinstance(data, FidelityEvaluated))
