"""The pressure gauge: measures the window against its limit, and sums up a session's measurements at its end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from windowpane.core.events import PressureMeasured, TrendReport, Usage
from windowpane.core.limits import TrackerSettings, WindowLimits
from windowpane.core.tracking.compaction_level import CompactionLevel
from windowpane.core.tracking.forecast import COMPACTION_DELAY, GrowthHistory, forecast
from windowpane.core.tracking.peak import WindowPeak
from windowpane.core.tracking.token_account import (
    PLACEHOLDER_RATIO,
    TokenAccount,
    TotalReport,
    apportion,
    unseen_tokens,
)
from windowpane.core.vocabulary import COMPONENT_OF, NOT_ADDED, Component, CountSource, LimitSource, Phase, Zone
from windowpane.core.window.blocks import Block
from windowpane.core.window.window import Window

_UNKNOWN: Final = (None, None, None)
_Fill = tuple[int | None, LimitSource | None, int | None, float | None, float | None, Zone | None, int | None]
_UNLIMITED: Final[_Fill] = (None,) * 7


def _fill(used: int, limits: WindowLimits, previous: Zone) -> _Fill:
    """Return the fields of a `Pressure` from `limit_tokens` to `red_tokens`, which need the window's size."""
    limit, usable = limits.limit_tokens, limits.usable_tokens
    zone = limits.zone_of(used, previous=previous)
    return limit, limits.source, usable, used / limit, used / usable, zone, limits.red_tokens


