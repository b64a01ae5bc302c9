"""The record of a session's forecasts: how many of those made at a distance held."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from windowpane.core.events import ContentCompressed, Event
from windowpane.report.calls import calls_after
from windowpane.store.records import TurnRow
from windowpane.text.formats import count

DISTANCES: Final = ((0, 3), (3, 12), (12, 50), (50, 10_000))
"""Ranges of the median, in turns, within which forecasts are compared."""


@dataclass(frozen=True, slots=True)
class ForecastRecord:
    """Forecasts made at one distance."""

    decided: int
    """Forecasts whose event happened, or whose band ended without it."""
    held: int
    """Forecasts whose 10–90 band contained the event."""
    open: int
    """Forecasts that can still hold."""

    @property
    def text(self) -> str:
        """The record in one line, such as `33 of 40 forecasts at this distance were right`; empty without any."""
        if not self.decided:
            return ""
        return f"{self.held:,} of {count(self.decided, 'forecast')} at this distance were right"


NO_FORECASTS: Final = ForecastRecord(0, 0, 0)


@dataclass(frozen=True, slots=True)
class _Ahead:
    """A forecast of one turn: its band, and the used tokens at which the event happens."""

    turn: int
    level_tokens: int
    is_compaction: bool
    median: float
    early: float
    late: float


def compaction_turns(events: Iterable[Event]) -> list[int]:
    """Return the turns in or after which the agent compacted by itself."""
    return [
        event.context.turn
        for event in events
        if isinstance(data := event.data, ContentCompressed) and data.is_compaction and data.trigger != "manual"
    ]


def forecast_record(turns: Sequence[TurnRow], compactions: Iterable[int]) -> ForecastRecord:
    """Return the record of the forecasts at the distance of the last one; *compactions* as `compaction_turns`."""
    made = [ahead for row in turns if (ahead := _ahead(row)) is not None]
    if not made:
        return NO_FORECASTS
    distance = _distance(made[-1].median)
    alike = {ahead.turn: ahead for ahead in made[:-1] if _distance(ahead.median) == distance}
    outcomes = _outcomes(turns, alike, set(calls_after(turns, compactions).values()))
    return ForecastRecord(
        outcomes.count(True) + outcomes.count(False), outcomes.count(True), outcomes.count(None)
    )


def _outcomes(
    turns: Sequence[TurnRow], forecasts: Mapping[int, _Ahead], calls_after: Collection[int]
) -> list[bool | None]:
    """Return for each forecast whether its event came within the band; None while it still may.

    The event of a compaction is the last call before it, not a window that reached the level. A forecast of red
    stays open where the window was reduced before: red is then prevented, not wrongly expected.
    """
    levels = {ahead.level_tokens for ahead in forecasts.values()}
    reduced_at = _reduced(turns) | set(calls_after)
    passed: dict[int, int] = {}
    compacted = reduced = None
    outcomes: list[bool | None] = []
    for row in reversed(turns):
        ahead = forecasts.get(row.turn)
        if ahead is not None:
            came = passed.get(ahead.level_tokens)
            if ahead.is_compaction:
                outcomes.append(_held(ahead, compacted, turns[-1].turn))
            elif reduced is not None and (came is None or reduced <= came):
                outcomes.append(None)
            else:
                outcomes.append(_held(ahead, came, turns[-1].turn))
        if row.turn in calls_after:
            compacted = row.turn - 1  # the last call before it
            passed.clear()
        if row.turn in reduced_at:
            reduced = row.turn
        passed.update((level, row.turn) for level in levels if (row.used_final or 0) >= level)
    return outcomes


def _reduced(turns: Sequence[TurnRow]) -> set[int]:
    """Return the turns whose call was smaller than the one before it."""
    return {after.turn for before, after in pairwise(turns) if (after.used_final or 0) < (before.used_final or 0)}


def _held(ahead: _Ahead, came: int | None, last_turn: int) -> bool | None:
    if came is not None:
        return ahead.early <= came - ahead.turn <= ahead.late
    return False if last_turn - ahead.turn > ahead.late else None


def _ahead(row: TurnRow) -> _Ahead | None:
    """Return the forecast of a turn; None without one, and at or above its level."""
    is_compaction = row.turns_until_compaction is not None
    level = row.compaction_tokens if is_compaction else row.red_tokens
    median = row.turns_until_compaction if is_compaction else row.turns_until_red
    early = row.turns_until_compaction_p10 if is_compaction else row.turns_until_red_p10
    late = row.turns_until_compaction_p90 if is_compaction else row.turns_until_red_p90
    if level is None or median is None or early is None or not late:
        return None
    return _Ahead(row.turn, level, is_compaction, median, early, late)


def _distance(median: float) -> int:
    return next((n for n, (low, high) in enumerate(DISTANCES) if low < median <= high), len(DISTANCES))
