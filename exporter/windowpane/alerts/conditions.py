"""The quantities that alert conditions are judged on, and what must be remembered of a session to know them.

Most are fields of `pressure.measured`; a few look back over several turns. All of it is bounded by those
horizons, so a session of any length costs the same. None is unknown, and unknown neither fires nor resolves.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from windowpane.alerts.rules import (
    CHURN_TURNS,
    COMPRESSION_SAMPLES,
    MINIMUM_OUTPUT_RATIO,
    MINIMUM_OUTPUT_TOKENS,
    REGRET_TURNS,
    SPIKE_MULTIPLE,
    Rule,
)
from windowpane.core.events import (
    BlocksEvicted,
    BreakerOpened,
    ContentCompressed,
    ContentRegretted,
    FidelityEvaluated,
    OverflowDetected,
    Payload,
    PressureMeasured,
    VelocitySpiked,
    WindowRolled,
    ZoneChanged,
)
from windowpane.core.vocabulary import ZONES


class Occurrence(NamedTuple):
    """Something happened that rules of kind `occurrence` wait for."""

    judges: str
    value: float | None
    threshold: float | None = None


@dataclass(slots=True)
class _Eviction:
    """Tokens evicted in one turn, and how many of them were needed again."""

    turn: int
    tokens: int = 0
    regretted: int = 0


class Tallies:
    """What one session's conditions need to remember beyond the latest pressure."""

    __slots__ = ("_compressions", "_evictions", "_reduced", "_zone_changes", "fidelity", "pressure")

    def __init__(self) -> None:
        self.pressure: PressureMeasured | None = None
        """The latest, of any phase."""
        self.fidelity: float | None = None
        """Score of the last evaluated compression."""
        self._compressions: deque[tuple[int, int]] = deque(maxlen=COMPRESSION_SAMPLES)
        self._evictions: deque[_Eviction] = deque(maxlen=REGRET_TURNS)
        self._reduced: deque[int] = deque(maxlen=CHURN_TURNS)
        self._zone_changes: deque[int] = deque(maxlen=4 * CHURN_TURNS)

    def take(self, data: Payload, turn: int) -> tuple[Occurrence, ...]:
        """Take in what happened in *turn*; returns what occurrence rules may wait for."""
        match data:
            case PressureMeasured():
                self.pressure = data
            case BlocksEvicted():
                self._reduce(turn)
                self._evicted(turn).tokens += data.tokens_removed
            case ContentCompressed():
                return self._compressed(data, turn)
            case FidelityEvaluated():
                if data.score is not None:
                    self.fidelity = data.score
            case ContentRegretted():
                if data.cause == "eviction":
                    self._regretted(data)
            case ZoneChanged():
                self._zone_changes.append(turn)
            case _:
                return _occurrences(data)
        return ()

    @property
    def compression_ratio(self) -> float | None:
        """Original over result tokens of the last three compressions together."""
        after = sum(result for _, result in self._compressions)
        return sum(original for original, _ in self._compressions) / after if after else None

    def regret_ratio(self, turn: int) -> float | None:
        """Share of the tokens evicted in the last 20 turns that was needed again; None before any eviction."""
        if not self._evictions:
            return None
        recent = [eviction for eviction in self._evictions if eviction.turn > turn - REGRET_TURNS]
        tokens = sum(eviction.tokens for eviction in recent)
        return min(1.0, sum(eviction.regretted for eviction in recent) / tokens) if tokens else 0.0

    def reductions(self, turn: int) -> int:
        """Of the last 10 turns, how many reduced the window: a cascade within one turn is one reduction."""
        return sum(reduced > turn - CHURN_TURNS for reduced in self._reduced)

    def zone_changes(self, turn: int) -> int:
        """Zone changes in the last 10 turns."""
        return sum(changed > turn - CHURN_TURNS for changed in self._zone_changes)

    def _compressed(self, data: ContentCompressed, turn: int) -> tuple[Occurrence, ...]:
        if data.outcome != "accepted":
            return ()
        self._reduce(turn)
        if data.ratio is not None:
            self._compressions.append((data.tokens_before, data.tokens_after))
        return (Occurrence("compaction.accepted", data.tokens_after),) if data.strategy == "compaction" else ()

    def _reduce(self, turn: int) -> None:
        if not self._reduced or self._reduced[-1] != turn:
            self._reduced.append(turn)

    def _evicted(self, turn: int) -> _Eviction:
        if not self._evictions or self._evictions[-1].turn != turn:
            self._evictions.append(_Eviction(turn))
        return self._evictions[-1]

    def _regretted(self, data: ContentRegretted) -> None:
        for eviction in self._evictions:
            if eviction.turn == data.turn_left:
                eviction.regretted += data.tokens


