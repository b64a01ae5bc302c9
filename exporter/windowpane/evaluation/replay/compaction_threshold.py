"""Advice on the level at which an agent compacts: its recorded sessions replayed at lower levels.

The replay needs no content. Every level, the present one included, sees the same growth, call by call: what each
recorded call added, without what was read again after a compaction. A simulated compaction costs one call that
reads the window and writes a summary, results in the median size of recorded ones, keeps the median share of
it in the prompt cache, and brings back the mean of what was read again. Recorded cache breaks occur at every
level. Further calls that an agent makes because it forgot something are not simulated.

Rule survival is measured, not simulated: the share of recorded rules that were visible after 1, 2, 3 …
compactions, averaged over the calls by the compactions before them at that level. The rules of one
compaction share its fate, so the evidence is counted in compactions.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist, median
from typing import Final, NamedTuple

from windowpane.core.agents import CLAUDE_CODE, CLAUDE_CODE_AGENT
from windowpane.core.events import (
    CacheBroken,
    CompactionMeasured,
    ContentCompressed,
    ContentRegretted,
    RulesFollowed,
    Usage,
)
from windowpane.models.catalog import packaged_catalog
from windowpane.report.calls import calls_after, ended_turns
from windowpane.report.context_health import MINIMUM_SESSIONS, latest_sessions, mean_interval
from windowpane.sources.installed_agents.settings import CLAUDE_CODE_SMALLEST_LEVEL
from windowpane.store.filters import EventFilter, SessionFilter
from windowpane.store.reads.project_reader import EventReader
from windowpane.store.records import SessionRow, TurnRow, intact_events

LEVELS: Final = (60_000, 80_000, 100_000, 120_000, 140_000, 160_000, 200_000, 300_000, 400_000, 500_000, 700_000)
"""Levels that are tried below the present one, in tokens."""
SMALLEST_WINDOW_RATIO: Final = 1.5
"""A level below this multiple of the size after a compaction would compact without end."""
MINIMUM_COMPACTIONS: Final = 3
"""Recorded compactions without which their size is not known."""
MINIMUM_RULE_COMPACTIONS: Final = 10
"""Compactions with rules without which their survival is not known."""
WIDEST_SURVIVAL: Final = 0.15
"""Width of the interval of rule survival above which no level is proposed."""
MINIMUM_RULES: Final = 10
"""Rules that have been through a number of compactions, without which that number is not used."""
SAME_SURVIVAL: Final = 0.005
"""Difference of rule survival that is not visible in percent."""
MONTH_DAYS: Final = 30
MINIMUM_DAYS: Final = 7
"""Days of recordings without which nothing is computed per month."""
DAY_SECONDS: Final = 86_400
CONFIDENCE: Final = 0.99
"""Of what a level saves."""
MAXIMUM_EVENTS: Final = 2_000
_READ: Final = (ContentCompressed, CompactionMeasured, ContentRegretted, CacheBroken, RulesFollowed)


class CallStep(NamedTuple):
    """The content that one recorded call adds to the window at any level."""

    model: str
    grown_tokens: int
    """Tokens that it sent beyond the call before; 0 at a recorded compaction, whose growth is not known."""
    restart_tokens: int | None
    """Size of the window that it starts: the first call, and one after a clear; None for all others."""
    output_tokens: int
    rewritten_share: float
    """Share of the cached prefix that it sent as new input."""
    is_requested: bool
    """The user had the window compacted before it, as happens at any level."""


@dataclass(frozen=True, slots=True)
class RecordedSession:
    """One recorded session, as the replay needs it."""

    session_id: str
    steps: Sequence[CallStep]
    level_tokens: int
    """Level at which its agent compacts."""
    dollars: float
    """Recorded cost of these calls."""


@dataclass(frozen=True, slots=True)
class RecordedCompactions:
    """Sizes after the compactions of an agent, and the content read again after them."""

    count: int
    tokens_after: int
    """Median of the first call after each."""
    cache_ratio: float
    """Median share of it that was read from the prompt cache."""
    summary_tokens: int
    """Median output of the summaries; 0 where no recording has one."""
    fetched_again_tokens: int
    """Mean per compaction."""
    followed: Sequence[int]
    """Rules that have been through 1, 2, 3 … compactions."""
    visible: Sequence[int]
    with_rules: int
    """Compactions whose rules could be followed."""

    @property
    def survival_interval(self) -> tuple[float, float] | None:
        """Wilson's interval (95%) of the survival of one compaction; None without rules."""
        if not self.with_rules or not self.followed or not self.followed[0]:
            return None
        share, z2 = self.visible[0] / self.followed[0], NormalDist().inv_cdf(0.975) ** 2
        middle = (share + z2 / (2 * self.with_rules)) / (1 + z2 / self.with_rules)
        half = math.sqrt(z2 * (share * (1 - share) + z2 / (4 * self.with_rules)) / self.with_rules)
        half /= 1 + z2 / self.with_rules
        return max(0.0, middle - half), min(1.0, middle + half)

    @property
    def is_survival_narrow(self) -> bool:
        """True if the interval of rule survival is narrow enough to advise on."""
        interval = self.survival_interval
        return interval is not None and interval[1] - interval[0] <= WIDEST_SURVIVAL

    def survival(self, compactions: int) -> float | None:
        """Return the share of rules visible after *compactions*; None where that is not known.

        Beyond the recorded numbers each compaction keeps the share that the first kept.
        """
        if compactions == 0:
            return 1.0
        shares = [seen / total for total, seen in zip(self.followed, self.visible, strict=True) if total]
        enough = len([total for total in self.followed if total >= MINIMUM_RULES])
        if self.with_rules < MINIMUM_RULE_COMPACTIONS or not enough or self.followed[0] < MINIMUM_RULES:
            return None
        recorded = min(shares[: min(compactions, enough)], default=1.0)
        return recorded * shares[0] ** max(0, compactions - enough)


