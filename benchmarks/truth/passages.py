"""First passages of a level: how many calls after each one the window reached it, or for how long it did not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from forecast.questions import FIRST_QUESTION, LEVELS

from truth.recordings import MINIMUM_CALLS, Session
from windowpane.core.agents import documented_growth
from windowpane.core.events import PressureMeasured
from windowpane.core.tracking.forecast import GrowthPace, forecast
from windowpane.sources.transcripts.records import Compacted, ModelCalled, SessionOpened

Level = Literal["50k", "100k", "200k", "own"]
NAMES: Final[dict[int, Level]] = {50_000: "50k", 100_000: "100k", 200_000: "200k"}


@dataclass(frozen=True)
class Compaction:
    """A recorded compaction; `call` is the index of the first call after it."""

    call: int
    automatic: bool


@dataclass(frozen=True)
class Course:
    """The provider's totals of a session's calls, and the product's measurements at the end of them."""

    session: Session
    agent: str
    totals: tuple[int, ...]
    compactions: tuple[Compaction, ...]
    measured: tuple[PressureMeasured, ...]

    def growth(self, call: int) -> list[int]:
        """Return the growth from call to call up to *call*, without that over a compaction."""
        after = {compaction.call for compaction in self.compactions}
        return [
            max(0, self.totals[n] - self.totals[n - 1]) for n in range(1, call + 1) if n not in after
        ]  # fmt: skip

    def next_compaction(self, call: int) -> Compaction | None:
        """Return the first compaction after *call*."""
        return next((compaction for compaction in self.compactions if compaction.call > call), None)


@dataclass(frozen=True)
class Passage:
    """A forecast at the end of a call, with what followed."""

    level: Level
    call: int
    remaining: int
    growth: tuple[int, ...]
    early: float
    median: float
    late: float
    turns: int
    """Calls until the level was reached, for `own` until the last call before the compaction; until the session
    or the window ended where it was not."""
    reached: bool
    compacted: bool = False
    """The window was compacted before the level was reached; for `own`, by the user."""

    @property
    def held(self) -> bool:
        """Return whether the band contains the outcome."""
        return self.early <= self.turns <= self.late


def courses(sessions: Sequence[Session]) -> list[Course]:
    """Return the main sessions whose provider reported the totals of at least 15 calls."""
    made = (course_of(session) for session in sessions if "/" not in session.key)
    return [course for course in made if course is not None and len(course.totals) >= MINIMUM_CALLS]


def course_of(session: Session) -> Course | None:
    """Return a session's course; None where its calls have no totals."""
    totals: list[int] = []
    compactions: list[Compaction] = []
    inside, agent = False, ""
    for record in session.records:
        if isinstance(record, SessionOpened):
            inside = record.session_key == session.key
            agent = record.agent if inside else agent
        elif inside and isinstance(record, ModelCalled) and record.usage is not None and record.usage.input_total:
            totals.append(record.usage.input_total)
        elif inside and isinstance(record, Compacted):
            compactions.append(Compaction(len(totals), record.trigger != "manual"))
    measured = tuple(
        event.data
        for event in session.events
        if isinstance(event.data, PressureMeasured) and event.data.phase == "final"
        and event.data.count_source == "usage"
    )  # fmt: skip
    if len(measured) != len(totals):
        return None
    return Course(session, agent, tuple(totals), tuple(compactions), measured)


def passages(course: Course) -> Iterator[Passage]:
    """Yield the forecasts of a session for every level that was ahead, as the product makes them."""
    yield from _passages(course, GrowthPace(documented_growth(course.agent)))


def passages_of_unknown_agent(course: Course) -> Iterator[Passage]:
    """Yield the forecasts that the product would make of the fixed levels if it did not know the agent."""
    return (one for one in _passages(course, GrowthPace()) if one.level != "own")


def _passages(course: Course, pace: GrowthPace) -> Iterator[Passage]:
    ends = [compaction.call for compaction in course.compactions]
    for call, measured in enumerate(course.measured[:-1]):
        if call:
            pace.add(measured.added_tokens)
        if call < FIRST_QUESTION:
            continue
        used = course.totals[call]
        end = next((end for end in ends if end > call), len(course.totals))
        growth = tuple(course.growth(call))
        for tokens in LEVELS:
            ahead = forecast(tokens - used, pace, used_tokens=used) if used < tokens else None
            if ahead is None:
                continue
            turns = next((n for n in range(1, end - call) if course.totals[call + n] >= tokens), None)
            yield Passage(
                NAMES[tokens], call, tokens - used, growth, ahead.early, ahead.median, ahead.late,
                end - 1 - call if turns is None else turns, turns is not None, turns is None and end in ends,
            )  # fmt: skip
        yield from _own(course, call, measured, growth)


def _own(course: Course, call: int, measured: PressureMeasured, growth: tuple[int, ...]) -> Iterator[Passage]:
    tokens, median = measured.compaction_tokens, measured.turns_until_compaction
    early, late = measured.turns_until_compaction_p10, measured.turns_until_compaction_p90
    if tokens is None or median is None or early is None or late is None or course.totals[call] >= tokens:
        return
    following = course.next_compaction(call)
    automatic = following is not None and following.automatic
    end = len(course.totals) - 1 if following is None else following.call - 1
    yield Passage(
        "own", call, tokens - course.totals[call], growth, early, median, late, end - call, automatic,
        following is not None and not automatic,
    )  # fmt: skip
