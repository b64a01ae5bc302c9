"""Context health: missteps of an agent by the fill of its window and by the compactions so far.

Each session is compared with itself: its missteps per 100 model calls above a share of the window less those
below. A change is reported only where the interval of the mean difference over the sessions excludes zero:
Student's interval for paired samples, by which all changes that are tried hold together at 95%. Fill and age of a
session grow together: a change shows that one of them makes a difference, not which.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist, fmean, quantiles, stdev
from typing import Final

from windowpane.core.events import ContentCompressed, MisstepObserved
from windowpane.core.vocabulary import MISSTEPS, Misstep
from windowpane.report.calls import calls_after, ended_turns
from windowpane.store.filters import EventFilter, SessionFilter
from windowpane.store.reads.project_reader import EventReader
from windowpane.store.records import SessionRow, StoredEvent, TurnRow, intact_events
from windowpane.text.formats import count, percent, rate

MINIMUM_SESSIONS: Final = 10
"""Sessions below which nothing is compared."""
MINIMUM_CALLS: Final = 10
"""Calls of a session on each side, without which its rates are noise."""
SHARES: Final = (0.5, 0.6, 0.7, 0.8, 0.9)
"""Shares of the window above which a change is looked for."""
TENTHS: Final = 11
"""The last holds the calls of a window that was full."""
MOST_COMPACTIONS: Final = 3
"""Calls after more compactions count with those after this number."""
MAXIMUM_SESSIONS: Final = 200
"""Sessions that are compared, the latest."""
MAXIMUM_EVENTS: Final = 2_000
CONFIDENCE: Final = 1 - 0.05 / (len(MISSTEPS) * (len(SHARES) + 1))
"""Of one change, by Bonferroni's correction for the number of changes that are tried."""
NOUNS: Final[dict[Misstep, str]] = {
    "error": "errors",
    "repeated_read": "repeated reads",
    "repeated_call": "repeated calls",
    "correction": "corrections",
}


@dataclass(frozen=True, slots=True)
class HealthCell:
    """Model calls of one session with the same fill and number of compactions, and their missteps."""

    calls: int = 0
    missteps: Mapping[Misstep, int] = field(default_factory=dict)

    def __add__(self, other: HealthCell) -> HealthCell:
        """Return the calls and missteps of both."""
        return HealthCell(self.calls + other.calls, Counter(self.missteps) + Counter(other.missteps))

    def per_100(self, misstep: Misstep) -> float | None:
        """Return the missteps per 100 calls; None without a call."""
        return 100 * self.missteps.get(misstep, 0) / self.calls if self.calls else None


EMPTY: Final = HealthCell()


@dataclass(frozen=True, slots=True)
class SessionHealth:
    """The calls of one session by tenth of the window's fill and number of compactions before them."""

    session_id: str
    cells: Mapping[tuple[int, int], HealthCell]
    """By tenth, from 0, and compactions."""

    def where(self, chosen: Callable[[int, int], bool]) -> HealthCell:
        """Return the sum of the cells whose tenth and number of compactions are *chosen*."""
        return sum((cell for key, cell in self.cells.items() if chosen(*key)), EMPTY)


@dataclass(frozen=True, slots=True)
class Change:
    """The change of one misstep from one part of the sessions' calls to another; rates per 100 calls."""

    misstep: Misstep
    share: float | None
    """Share of the window between both parts; None for the first compaction."""
    sessions: int
    """Sessions with enough calls in both parts."""
    before: float
    """Mean over the sessions."""
    after: float
    low: float
    """Ends of the interval of the mean difference."""
    high: float

    @property
    def is_evident(self) -> bool:
        """True if there are enough sessions and the interval excludes zero."""
        return self.sessions >= MINIMUM_SESSIONS and (self.low > 0 or self.high < 0)

    @property
    def where(self) -> str:
        """The part of the calls with the later rate."""
        return "after a compaction" if self.share is None else f"above {percent(self.share)} of the window"

    @property
    def text(self) -> str:
        """The change in one sentence."""
        verb = "rise" if self.after > self.before else "fall"
        noun = NOUNS[self.misstep]
        return (
            f"{noun.capitalize()} {verb} from {rate(self.before)} to {rate(self.after)} per 100 calls "
            f"{self.where}, n = {count(self.sessions, 'session')} "
            f"(difference {rate(self.low, signed=True)} to {rate(self.high, signed=True)})."
        )


@dataclass(frozen=True, slots=True)
class HealthRow:
    """One tenth of the window, or one number of compactions, over all sessions."""

    label: str
    calls: int
    sessions: int
    """Sessions with enough calls there."""
    rates: Mapping[Misstep, tuple[float, float, float] | None]
    """Lower quartile, median and upper quartile of the sessions' missteps per 100 calls; None if too few."""
    pooled: Mapping[Misstep, float]
    """Missteps per 100 calls of all sessions together."""