class PressureGauge:
    """Counts the additions of a turn and measures the content of its call.

    A turn is measured by what its call sends: the reply and everything after it belong to the next call, which is
    measured too as soon as the reply is there.
    """

    def __init__(
        self, window: Window, settings: TrackerSettings, *, documented_growth: float | None = None
    ) -> None:
        self.account = TokenAccount()
        self.growth = GrowthHistory(settings, documented_growth=documented_growth)
        self.compaction_level: CompactionLevel | None = None
        """Level at which the agent compacts by itself."""
        self.zone: Zone = "green"
        self.added_tokens = 0
        """Tokens added in the open turn as counted at ingest; likewise by component."""
        self.added_by_component: dict[Component, int] = {}
        self.call_tokens = 0
        """Tokens that the turn's call sends, as counted at ingest; likewise by component."""
        self.call_components: dict[Component, int] = {}
        self.reply_tokens = 0
        """Tokens of the reply to the turn's call, as counted at ingest."""
        self.calls_tool = False
        """True if the reply calls a tool."""
        self.exact = True
        """True while every block was counted by the model's own tokenizer."""
        self.estimate_error: float | None = None
        self.cache_hit_ratio: float | None = None
        """Share of the last call's input that was read from the prompt cache."""
        self._window = window
        self._shares = [(name, share) for name, share in settings.budget.items() if share > 0]
        self._budget: list[tuple[Component, float]] = []
        """Budgets of the components in tokens, in a window of `_budget_limit`."""
        self._budget_limit: int | None = None
        self._grown_from: int | None = None
        """Used tokens at the end of the last turn, less what was removed since; None where no total compares."""
        self._added: int | None = None
        """Growth of the turn that ended; None while a turn is open."""
        self._hidden_reply = 0
        """Tokens of the last reply that no visible content explains."""
        self._reasoning = 0
        """Reasoning that the provider keeps until the tool loop ends."""

    @property
    def count_source(self) -> CountSource:
        """Source of the counts without a report by the provider."""
        return "exact" if self.exact and not self.account.anchored else "estimate"

    @property
    def added(self) -> int:
        """Tokens added in the turn: once it ended by the provider's totals if there are any, else calibrated."""
        return self._visible_growth if self._added is None else self._added

    @property
    def _visible_growth(self) -> int:
        return round(self.added_tokens * self.account.calibration)

    @property
    def used(self) -> int:
        """Tokens that the next call would send."""
        return self.account.used(self._window.tokens)

    def open_turn(self) -> None:
        """Reset the counts of the open turn."""
        self.added_tokens = 0
        self.added_by_component = {}
        self._added = None
        self.estimate_error = None
        self.growth.open_turn()

    def close_turn(self, turn: int) -> float | None:
        """Count the turn's growth; return the baseline that it spiked above, else None.

        Growth is the change of the used tokens where totals compare. What visible content cannot explain of it is
        unattributed; where content was removed unseen, only the visible additions are known.
        """
        visible, used = self._visible_growth, self.used
        added, unseen = visible, 0
        if self._grown_from is not None and self.account.anchored:
            grown = used - self._grown_from
            outside = unseen_tokens(grown, added=self.added_tokens)
            if outside >= 0:
                added = max(0, grown)
                unseen = max(0, grown - visible) if outside or not self.added_tokens else 0
        parts = {} if added == unseen else apportion(added - unseen, self.added_by_component)
        self.added_by_component = {**parts, "unattributed": unseen} if unseen else parts
        self._added, self._grown_from = added, used
        return self.growth.close_turn(turn, added, self.added_by_component)

    def count_call(self) -> None:
        """Take the window, as it is now, for the content of the turn's call."""
        self.call_tokens = self._window.tokens
        self.call_components = dict(self._window.tokens_by_component)
        self.reply_tokens, self.calls_tool = 0, False

    def count_reply(self, usage: Usage) -> None:
        """Count the tokens of the reply that the next call sends, by the provider's count of the output.

        Reasoning is not sent again, except where the provider keeps it until the tool loop ends.
        """
        if usage.output_tokens < PLACEHOLDER_RATIO * self.reply_tokens:
            return
        tokens = usage.output_tokens - usage.reasoning_tokens
        if self.calls_tool and usage.reasoning_retained:
            tokens += usage.reasoning_tokens
            self._reasoning += usage.reasoning_tokens
        else:
            tokens, self._reasoning = tokens - self._reasoning, 0
        self.account.add_reply(tokens, self.reply_tokens)
        if unseen_tokens(tokens, added=self.reply_tokens) > 0:
            self._hidden_reply = tokens - round(self.account.calibration * self.reply_tokens)

    def count_cache(self, usage: Usage | None) -> None:
        """Measure what the turn's call read from the prompt cache."""
        total = 0 if usage is None else usage.input_total
        self.cache_hit_ratio = usage.cache_read_tokens / total if usage is not None and total else None

    def count_total(self, total: int, *, first: bool) -> TotalReport:
        """Adopt the provider's total of the turn's call; nothing compares with the *first* of a window."""
        self._hidden_reply = 0
        if first:
            self._grown_from = None
        report = self.account.report(total, self.call_tokens)
        self.estimate_error = report.error
        return report

    def exclude(self, tokens: int) -> None:
        """Count added content that is not growth, such as a tool definition."""
        if self._grown_from is not None:
            self._grown_from += round(tokens * self.account.calibration)

    def count_removed(self, used_before: int, raw_before: int) -> None:
        """Count a reduction of the window, given its size before: growth is what was added besides."""
        self.account.reduce(raw_before - self._window.tokens)
        if self._grown_from is not None:
            self._grown_from += self.used - used_before

    def count_rewound(self, unsent: Iterable[Block], used_before: int, raw_before: int) -> None:
        """Count a rewind, given the window's size before; *unsent* content of the open turn was never growth."""
        self._hidden_reply = self._reasoning = 0
        self.count_removed(used_before, raw_before)
        for block in unsent:
            self.exclude(block.tokens)
            if block.content_type not in NOT_ADDED:
                component = COMPONENT_OF[block.content_type]
                self.added_tokens -= block.tokens
                self.added_by_component[component] -= block.tokens

    def rebase(self, used_tokens: int) -> None:
        """Adopt the size that a recording states after a reduction."""
        if self._grown_from is not None:
            self._grown_from += used_tokens - self.used
        self.account.rebase(used_tokens, self._window.tokens)

    def restart(self, used_tokens: int | None = None) -> None:
        """Adopt another content of the whole window: its next total is not compared with the last."""
        self._grown_from, self._hidden_reply, self._reasoning = None, 0, 0
        self.account.rebase(used_tokens, self._window.tokens)

    def count_unattributed(self, tokens: int, change: int) -> None:
        """Set the call's unattributed tokens, *change* more than before; the last report includes them."""
        self.account.shift(change)
        self.call_tokens += change
        self.call_components = {**self.call_components, "unattributed": tokens}

    def measure(
        self,
        phase: Phase,
        limits: WindowLimits | None,
        *,
        reported_tokens: int | None = None,
        count_source: CountSource | None = None,
    ) -> PressureMeasured:
        """Measure the turn's call; *reported_tokens* is its size by the provider or by the model.

        Takes constant time. Compression ratio and fidelity are not measured here, they have separate events.
        """
        window, history = self._window, self.growth
        used = self.account.used(self.call_tokens) if reported_tokens is None else reported_tokens
        parts = apportion(used, self._components() if self._hidden_reply else self.call_components)
        duplicate = stale = 0
        if window.duplicate_tokens or window.stale_tokens:
            scale = used / window.tokens
            duplicate = min(used, round(window.duplicate_tokens * scale))
            stale = min(used - duplicate, round(window.stale_tokens * scale))
        level = self.compaction_level
        burn = history.burn_rate
        # Positional, in the order of the fields: keywords cost a tenth of the hook at the start of a turn.
        return PressureMeasured(
            used,
            parts,
            count_source or self.count_source,
            *(_fill(used, limits, self.zone) if limits else _UNLIMITED),
            self.added,
            dict(self.added_by_component),
            history.velocity,
            *self._turns_until(limits.red_tokens if limits else None, used),
            burn,
            _turns_at_rate(limits.overflow_tokens - used, burn) if limits else None,
            self._budget_utilization(parts, limits) if limits else {},
            parts["tool_results"] / used if used else None,
            duplicate / used if used else None,
            stale / used if used else None,
            duplicate,
            stale,
            history.eviction_rate(),
            self.estimate_error if phase == "final" else None,
            self.cache_hit_ratio,
            len(window),
            level.tokens if level else None,
            level.evidence if level else None,
            *self._turns_until(level and level.tokens, used, delay=COMPACTION_DELAY),
            phase=phase,
        )

    def _turns_until(
        self, level_tokens: int | None, used_tokens: int, *, delay: float = 1.0
    ) -> tuple[float | None, float | None, float | None]:
        if level_tokens is None:
            return _UNKNOWN
        pace = self.growth.pace
        return forecast(level_tokens - used_tokens, pace, used_tokens=used_tokens, delay=delay) or _UNKNOWN

    def _components(self) -> dict[Component, int]:
        """Return the counts of the measured content; hidden reasoning of the last reply is unattributed."""
        components = self.call_components
        return {**components, "unattributed": components.get("unattributed", 0) + self._hidden_reply}

    def _budget_utilization(self, parts: dict[Component, int], limits: WindowLimits) -> dict[Component, float]:
        if limits.limit_tokens != self._budget_limit:
            self._budget_limit = limits.limit_tokens
            self._budget = [(name, share * limits.limit_tokens) for name, share in self._shares]
        return {name: parts[name] / budget for name, budget in self._budget}


def _turns_at_rate(remaining_tokens: int, burn: float | None) -> float | None:
    if burn is None:
        return None
    if remaining_tokens <= 0:
        return 0.0
    return remaining_tokens / burn if burn > 0 else float("inf")


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

    def close_turn(self, measured: PressureMeasured, cost_dollars: float | None) -> None:
        """Count a turn by its final measurement."""
        self._turns += 1
        self._final_used = measured.used_tokens
        if measured.zone is not None:
            self._zones[measured.zone] = self._zones.get(measured.zone, 0) + 1
        if cost_dollars is not None:
            self._cost = (self._cost or 0.0) + cost_dollars

    def report(self, history: GrowthHistory) -> TrendReport:
        """Return the trend report."""
        peak = self.peak.fullest
        return TrendReport(
            turns=self._turns,
            peak_used_tokens=peak.tokens if peak else 0,
            peak_utilization=peak.utilization if peak else None,
            final_used_tokens=self._final_used,
            mean_added_tokens=history.total_added / history.turns if history.turns else 0.0,
            evicted_blocks=self.evicted_blocks,
            compressions=self.compressions,
            regrets=self.regrets,
            cost_dollars=self._cost,
            zones=dict(self._zones),
        )