@dataclass(frozen=True, slots=True)
class LevelResult:
    """All sessions at one level."""

    level_tokens: int | None
    """None for the present level of each session."""
    dollars: float
    compactions: int
    survival: float | None
    """Share of the rules that were visible at a call, mean over the calls; None where that is not known."""
    saved_dollars: float = 0.0
    """Less than at the present level; in the recorded time."""
    saved_low: float = 0.0
    """Ends of the interval over the sessions."""
    saved_high: float = 0.0

    @property
    def saves(self) -> bool:
        """True if the interval of what is saved excludes zero."""
        return self.saved_low > 0


@dataclass(frozen=True, slots=True)
class ThresholdAdvice:
    """The levels of one agent compared."""

    agent: str
    sessions: int
    days: float
    """From the first to the last recorded call."""
    recorded_dollars: float
    compactions: RecordedCompactions
    present: LevelResult
    lower: Sequence[LevelResult]
    level_tokens: int
    """Median of the present levels."""
    levels: tuple[int, int]
    """The lowest and the highest of them."""
    limit_tokens: int | None
    """Size of the largest window."""

    @property
    def best(self) -> LevelResult | None:
        """The lower level of the lowest cost at which no more rules are lost; None if uncertain."""
        present = self.present.survival
        if present is None or not self.compactions.is_survival_narrow or self.sessions < MINIMUM_SESSIONS:
            return None
        equal = [
            one
            for one in self.lower
            if one.saves and one.survival is not None and one.survival >= present - SAME_SURVIVAL
        ]
        return min(equal, key=lambda one: one.dollars, default=None)

    @property
    def lowest_cost(self) -> LevelResult | None:
        """The lower level of the lowest cost, whatever it loses."""
        saving = [one for one in self.lower if one.saves] if self.sessions >= MINIMUM_SESSIONS else []
        return min(saving, key=lambda one: one.dollars, default=None)

    def per_month(self, dollars: float) -> float | None:
        """Return dollars of the recorded time as dollars a month; None for less than a week."""
        return dollars * MONTH_DAYS / self.days if self.days >= MINIMUM_DAYS else None

    def per_week(self, compactions: float) -> float | None:
        """Return compactions of the recorded time as compactions a week; None for less than a week."""
        return compactions * 7 / self.days if self.days >= MINIMUM_DAYS else None


# -- reading --------------------------------------------------------------------------------------------------


def read_advice(store: EventReader, query: SessionFilter) -> list[ThresholdAdvice]:
    """Return the advice for each agent of the latest sessions that match *query*, the most expensive first.

    An agent whose sessions were hardly compacted, or have no price, has none.
    """
    sessions = latest_sessions(store, query)
    return advice_by_agent([SessionEvidence.read(store, row, store.turns(row.session_id)) for row in sessions])