@dataclass(frozen=True, slots=True)
class ContextHealth:
    """The context health of several sessions."""

    sessions: Sequence[SessionHealth]
    changes: Sequence[Change]
    """Of each misstep at the lowest share of the window with a change, else the first; then at compactions."""

    @property
    def evident(self) -> list[Change]:
        """The changes that the sessions show."""
        return [change for change in self.changes if change.is_evident]

    @property
    def calls(self) -> int:
        """All calls with a known fill."""
        return sum(cell.calls for one in self.sessions for cell in one.cells.values())

    @property
    def headline(self) -> str:
        """The result in one sentence."""
        if evident := self.evident:
            return " ".join(change.text for change in evident)
        compared = max((change.sessions for change in self.changes), default=0)
        if compared < MINIMUM_SESSIONS:
            return (
                f"Too few sessions to compare: {compared} with {MINIMUM_CALLS} calls below and above half of the "
                f"window; {MINIMUM_SESSIONS} are needed."
            )
        return f"No change with the fill of the window can be shown, n = {count(compared, 'session')}."

    @property
    def by_tenth(self) -> list[HealthRow]:
        """The tenths of the window that calls were made in."""
        return self._rows(
            (f"{10 * tenth}–{10 * tenth + 10}%" if tenth < TENTHS - 1 else "100%", _is_tenth(tenth))
            for tenth in range(TENTHS)
        )

    @property
    def by_compactions(self) -> list[HealthRow]:
        """The numbers of compactions that calls were made after."""
        return self._rows(
            (f"{number}{'+' if number == MOST_COMPACTIONS else ''}", _is_after(number))
            for number in range(MOST_COMPACTIONS + 1)
        )

    def _rows(self, parts: Iterable[tuple[str, Callable[[int, int], bool]]]) -> list[HealthRow]:
        rows = (_row(label, [one.where(chosen) for one in self.sessions]) for label, chosen in parts)
        return [row for row in rows if row.calls]


def _is_tenth(number: int) -> Callable[[int, int], bool]:
    return lambda tenth, _compactions: tenth == number


def _is_after(number: int) -> Callable[[int, int], bool]:
    return lambda _tenth, compactions: compactions == number


def _row(label: str, cells: Sequence[HealthCell]) -> HealthRow:
    total = sum(cells, EMPTY)
    enough = [cell for cell in cells if cell.calls >= MINIMUM_CALLS]
    rates = {one: [value for cell in enough if (value := cell.per_100(one)) is not None] for one in MISSTEPS}
    return HealthRow(
        label,
        total.calls,
        len(enough),
        {one: quartiles(values) for one, values in rates.items()},
        {one: total.per_100(one) or 0.0 for one in MISSTEPS},
    )


def quartiles(values: Sequence[float]) -> tuple[float, float, float] | None:
    """Return lower quartile, median and upper quartile of the sessions' values; None if they are too few."""
    if len(values) < MINIMUM_SESSIONS:
        return None
    low, middle, high = quantiles(values, n=4, method="inclusive")
    return low, middle, high


# -- sessions -------------------------------------------------------------------------------------------------


def session_health(
    session_id: str, turns: Sequence[TurnRow], missteps: Iterable[tuple[int, Misstep]], compactions: Iterable[int]
) -> SessionHealth:
    """Return the health of a session, from *missteps* with the turn of their call and the turns of *compactions*.

    Calls without a known fill do not count.
    """
    by_turn: dict[int, Counter[Misstep]] = {}
    for turn, misstep in missteps:
        by_turn.setdefault(turn, Counter())[misstep] += 1
    compacted = sorted(calls_after(turns, compactions).values())
    cells: dict[tuple[int, int], HealthCell] = {}
    passed = 0
    for row in ended_turns(turns):
        while passed < len(compacted) and compacted[passed] <= row.turn:
            passed += 1
        if row.utilization is not None:
            key = (min(TENTHS - 1, int(row.utilization * 10)), min(MOST_COMPACTIONS, passed))
            cells[key] = cells.get(key, EMPTY) + HealthCell(1, by_turn.get(row.turn, Counter()))
    return SessionHealth(session_id, cells)


def read_session_health(store: EventReader, session: SessionRow, turns: Sequence[TurnRow]) -> SessionHealth:
    """Read the health of one session; *turns* are its turns."""
    query = EventFilter(
        session_id=session.session_id,
        types=(MisstepObserved.type, ContentCompressed.type),
        limit=MAXIMUM_EVENTS,
    )
    events = intact_events(store.events_or_damage(query))
    return session_health(session.session_id, turns, _missteps(events), _compactions(events))