def _occurrences(data: Payload) -> tuple[Occurrence, ...]:
    match data:
        case VelocitySpiked():
            return (Occurrence("velocity.spiked", data.added_tokens, SPIKE_MULTIPLE * data.baseline_tokens),)
        case OverflowDetected():
            overflow = Occurrence("overflow.detected", data.used_tokens, data.limit_tokens)
            failed = data.outcome == "failed"
            return (overflow, overflow._replace(judges="reduction.exhausted")) if failed else (overflow,)
        case BreakerOpened():
            return (Occurrence("reduction.exhausted", None),)
        case WindowRolled():
            return (Occurrence("window.rolled", data.tokens_before),)
        case _:
            return ()


TAKEN: Final[frozenset[type[Payload]]] = frozenset(
    {
        PressureMeasured,
        BlocksEvicted,
        ContentCompressed,
        FidelityEvaluated,
        ContentRegretted,
        ZoneChanged,
        VelocitySpiked,
        OverflowDetected,
        BreakerOpened,
        WindowRolled,
    }
)
"""The payloads that matter to a condition; all others are passed over."""


def _room(pressure: PressureMeasured) -> float | None:
    return None if pressure.limit_tokens is None else float(pressure.limit_tokens - pressure.used_tokens)


_LEVELS: Final[dict[str, Callable[[PressureMeasured, Tallies, int], float | None]]] = {
    "utilization": lambda pressure, _tallies, _turn: pressure.utilization,
    "eviction_rate": lambda pressure, _tallies, _turn: pressure.eviction_rate,
    "tool_result_ratio": lambda pressure, _tallies, _turn: pressure.tool_result_ratio,
    "turns_until_red": lambda pressure, _tallies, _turn: pressure.turns_until_red,
    "room_tokens": lambda pressure, _tallies, _turn: _room(pressure),
    "regret_ratio": lambda _pressure, tallies, turn: tallies.regret_ratio(turn),
    "reductions": lambda _pressure, tallies, turn: tallies.reductions(turn),
    "zone_changes": lambda _pressure, tallies, turn: tallies.zone_changes(turn),
    "estimate_error": lambda pressure, _tallies, _turn: (
        None if pressure.estimate_error is None else abs(pressure.estimate_error)
    ),
    "zone": lambda pressure, _tallies, _turn: None if pressure.zone is None else ZONES.index(pressure.zone),
    "used_tokens": lambda pressure, _tallies, _turn: pressure.used_tokens,
    "compression_ratio": lambda _pressure, tallies, _turn: tallies.compression_ratio,
    "fidelity": lambda _pressure, tallies, _turn: tallies.fidelity,
}


def value_of(rule: Rule, pressure: PressureMeasured, tallies: Tallies, turn: int) -> float | None:
    """The quantity that *rule* judges at the end of *turn*; None when it is unknown."""
    return _LEVELS[rule.judges](pressure, tallies, turn)


def sample_of(rule: Rule, tallies: Tallies) -> float | None:
    """The latest value of a sampled quantity; None when there was none."""
    return tallies.compression_ratio if rule.judges == "compression_ratio" else tallies.fidelity


def threshold_of(rule: Rule, pressure: PressureMeasured | None) -> float | None:
    """What *rule* compares with in the window that *pressure* measured; None when the window does not say."""
    if rule.threshold_from is None or pressure is None:
        return rule.threshold
    limit = pressure.limit_tokens
    if limit is None:
        return None
    if rule.threshold_from == "output_reserve":
        return min(float(MINIMUM_OUTPUT_TOKENS), MINIMUM_OUTPUT_RATIO * limit)
    return None if pressure.red_tokens is None else pressure.red_tokens / limit


def in_scope(rule: Rule, pressure: PressureMeasured) -> bool | None:
    """Whether the window is in the zones where *rule* applies; None when the zone is unknown."""
    if rule.from_zone is None:
        return True
    return None if pressure.zone is None else ZONES.index(pressure.zone) >= ZONES.index(rule.from_zone)