class SessionEvidence(NamedTuple):
    """The rows and events of one session."""

    row: SessionRow
    calls: Sequence[TurnRow]
    """Calls that reported their input."""
    events: Sequence[tuple[int, object]]
    """Payloads with their turns."""

    @classmethod
    def read(cls, store: EventReader, row: SessionRow, turns: Sequence[TurnRow]) -> SessionEvidence:
        """Read the evidence of a session; *turns* are its turns."""
        types = tuple(kind.type for kind in _READ)
        query = EventFilter(session_id=row.session_id, types=types, limit=MAXIMUM_EVENTS)
        events = intact_events(store.events_or_damage(query))
        calls = [turn for turn in ended_turns(turns) if turn.input_tokens]
        return cls(row, calls, [(one.event.context.turn, one.event.data) for one in events])

    @property
    def compacted_turns(self) -> dict[int, bool]:
        """The turns of the first calls after compactions, and whether the user requested these."""
        triggers = {
            turn: data.trigger == "manual"
            for turn, data in self.events
            if isinstance(data, ContentCompressed) and data.is_compaction
        }
        first_calls = calls_after(self.calls, triggers)
        return {first_calls[turn]: requested for turn, requested in triggers.items()}


def advice_by_agent(evidence: Iterable[SessionEvidence]) -> list[ThresholdAdvice]:
    """Return the advice for each agent that has one, the most expensive first."""
    by_agent: dict[str, list[SessionEvidence]] = {}
    for item in evidence:
        by_agent.setdefault(item.row.agent, []).append(item)
    advice = (advice_of(agent, own) for agent, own in by_agent.items())
    return sorted((one for one in advice if one is not None), key=lambda one: -one.recorded_dollars)


def advice_of(agent: str, evidence: Sequence[SessionEvidence]) -> ThresholdAdvice | None:
    """Return the advice for one agent; None where no level can be compared."""
    compactions = _compactions(evidence)
    sessions = [one for item in evidence if (one := _session(item)) is not None]
    if compactions is None or not sessions:
        return None
    levels = sorted(one.level_tokens for one in sessions)
    smallest = SMALLEST_WINDOW_RATIO * (compactions.tokens_after + compactions.fetched_again_tokens)
    if agent in (CLAUDE_CODE, CLAUDE_CODE_AGENT):
        smallest = max(smallest, CLAUDE_CODE_SMALLEST_LEVEL)
    tried = [level for level in LEVELS if smallest <= level < levels[-1]]
    present = [_replay(one, compactions, one.level_tokens) for one in sessions]
    lower = [(level, [_replay(one, compactions, level) for one in sessions]) for level in tried]
    times = [at for item in evidence for at in (item.row.started_at, item.row.last_at) if at is not None]
    return ThresholdAdvice(
        agent=agent,
        sessions=len(sessions),
        days=(max(times) - min(times)) / DAY_SECONDS if times else 0.0,
        recorded_dollars=math.fsum(one.dollars for one in sessions),
        compactions=compactions,
        present=_result(None, present, present, compactions),
        lower=[_result(level, replays, present, compactions) for level, replays in lower if replays != present],
        level_tokens=int(median(levels)),
        levels=(levels[0], levels[-1]),
        limit_tokens=max((item.row.limit_tokens or 0 for item in evidence), default=0) or None,
    )


def _session(item: SessionEvidence) -> RecordedSession | None:
    level = item.row.compaction_tokens or item.row.limit_tokens
    costs = [turn.cost_dollars for turn in item.calls]
    if not level or not costs or None in costs:
        return None
    dollars = math.fsum(cost for cost in costs if cost is not None)
    return RecordedSession(item.row.session_id, tuple(_steps(item)), level, dollars)


def _steps(item: SessionEvidence) -> Iterable[CallStep]:
    again: Counter[int] = Counter()
    for turn, data in item.events:
        if isinstance(data, ContentRegretted) and data.cause == "compression":
            again[turn] += data.tokens
    broken = {turn: data for turn, data in item.events if isinstance(data, CacheBroken)}
    compacted = item.compacted_turns
    before: TurnRow | None = None
    for call in item.calls:
        used = call.used_final or 0
        lost = broken.get(call.turn)
        share = lost.rewritten_tokens / lost.cached_tokens if lost is not None and lost.cached_tokens else 0.0
        is_first = before is None or call.window_id != before.window_id
        since = 0 if before is None else before.turn
        requested = [by_user for turn, by_user in compacted.items() if since < turn <= call.turn]
        grown = 0 if before is None or requested else used - (before.used_final or 0) - again[call.turn]
        yield CallStep(
            call.model,
            grown,
            used if is_first else None,
            call.output_tokens or 0,
            min(1.0, share),
            any(requested),
        )
        before = call