def _missteps(events: Iterable[StoredEvent]) -> list[tuple[int, Misstep]]:
    return [
        (data.call_turn, data.misstep) for one in events if isinstance(data := one.event.data, MisstepObserved)
    ]


def _compactions(events: Iterable[StoredEvent]) -> list[int]:
    """Return the turns in or after which the window was compacted."""
    return [
        one.event.context.turn
        for one in events
        if isinstance(data := one.event.data, ContentCompressed) and data.is_compaction
    ]


FULL_SHARE: Final = 0.7
"""Share of the window on both sides of which one session's missteps are counted."""


@dataclass(frozen=True, slots=True)
class SessionMissteps:
    """The missteps of one session; a single session shows no trend."""

    below: HealthCell
    """Calls below 70% of the window, and those above."""
    above: HealthCell

    @property
    def text(self) -> str:
        """The missteps in one line; empty without any."""
        total = self.below + self.above
        counts = [
            f"{number} {NOUNS[one] if number > 1 else NOUNS[one].removesuffix('s')}"
            for one in MISSTEPS
            if (number := total.missteps.get(one, 0))
        ]
        if not counts:
            return ""
        sides = [
            f"{rate(100 * sum(cell.missteps.values()) / cell.calls)} {where} {percent(FULL_SHARE)} of the window "
            f"({count(cell.calls, 'call')})"
            for cell, where in ((self.below, "below"), (self.above, "above"))
            if cell.calls
        ]
        return f"{', '.join(counts)}; per 100 calls {', '.join(sides)}"


NO_MISSTEPS: Final = SessionMissteps(EMPTY, EMPTY)


def missteps_of(health: SessionHealth) -> SessionMissteps:
    """Return the missteps of one session on both sides of 70% of its window."""
    first = round(10 * FULL_SHARE)
    return SessionMissteps(
        health.where(lambda tenth, _: tenth < first), health.where(lambda tenth, _: tenth >= first)
    )


def latest_sessions(
    store: EventReader, query: SessionFilter, *, limit: int = MAXIMUM_SESSIONS
) -> list[SessionRow]:
    """Return the latest sessions that match *query*; those with copied calls do not count."""
    rows = store.sessions(replace(query, order="recent", limit=limit))
    return [row for row in rows if not row.copied_turns]


# -- comparison -----------------------------------------------------------------------------------------------


def health_of(sessions: Sequence[SessionHealth]) -> ContextHealth:
    """Return the health of *sessions* with the change of each misstep."""
    measured = [one for one in sessions if one.cells]
    changes = [_change_by_fill(measured, misstep) for misstep in MISSTEPS]
    changes += [change_at(measured, misstep, None) for misstep in MISSTEPS]
    return ContextHealth(measured, changes)


def _change_by_fill(sessions: Sequence[SessionHealth], misstep: Misstep) -> Change:
    tried = [change_at(sessions, misstep, share) for share in SHARES]
    return next((change for change in tried if change.is_evident), tried[0])


def change_at(sessions: Sequence[SessionHealth], misstep: Misstep, share: float | None) -> Change:
    """Return the change of *misstep* above a *share* of the window, None for after a compaction."""
    first_tenth = None if share is None else round(10 * share)

    def is_after(tenth: int, compactions: int) -> bool:
        return compactions > 0 if first_tenth is None else tenth >= first_tenth

    sides = ((one.where(lambda *key: not is_after(*key)), one.where(is_after)) for one in sessions)
    pairs = [
        (below.per_100(misstep) or 0.0, above.per_100(misstep) or 0.0)
        for below, above in sides
        if min(below.calls, above.calls) >= MINIMUM_CALLS
    ]
    if not pairs:
        return Change(misstep, share, 0, 0.0, 0.0, 0.0, 0.0)
    before, after = (fmean(rates) for rates in zip(*pairs, strict=True))
    low, high = mean_interval([above - below for below, above in pairs])
    return Change(misstep, share, len(pairs), before, after, low, high)


def mean_interval(values: Sequence[float], *, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return Student's interval of the mean of *values*; infinite for a single value."""
    mean, count_of = fmean(values), len(values)
    if count_of < 2:
        return -math.inf, math.inf
    half = student_quantile((1 + confidence) / 2, count_of - 1) * stdev(values) / math.sqrt(count_of)
    return mean - half, mean + half


def student_quantile(share: float, freedom: int) -> float:
    """Return the quantile of Student's distribution with *freedom* degrees of freedom, from 9 on within 0.2%.

    Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.5.
    """
    z = NormalDist().inv_cdf(share)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92_160,
    )
    return z + math.fsum(term / freedom**power for power, term in enumerate(terms, start=1))
