"""The signals that alert rules are evaluated on, computed from the events of one session.

Most signals are fields of `pressure.measured`; a few look back over several turns. The history is bounded by
those horizons, so that memory does not grow with the session. None is an unknown value: it neither fires nor
resolves.
"""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from statistics import median
from typing import Final, NamedTuple

from windowpane.alerts.rules import (
    CHURN_TURNS,
    COMPRESSION_SAMPLES,
    EVICTING_TURNS,
    LOOP_REPEATS,
    LOOP_TURNS,
    MINIMUM_OUTPUT_RATIO,
    Rule,
)
from windowpane.core.events import (
    BlockAdded,
    BlocksEvicted,
    BreakerOpened,
    ContentCompressed,
    ContentRegretted,
    Event,
    FidelityEvaluated,
    OverflowDetected,
    Payload,
    PressureMeasured,
    RuleOutcome,
    RulesFollowed,
    VelocitySpiked,
    WindowRolled,
    ZoneChanged,
)
from windowpane.core.limits import REGRET_TURNS, SPIKE_MULTIPLE
from windowpane.core.vocabulary import REWOUND, STATIC_TYPES, ZONES, counts_as_lost
from windowpane.core.window.blocks import Block
from windowpane.core.zones import MINIMUM_OUTPUT_TOKENS

RELEVANT_PAYLOADS: Final[frozenset[type[Payload]]] = frozenset(
    {
        PressureMeasured,
        BlockAdded,
        BlocksEvicted,
        ContentCompressed,
        FidelityEvaluated,
        ContentRegretted,
        ZoneChanged,
        VelocitySpiked,
        OverflowDetected,
        BreakerOpened,
        WindowRolled,
        RulesFollowed,
    }
)
"""The payloads that change a signal; all others are skipped."""


FIDELITY_BASELINE: Final = 20
"""Scores that the usual fidelity is the median of, the newest."""
MINIMUM_BASELINE: Final = 3
USUAL_SHARE: Final = 0.5
"""Share of the usual fidelity below which a compression is unusually bad."""
MAXIMUM_CALLS: Final = 128
"""Calls that are remembered to recognize a repetition."""


class Occurrence(NamedTuple):
    """An event that rules of kind `occurrence` wait for."""

    signal: str
    value: float | None
    threshold: float | None = None
    subject: str = ""
    """The rule that it is about, which is content."""


class DueEvent(NamedTuple):
    """An event after which rules are evaluated."""

    event: Event
    occurrences: tuple[Occurrence, ...]
    has_samples: bool
    """Rules on samples are evaluated: anything was compressed so far, and the event is not an added block."""


class Reading(NamedTuple):
    """One rule's signal with what it is compared to."""

    rule: Rule
    value: float
    threshold: float
    in_scope: bool
    """The rule applies to the window's zone and to what is known of its size."""


@dataclass(slots=True)
class _TurnEvictions:
    """Tokens evicted in one turn, and how many of them were needed again."""

    turn: int
    tokens: int = 0
    regretted: int = 0
    largest: ContentRegretted | None = None
    """The largest of these."""


class _Returned(NamedTuple):
    """The result of a tool call."""

    turn: int
    result: tuple[str, str, str]
    """The tool, and the digests of its arguments and of what it returned."""
    is_new: bool
    """It did not come in the ten turns before."""


class RepeatedCalls:
    """Counts tool calls that return what the same call returned before; a call is its tool and its arguments.

    Anything new ends a repetition: a check that is run again after each edit does not count.
    """

    __slots__ = ("_calls", "_returned")

    def __init__(self) -> None:
        self._calls: OrderedDict[str, tuple[str, str]] = OrderedDict()
        self._returned: deque[_Returned] = deque(maxlen=MAXIMUM_CALLS)

    def record(self, block: Block, turn: int) -> tuple[Occurrence, ...]:
        """Record a block; return an occurrence for a result that came for the third time in ten turns."""
        call_id = block.tool_call_id
        if call_id is None:
            return ()
        if block.content_type == "tool_call":
            self._calls[call_id] = (block.tool_name or "", block.digest)
            if len(self._calls) > MAXIMUM_CALLS:
                self._calls.popitem(last=False)
        elif block.content_type == "tool_result" and block.replaces is None:
            call = self._calls.pop(call_id, None)
            if call is not None:
                times = self._times((*call, block.digest), turn)
                if times >= LOOP_REPEATS:
                    return (Occurrence("call.repeated", times),)
        return ()

    def _times(self, result: tuple[str, str, str], turn: int) -> int:
        """Record a result; return how often it came in the last ten turns, since any result that was new."""
        recent = list(takewhile(lambda one: one.turn > turn - LOOP_TURNS, reversed(self._returned)))
        returned = _Returned(turn, result, is_new=all(one.result != result for one in recent))
        self._returned.append(returned)
        times = 0
        for one in (returned, *recent):
            times += one.result == result
            if one.is_new:
                break
        return times


