"""The pressure of a window: its used tokens, and the gauge that measures them against the limit.

Used tokens are the provider's last total, the reply to it, and a calibrated estimate of the rest.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from windowpane.core.events import PressureMeasured, Usage
from windowpane.core.limits import TrackerSettings, WindowLimits
from windowpane.core.tracking.compaction_level import CompactionLevel
from windowpane.core.tracking.forecast import GrowthHistory
from windowpane.core.vocabulary import COMPONENT_OF, COMPONENTS, NOT_ADDED, Component, CountSource, Phase, Zone
from windowpane.core.window.blocks import Block
from windowpane.core.window.window import Window

CALIBRATION_RATE: Final = 0.2
"""Weight of the newest observation in the moving average of the calibration."""
CALIBRATION_RANGE: Final = (0.5, 2.0)
"""No tokenizer is off by more: a difference outside of it, times the count, has another cause."""
CALIBRATION_MINIMUM_TOKENS: Final = 200
"""Smaller differences are mostly rounding and do not change the calibration."""
PLACEHOLDER_RATIO: Final = 0.5
"""A reported output below this share of the visible reply is a placeholder of a recording, not a count."""


class TotalReport(NamedTuple):
    """The comparison of a provider's total with what was counted here."""

    error: float | None = None
    """Signed relative error of the estimate; None for the first total."""
    unseen_tokens: int = 0
    """Tokens added since the last call (negative: removed) that no visible content explains."""


class TokenAccount:
    """The anchor (the provider's last total and the reply to it) and the calibration of our counts against it.

    Counts are corrected by differences between calls, never by totals: content that a total includes but
    a transcript does not record, such as a system prompt, is the caller's `unattributed` block.
    """

    def __init__(self) -> None:
        self.calibration = 1.0
        """Provider tokens per token counted here, 0.5 to 2.0."""
        self._anchor: int | None = None
        self._anchor_raw = 0
        self._call: tuple[int, int] | None = None
        """The last call's total, and the count of its content; None if it cannot be compared with the next."""
        self._removed_raw = 0
        """Tokens removed since the last call."""

    @property
    def anchored(self) -> bool:
        """True once the provider has reported a total for this window."""
        return self._anchor is not None

    def used(self, raw_tokens: int) -> int:
        """Return the tokens that the next call would send, given the sum of the window's blocks."""
        if self._anchor is None:
            return raw_tokens
        return max(0, round(self._anchor + self.calibration * (raw_tokens - self._anchor_raw)))

    def report(self, total_tokens: int, raw_tokens: int) -> TotalReport:
        """Set the anchor to the provider's total of a call that sent blocks summing to *raw_tokens*."""
        error, unseen = None, 0
        if self._anchor is not None and total_tokens > 0:
            error = (self.used(raw_tokens) - total_tokens) / total_tokens
            if self._call is not None:
                unseen = self._compare(total_tokens, raw_tokens, *self._call)
        self._anchor, self._anchor_raw, self._removed_raw = total_tokens, raw_tokens, 0
        self._call = total_tokens, raw_tokens
        return TotalReport(error, unseen)

    def add_reply(self, tokens: int, raw_tokens: int) -> None:
        """Count the reply, of which the next call sends *tokens*, instead of estimating it from its blocks."""
        if self._anchor is not None:
            self._anchor += tokens
            self._anchor_raw += raw_tokens

    def rebase(self, total_tokens: int | None, raw_tokens: int) -> None:
        """Set the anchor after a reduction of a known size; the next total is not compared with the last."""
        if total_tokens is not None:
            self._anchor, self._anchor_raw = total_tokens, raw_tokens
        self._call = None

    def shift(self, raw_tokens: int) -> None:
        """Count *raw_tokens* of new blocks that the anchor already includes (the unattributed remainder)."""
        self._anchor_raw += raw_tokens
        if self._call is not None:
            self._call = self._call[0], self._call[1] + raw_tokens

    def reduce(self, raw_tokens: int) -> None:
        """Count *raw_tokens* of removed blocks: the next difference mixes growth and reduction."""
        self._removed_raw += max(0, raw_tokens)

    def reset(self) -> None:
        """Drop the anchor for a new window; the calibration stays."""
        self._anchor, self._anchor_raw, self._call, self._removed_raw = None, 0, None, 0

    def _compare(self, total: int, raw: int, last_total: int, last_raw: int) -> int:
        """Return the part of a difference between calls that is unseen; a difference without one calibrates."""
        counted = raw - last_raw
        unseen = unseen_tokens(total - last_total, added=counted + self._removed_raw, removed=self._removed_raw)
        if unseen:
            return round(total - last_total - self.calibration * counted)
        if not self._removed_raw and counted >= CALIBRATION_MINIMUM_TOKENS and total > last_total:
            low, high = CALIBRATION_RANGE
            observed = min(max((total - last_total) / counted, low), high)
            self.calibration += CALIBRATION_RATE * (observed - self.calibration)
        return 0


def unseen_tokens(difference: int, *, added: int, removed: int = 0) -> int:
    """Return by how much a difference of totals exceeds what counts of *added* and *removed* content can explain.

    Negative where it falls short of them; 0 within the range of the calibration, or within a rounding of it.
    """
    low, high = CALIBRATION_RANGE
    most = high * added - low * removed + CALIBRATION_MINIMUM_TOKENS
    if difference > most:
        return round(difference - most)
    least = low * added - high * removed - CALIBRATION_MINIMUM_TOKENS
    return round(difference - least) if difference < least else 0