def _compactions(evidence: Sequence[SessionEvidence]) -> RecordedCompactions | None:
    after: list[int] = []
    cached: list[float] = []
    summaries: list[int] = []
    fetched_again = number = 0
    followed: Counter[int] = Counter()
    visible: Counter[int] = Counter()
    with_rules = 0
    for item in evidence:
        number += len(item.compacted_turns)
        for turn in item.compacted_turns:
            first = next((call for call in item.calls if call.turn >= turn), None)
            if first is not None and first.used_final:
                after.append(first.used_final)
                cached.append((first.cache_read_tokens or 0) / first.used_final)
        for _, data in item.events:
            match data:
                case ContentCompressed(strategy="compaction", outcome="accepted", scope="content"):
                    summaries.append(data.tokens_after)
                case ContentRegretted(cause="compression"):
                    fetched_again += data.tokens
                case RulesFollowed():
                    with_rules += bool(data.followed_by_compactions)
                    followed.update(dict(enumerate(data.followed_by_compactions)))
                    visible.update(dict(enumerate(data.visible_by_compactions)))
    if len(after) < MINIMUM_COMPACTIONS:
        return None
    most = max(followed, default=-1) + 1
    return RecordedCompactions(
        len(after),
        int(median(after)),
        min(1.0, median(cached)),
        int(median(summaries)) if summaries else 0,
        fetched_again // number,
        [followed[index] for index in range(most)],
        [visible[index] for index in range(most)],
        with_rules,
    )


# -- replay ---------------------------------------------------------------------------------------------------


class Replayed(NamedTuple):
    """One session at one level."""

    dollars: float
    compactions: int
    calls: Counter[int]
    """Calls by the compactions before them."""


def _replay(session: RecordedSession, recorded: RecordedCompactions, level_tokens: int) -> Replayed:
    level = min(level_tokens, session.level_tokens)
    dollars, compactions, window, cached = 0.0, 0, 0, 0
    calls: Counter[int] = Counter()
    for step in session.steps:
        if step.restart_tokens is not None:
            window, cached = step.restart_tokens, 0
        else:
            window = max(1, window + step.grown_tokens)
        if cached and (window >= level or step.is_requested):
            dollars += _price(step.model, cached, window - cached, recorded.summary_tokens)
            window = recorded.tokens_after + recorded.fetched_again_tokens
            cached = int(recorded.cache_ratio * recorded.tokens_after)
            compactions += 1
        read = min(window, int(cached * (1 - step.rewritten_share)))
        dollars += _price(step.model, read, window - read, step.output_tokens)
        cached = window
        calls[compactions] += 1
    return Replayed(dollars, compactions, calls)


def _price(model: str, read: int, written: int, output: int) -> float:
    """Return the price of one call; Anthropic's models charge what is written to the cache."""
    is_charged = "claude" in model
    usage = Usage(
        input_tokens=0 if is_charged else written,
        output_tokens=output,
        cache_read_tokens=read,
        cache_write_tokens=written if is_charged else 0,
    )
    return packaged_catalog().cost_dollars(model, usage, None) or 0.0


def _result(
    level: int | None, replays: Sequence[Replayed], present: Sequence[Replayed], recorded: RecordedCompactions
) -> LevelResult:
    saved = [before.dollars - after.dollars for before, after in zip(present, replays, strict=True)]
    low, high = mean_interval(saved, confidence=CONFIDENCE)
    return LevelResult(
        level,
        math.fsum(one.dollars for one in replays),
        sum(one.compactions for one in replays),
        _survival(replays, recorded.survival),
        math.fsum(saved),
        low * len(saved),
        high * len(saved),
    )


def _survival(replays: Sequence[Replayed], survival: Callable[[int], float | None]) -> float | None:
    calls: Counter[int] = Counter()
    for one in replays:
        calls.update(one.calls)
    shares = {number: survival(number) for number in calls}
    if survival(1) is None or not calls:
        return None
    return math.fsum((shares[number] or 0.0) * made for number, made in calls.items()) / calls.total()