class SignalHistory:
    """The recent events of one session, as far as signals look back."""

    __slots__ = (
        "_assumed_level", "_compressions", "_earlier_fidelity", "_evaluated_id", "_evictions", "_reduced_turns",
        "_repeated", "_zone_changes", "entered", "fidelity", "is_managed", "pressure",
    )  # fmt: skip

    def __init__(self) -> None:
        self.pressure: PressureMeasured | None = None
        """The latest, of any phase."""
        self.entered: PressureMeasured | None = None
        """The first in the present zone."""
        self.fidelity: float | None = None
        """Score of the last compression that was evaluated."""
        self._evaluated_id = ""
        """Event id of that compression; ids of a session grow."""
        self.is_managed = False
        """True if a manager reduced the window under pressure, and could whenever it had to since."""
        self._assumed_level: int | None = None
        """Level at which the agent compacts in a window of the assumed size; None for a certain size."""
        self._compressions: deque[tuple[int, int]] = deque(maxlen=COMPRESSION_SAMPLES)
        self._evictions: deque[_TurnEvictions] = deque(maxlen=REGRET_TURNS)
        self._reduced_turns: deque[int] = deque(maxlen=CHURN_TURNS)
        self._zone_changes: deque[int] = deque(maxlen=4 * CHURN_TURNS)
        self._earlier_fidelity: deque[float] = deque(maxlen=FIDELITY_BASELINE)
        self._repeated = RepeatedCalls()

    def next_due(self, events: Iterator[Event]) -> DueEvent | None:
        """Record the session's *events* up to the next one after which rules are evaluated."""
        for event in events:
            data = event.data
            occurrences = self.record(data, event.context.turn)
            ends_turn = isinstance(data, PressureMeasured) and data.phase == "final"
            has_samples = self.has_samples and not isinstance(data, BlockAdded)
            if occurrences or ends_turn or has_samples:
                return DueEvent(event, occurrences, has_samples)
        return None

    def record(self, data: Payload, turn: int) -> tuple[Occurrence, ...]:
        """Record an event of *turn*; return the occurrences that rules may wait for."""
        match data:
            case PressureMeasured():
                self._record_pressure(data)
            case BlocksEvicted():
                self._record_eviction(data, turn)
            case ContentCompressed():
                return self._record_compression(data, turn)
            case BlockAdded():
                return self._repeated.record(data.block, turn)
            case FidelityEvaluated():
                self._record_fidelity(data)
            case ContentRegretted():
                if data.cause == "eviction":
                    self._record_regret(data)
            case ZoneChanged():
                self._zone_changes.append(turn)
            case _:
                occurrences = _occurrences(data)
                self.is_managed &= all(one.signal != "reduction.exhausted" for one in occurrences)
                return occurrences
        return ()

    @property
    def limit_in_doubt(self) -> bool:
        """True if the size of the window is assumed, and the agent did not compact where it does in this size.

        The window is then probably larger: of the recorded agents that went on, each had a larger one.
        """
        pressure, level = self.pressure, self._assumed_level
        if pressure is None or level is None or pressure.compaction_tokens is not None:
            return False
        return pressure.used_tokens >= level

    @property
    def usual_fidelity(self) -> float | None:
        """Median score of the compressions before the last; None before three of them."""
        earlier = self._earlier_fidelity
        return median(earlier) if len(earlier) >= MINIMUM_BASELINE else None

    @property
    def has_samples(self) -> bool:
        """Return whether anything was compressed, or a compression evaluated, so far."""
        return self.fidelity is not None or bool(self._compressions)

    @property
    def compression_ratio(self) -> float | None:
        """Original over result tokens of the last three compressions together."""
        after = sum(result for _, result in self._compressions)
        return sum(original for original, _ in self._compressions) / after if after else None

    def regret_ratio(self, turn: int) -> float | None:
        """Return the share of tokens evicted in the last 20 turns that was needed again; None if none were."""
        if not self._evictions:
            return None
        recent = [eviction for eviction in self._evictions if eviction.turn > turn - REGRET_TURNS]
        tokens = sum(eviction.tokens for eviction in recent)
        return min(1.0, sum(eviction.regretted for eviction in recent) / tokens) if tokens else 0.0

    def largest_regret(self, turn: int) -> str:
        """Return the file or command of the largest of these; empty where none names one."""
        recent = (eviction.largest for eviction in self._evictions if eviction.turn > turn - REGRET_TURNS)
        largest = max((one for one in recent if one is not None), key=lambda one: one.tokens, default=None)
        return "" if largest is None else f"{largest.tool_name or ''} {largest.target or ''}".strip()

    def eviction_rate(self, turn: int) -> float:
        """Return the blocks evicted per turn; 0 after a single removal, however many blocks it removed."""
        if not self._evictions:
            return 0.0
        evicting = sum(eviction.turn > turn - REGRET_TURNS for eviction in self._evictions)
        return self.pressure.eviction_rate if self.pressure and evicting >= EVICTING_TURNS else 0.0

    def reductions(self, turn: int) -> int:
        """Return how many of the last 10 turns reduced the window; a cascade within one turn counts once."""
        return sum(reduced > turn - CHURN_TURNS for reduced in self._reduced_turns)

    def zone_changes(self, turn: int) -> int:
        """Return the number of zone changes in the last 10 turns."""
        return sum(changed > turn - CHURN_TURNS for changed in self._zone_changes)

    def _record_pressure(self, data: PressureMeasured) -> None:
        if self.pressure is None or self.pressure.zone != data.zone:
            self.entered = data
        self.pressure = data
        if data.limit_source != "assumed":
            self._assumed_level = None
        elif data.compaction_tokens is not None:
            self._assumed_level = data.compaction_tokens

    def _record_compression(self, data: ContentCompressed, turn: int) -> tuple[Occurrence, ...]:
        if data.outcome != "accepted":
            return ()
        self._record_reduction(turn)
        self.is_managed |= data.trigger == "pressure" and data.method != "agent"
        if data.ratio is not None:
            self._compressions.append((data.tokens_before, data.tokens_after))
        return (Occurrence("compaction.accepted", data.tokens_after),) if data.strategy == "compaction" else ()

    def _record_eviction(self, data: BlocksEvicted, turn: int) -> None:
        if data.policy == REWOUND:
            return  # the user left a branch: nothing was taken from the conversation
        if data.blocks and all(block.content_type in STATIC_TYPES for block in data.blocks):
            return  # another system prompt or other tools, likewise
        self._record_reduction(turn)
        self.is_managed |= data.target_tokens is not None
        self._evictions_of(turn).tokens += data.tokens_removed

    def _record_fidelity(self, data: FidelityEvaluated) -> None:
        if data.score is None:
            return
        if data.of is not None and data.of < self._evaluated_id:  # a judge takes longer than a probe
            self._earlier_fidelity.append(data.score)
            return
        if self.fidelity is not None:
            self._earlier_fidelity.append(self.fidelity)
        self.fidelity, self._evaluated_id = data.score, data.of or self._evaluated_id

    def _record_reduction(self, turn: int) -> None:
        if not self._reduced_turns or self._reduced_turns[-1] != turn:
            self._reduced_turns.append(turn)

    def _evictions_of(self, turn: int) -> _TurnEvictions:
        if not self._evictions or self._evictions[-1].turn != turn:
            self._evictions.append(_TurnEvictions(turn))
        return self._evictions[-1]

    def _record_regret(self, data: ContentRegretted) -> None:
        for eviction in self._evictions:
            if eviction.turn == data.turn_left:
                eviction.regretted += data.tokens
                if eviction.largest is None or data.tokens > eviction.largest.tokens:
                    eviction.largest = data