def apportion(used_tokens: int, raw: dict[Component, int]) -> dict[Component, int]:
    """Split *used_tokens* over the components so that the parts sum to it.

    The unattributed part is unchanged if it fits; the visible components share the rest in proportion to their
    counts. The rounding remainder is added to the message history, or to the largest component without one.
    """
    total = sum(raw.values())
    if total == used_tokens:
        return raw
    visible = total - raw.get("unattributed", 0)
    if visible <= 0:
        return {**dict.fromkeys(COMPONENTS, 0), "unattributed": used_tokens}
    unattributed = min(total - visible, used_tokens)
    remainder = rest = used_tokens - unattributed
    parts = raw.copy()
    for component, tokens in raw.items():
        if tokens and component != "unattributed":
            parts[component] = part = rest * tokens // visible
            remainder -= part
    parts["unattributed"] = unattributed
    if remainder:
        receiver: Component = "message_history"
        if not raw.get(receiver):
            receiver = max((component for component in raw if component != "unattributed"), key=raw.__getitem__)
        parts[receiver] += remainder
    return parts


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
        self.reply_tool_calls = 0
        """Tool calls in the reply."""
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
        self.reply_tokens = self.reply_tool_calls = 0

    def count_reply(self, usage: Usage) -> None:
        """Count the tokens of the reply that the next call sends, by the provider's count of the output.

        Reasoning is not sent again, except where the provider keeps it until the tool loop ends.
        """
        if usage.output_tokens < PLACEHOLDER_RATIO * self.reply_tokens:
            return
        tokens = usage.output_tokens - usage.reasoning_tokens
        if self.reply_tool_calls and usage.reasoning_retained:
            tokens += usage.reasoning_tokens
            self._reasoning += usage.reasoning_tokens
        else:
            tokens, self._reasoning = tokens - self._reasoning, 0
        self.account.add_reply(tokens, self.reply_tokens)
        if unseen_tokens(tokens, added=self.reply_tokens) > 0:
            self._hidden_reply = tokens - round(self.account.calibration * self.reply_tokens)

    def count_cache(self, usage: Usage | None, total: int) -> None:
        """Measure what the turn's call, with an input of *total* tokens, read from the prompt cache."""
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
        window, growth, level = self._window, self.growth, self.compaction_level
        used = self.account.used(self.call_tokens) if reported_tokens is None else reported_tokens
        parts = apportion(used, self._components() if self._hidden_reply else self.call_components)
        duplicate = stale = 0
        if window.duplicate_tokens or window.stale_tokens:
            scale = used / window.tokens
            duplicate = min(used, round(window.duplicate_tokens * scale))
            stale = min(used - duplicate, round(window.stale_tokens * scale))
        zone = exhausted = red = None
        eviction_rate = growth.eviction_rate()
        if limits is not None:
            red = growth.turns_until(limits.red_tokens, used)
            exhausted = growth.turns_at_rate(limits.overflow_tokens - used)
            zone = limits.zone_of(used, previous=self.zone)
        compaction = None if level is None else growth.turns_until(level.tokens, used, of_compaction=True)
        return PressureMeasured(
            used_tokens=used,
            used_by_component=parts,
            count_source=count_source or self.count_source,
            limit_tokens=limits.limit_tokens if limits else None,
            limit_source=limits.source if limits else None,
            usable_tokens=limits.usable_tokens if limits else None,
            utilization=used / limits.limit_tokens if limits else None,
            usable_utilization=used / limits.usable_tokens if limits else None,
            zone=zone,
            red_tokens=limits.red_tokens if limits else None,
            added_tokens=self.added,
            added_by_component=dict(self.added_by_component),
            velocity=growth.velocity,
            turns_until_red=red.median if red else None,
            turns_until_red_p10=red.early if red else None,
            turns_until_red_p90=red.late if red else None,
            burn_rate=growth.burn_rate,
            turns_until_exhausted=exhausted,
            budget_utilization=self._budget_utilization(parts, limits) if limits else {},
            tool_result_ratio=parts["tool_results"] / used if used else None,
            duplicate_ratio=duplicate / used if used else None,
            stale_ratio=stale / used if used else None,
            duplicate_tokens=duplicate,
            stale_tokens=stale,
            eviction_rate=eviction_rate,
            estimate_error=self.estimate_error if phase == "final" else None,
            cache_hit_ratio=self.cache_hit_ratio,
            blocks=window.blocks,
            compaction_tokens=level.tokens if level else None,
            compaction_evidence=level.evidence if level else None,
            turns_until_compaction=compaction.median if compaction else None,
            turns_until_compaction_p10=compaction.early if compaction else None,
            turns_until_compaction_p90=compaction.late if compaction else None,
            phase=phase,
        )

    def measure_next(self, final: PressureMeasured, limits: WindowLimits | None) -> PressureMeasured | None:
        """Measure the window with the reply, after its turn was measured; None where that changes nothing."""
        used = self.used
        if used == final.used_tokens:
            return None
        self.count_call()
        return self.measure("next", limits, reported_tokens=used, count_source=final.count_source)

    def _components(self) -> dict[Component, int]:
        """Return the counts of the measured content; hidden reasoning of the last reply is unattributed."""
        components = self.call_components
        return {**components, "unattributed": components.get("unattributed", 0) + self._hidden_reply}

    def _budget_utilization(self, parts: dict[Component, int], limits: WindowLimits) -> dict[Component, float]:
        if limits.limit_tokens != self._budget_limit:
            self._budget_limit = limits.limit_tokens
            self._budget = [(name, share * limits.limit_tokens) for name, share in self._shares]
        return {name: parts[name] / budget for name, budget in self._budget}
