"""The peak of a window, as a ratio of the limit that it really had, and the trend report of a session."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from windowpane.core.events import CompactionMeasured, LimitChanged, PressureMeasured, SessionStarted, TrendReport
from windowpane.core.limits import Thresholds, WindowLimits
from windowpane.core.vocabulary import ZONES, LimitSource, Zone

OBSERVED: Final[frozenset[str | None]] = frozenset({"observed_floor", "observed_compaction"})
"""Sources of a limit that the window itself showed: the limit before it never was."""
REFUTABLE: Final[frozenset[str | None]] = OBSERVED | {
    "settings", "status_line", "earlier", "catalogue", "assumed",
}  # fmt: skip
"""Sources of a limit that the provider may correct."""
MAXIMUM_LIMITS: Final = 16
"""Limits of one session that are kept; of more, those of the fullest calls."""


@dataclass(slots=True)
class Moment:
    """The size of the window at one measurement."""

    tokens: int
    limit_tokens: int | None
    turn: int
    zone: Zone | None = None

    @property
    def utilization(self) -> float | None:
        """Tokens / limit; None if the limit is unknown."""
        return self.tokens / self.limit_tokens if self.limit_tokens else None

    def under(self, limits: WindowLimits | None) -> Moment:
        """Return the moment as it is in a window of other limits."""
        if limits is None:
            return Moment(self.tokens, None, self.turn)
        return Moment(self.tokens, limits.limit_tokens, self.turn, limits.zone_of(self.tokens))


@dataclass(slots=True)
class WindowPeak:
    """The fullest call of a session, or its window as it is now where that is fuller.

    The fullest is the one with the highest ratio of its limit; the most tokens where no limit is known. Once the
    provider reported a total, estimates no longer count, except that of now. A change of the limit that corrects
    what was known replaces the limit of the calls before it; after a change of the model or of a setting each
    call keeps its own.
    """

    has_totals: bool = False
    calls: list[Moment] = field(default_factory=list)
    """The fullest call under each limit."""
    now: Moment | None = None
    source: LimitSource | None = None
    """Source of the limit of the last measurement."""
    model: str = ""
    """Model of the last measurement."""
    refuted: list[int] = field(default_factory=list)
    """Limits that never were, under which a compaction may still be measured."""
    kept_zone: Zone | None = None
    """Worst zone of the estimates before the first total, if the window had overflowed by then."""

    def count(self, measured: PressureMeasured, turn: int, model: str, *, overflowed: bool = False) -> None:
        """Count a measurement."""
        self.source, self.model = measured.limit_source, model or self.model
        now = self.now = Moment(measured.used_tokens, measured.limit_tokens, turn, measured.zone)
        is_total = measured.phase == "final" and measured.count_source == "usage"
        if measured.phase != "next" and (is_total or not self.has_totals):
            self._add(now, is_total=is_total, overflowed=overflowed)

    def count_all(self, measurements: Iterable[tuple[PressureMeasured, int, str]], *, overflowed: bool) -> None:
        """Count measurements, each with its turn and model."""
        for measured, turn, model in measurements:
            self.count(measured, turn, model, overflowed=overflowed)

    def count_compaction(self, measured: CompactionMeasured, turn: int, *, overflowed: bool = False) -> None:
        """Count the window before a compaction as the provider or, before the first call, the agent states it."""
        before = Moment(measured.tokens_before, measured.limit_tokens, turn, measured.zone_before)
        if measured.limit_tokens in self.refuted and self.now is not None:
            before.limit_tokens, before.zone = self.now.limit_tokens, None
        self._add(before, is_total=True, overflowed=overflowed)

    def change_limit(self, change: LimitChanged, model: str) -> WindowLimits | None:
        """Measure the window as it is now against the new limit; where it is a correction, earlier calls too.

        Returns the limits that replace the earlier ones of `previous_tokens`; None where both were true.
        """
        limits = limits_of(change)
        is_same_model = self.model in ("", model)
        is_correction = limits is not None and corrects(
            change.limit_source, self.source, is_same_model=is_same_model
        )
        self.source = change.limit_source
        if self.now is not None:
            self.now = self.now.under(limits)
        if not is_correction or limits is None:
            return None
        self.calls = [
            call.under(limits) if call.limit_tokens == change.previous_tokens else call for call in self.calls
        ]
        if change.previous_tokens is not None and change.previous_tokens not in self.refuted:
            self.refuted = [*self.refuted[1 - MAXIMUM_LIMITS :], change.previous_tokens]
        if limits.limit_tokens in self.refuted:
            self.refuted.remove(limits.limit_tokens)
        return limits

    @property
    def fullest(self) -> Moment | None:
        """The peak; None before the first measurement."""
        return max(self._moments(), key=_fullness, default=None)

    @property
    def largest_total(self) -> int:
        """The largest total that the provider reported; 0 without one."""
        return max((call.tokens for call in self.calls), default=0) if self.has_totals else 0

    @property
    def worst_zone(self) -> Zone | None:
        """The worst zone of all moments that count."""
        zones = (self.kept_zone, *(moment.zone for moment in self._moments()))
        return max((zone for zone in zones if zone is not None), key=ZONES.index, default=None)

    def _moments(self) -> list[Moment]:
        return self.calls if self.now is None else [*self.calls, self.now]

    def _add(self, moment: Moment, *, is_total: bool, overflowed: bool) -> None:
        if is_total and not self.has_totals:
            self.kept_zone = self.worst_zone if overflowed else None
            self.has_totals, self.calls = True, []
        for call in self.calls:
            if call.limit_tokens == moment.limit_tokens:
                if moment.tokens > call.tokens:
                    call.tokens, call.turn = moment.tokens, moment.turn
                if moment.zone != call.zone:
                    call.zone = max((call.zone, moment.zone), key=_rank)
                return
        self.calls = sorted(self.calls, key=_fullness)[1 - MAXIMUM_LIMITS :]
        self.calls.append(replace(moment))


class TrendCounters:
    """Counters for the trend report of one session."""

    def __init__(self) -> None:
        self.evicted_blocks = 0
        self.compressions = 0
        self.regrets = 0
        self.peak = WindowPeak()
        self._final_used = 0
        self._cost: float | None = None
        self._zones: dict[Zone, int] = {}
        self._turns = 0

    def count(
        self, measured: PressureMeasured, turn: int, model: str, *, cost_dollars: float | None = None
    ) -> None:
        """Count a measurement; the final one of a turn counts it, with the cost of its call."""
        self.peak.count(measured, turn, model)
        if measured.phase != "final":
            return
        self._turns += 1
        self._final_used = measured.used_tokens
        if measured.zone is not None:
            self._zones[measured.zone] = self._zones.get(measured.zone, 0) + 1
        if cost_dollars is not None:
            self._cost = (self._cost or 0.0) + cost_dollars

    def report(self, *, added_tokens: int, counted_turns: int) -> TrendReport:
        """Return the trend report; *added_tokens* is the growth in *counted_turns*."""
        peak = self.peak.fullest
        return TrendReport(
            turns=self._turns,
            peak_used_tokens=peak.tokens if peak else 0,
            peak_utilization=peak.utilization if peak else None,
            final_used_tokens=self._final_used,
            mean_added_tokens=added_tokens / counted_turns if counted_turns else 0.0,
            evicted_blocks=self.evicted_blocks,
            compressions=self.compressions,
            regrets=self.regrets,
            cost_dollars=self._cost,
            zones=dict(self._zones),
        )


def corrects(source: LimitSource | None, before: LimitSource | None, *, is_same_model: bool) -> bool:
    """Return whether a limit of *source* shows that the one *before* never was; else the window changed."""
    return source in OBSERVED or (source == "provider" and is_same_model and before in REFUTABLE)


def limits_of(change: LimitChanged | SessionStarted) -> WindowLimits | None:
    """Return the limits that *change* states; None where they are unknown or impossible, as a recording may."""
    if change.limit_tokens is None or change.limit_source is None:
        return None
    try:
        thresholds = Thresholds(change.yellow_ratio, change.orange_ratio, change.red_ratio, hysteresis=0.0)
        return WindowLimits(
            change.limit_tokens, change.limit_source, change.reserved_tokens, change.margin_tokens, thresholds
        )
    except ValueError:
        return None


def _fullness(moment: Moment) -> tuple[float, int]:
    utilization = moment.utilization
    return (-1.0 if utilization is None else utilization, moment.tokens)


def _rank(zone: Zone | None) -> int:
    return -1 if zone is None else ZONES.index(zone)