def _occurrences(data: Payload) -> tuple[Occurrence, ...]:
    match data:
        case VelocitySpiked():
            return (Occurrence("velocity.spiked", data.added_tokens, SPIKE_MULTIPLE * data.baseline_tokens),)
        case OverflowDetected():
            overflow = Occurrence("overflow.detected", data.used_tokens, data.limit_tokens)
            failed = data.outcome == "failed"
            return (overflow, overflow._replace(signal="reduction.exhausted")) if failed else (overflow,)
        case BreakerOpened():
            return (Occurrence("reduction.exhausted", None),)
        case WindowRolled():
            return (Occurrence("window.rolled", data.tokens_before),)
        case RulesFollowed() if data.lost:
            lost = (_rule_text(rule) for rule in data.outcomes if counts_as_lost(rule.source, rule.fate))
            return (Occurrence("rule.lost", data.lost, subject=next(filter(None, lost), "")),)
        case _:
            return ()


def _rule_text(rule: RuleOutcome) -> str:
    """Return a rule with the clause that contradicts it; empty without its text."""
    text, claim = rule.text or "", rule.contradicted_by
    return f"{text} The summary states: {claim}" if text and claim else text


def _turns_until_compaction(pressure: PressureMeasured) -> float | None:
    """Return the forecast; infinite where there is no such level, None where it is not known yet."""
    return math.inf if pressure.compaction_tokens is None else pressure.turns_until_compaction


def _turns_until_red(pressure: PressureMeasured, history: SignalHistory) -> float | None:
    """Return the forecast; infinite where the agent, or its manager, reduces the window before it is red."""
    level, red = pressure.compaction_tokens, pressure.red_tokens
    if red is not None and pressure.used_tokens < red and (history.is_managed or (level or red) < red):
        return math.inf
    return pressure.turns_until_red


def _room(pressure: PressureMeasured) -> float | None:
    return None if pressure.limit_tokens is None else float(pressure.limit_tokens - pressure.used_tokens)


_SIGNALS: Final[dict[str, Callable[[PressureMeasured, SignalHistory, int], float | None]]] = {
    "utilization": lambda pressure, _history, _turn: pressure.utilization,
    "eviction_rate": lambda _pressure, history, turn: history.eviction_rate(turn),
    "tool_result_ratio": lambda pressure, _history, _turn: pressure.tool_result_ratio,
    "turns_until_red": lambda pressure, history, _turn: _turns_until_red(pressure, history),
    "turns_until_compaction": lambda pressure, _history, _turn: _turns_until_compaction(pressure),
    "room_tokens": lambda pressure, _history, _turn: _room(pressure),
    "regret_ratio": lambda _pressure, history, turn: history.regret_ratio(turn),
    "reductions": lambda _pressure, history, turn: history.reductions(turn),
    "zone_changes": lambda _pressure, history, turn: history.zone_changes(turn),
    "zone": lambda pressure, _history, _turn: None if pressure.zone is None else ZONES.index(pressure.zone),
    "used_tokens": lambda pressure, _history, _turn: pressure.used_tokens,
    "compression_ratio": lambda _pressure, history, _turn: history.compression_ratio,
    "fidelity": lambda _pressure, history, _turn: history.fidelity,
}


def level_readings(
    rules: Sequence[Rule], pressure: PressureMeasured, history: SignalHistory, turn: int
) -> list[Reading]:
    """Return the readings at the end of *turn* of those *rules* whose value, threshold and scope are known."""
    readings = []
    for rule in rules:
        value = _SIGNALS[rule.signal](pressure, history, turn)
        if value is None:
            continue
        scope, threshold = _in_scope(rule, pressure, history), _threshold_of(rule, pressure, history)
        if scope is not None and threshold is not None:
            readings.append(Reading(rule, value, threshold, scope))
    return readings


def sample_readings(rules: Sequence[Rule], history: SignalHistory) -> list[Reading]:
    """Return the latest readings of sampled signals; empty before the first sample."""
    readings = []
    for rule in rules:
        value = history.compression_ratio if rule.signal == "compression_ratio" else history.fidelity
        threshold = _threshold_of(rule, None, history)
        if value is not None and threshold is not None:
            readings.append(Reading(rule, value, threshold, in_scope=True))
    return readings


def _threshold_of(rule: Rule, pressure: PressureMeasured | None, history: SignalHistory) -> float | None:
    """Return the rule's threshold in the window of *pressure*; None when it depends on an unknown limit."""
    if rule.threshold_from is None:
        return rule.threshold
    if rule.threshold_from == "usual_fidelity":
        usual = history.usual_fidelity
        return rule.threshold if usual is None else usual * USUAL_SHARE
    if pressure is None:
        return rule.threshold
    limit = pressure.limit_tokens
    if limit is None:
        return None
    if rule.threshold_from == "output_reserve":
        return min(float(MINIMUM_OUTPUT_TOKENS), MINIMUM_OUTPUT_RATIO * limit)
    return None if pressure.red_tokens is None else pressure.red_tokens / limit


def _in_scope(rule: Rule, pressure: PressureMeasured, history: SignalHistory) -> bool | None:
    """Return whether *rule* applies to the window's zone and size; None when the size is unknown."""
    if rule.needs_certain_limit and history.limit_in_doubt:
        return False
    if rule.from_zone is None:
        return True
    return None if pressure.zone is None else ZONES.index(pressure.zone) >= ZONES.index(rule.from_zone)
