"""Conclusions about the turns of a session: opened, measured, and closed with the provider's count."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from windowpane.core.agents import AgentProgram, documented_growth
from windowpane.core.events import (
    BlockAdded,
    ChangeUnidentified,
    CompactionMeasured,
    Event,
    LimitChanged,
    PressureMeasured,
    SessionEnded,
    SessionStarted,
    TrendReport,
    TurnEnded,
    TurnStarted,
    Usage,
    UsageRejected,
    VelocitySpiked,
    ZoneChanged,
)
from windowpane.core.events.facts import REPORT_RANGE
from windowpane.core.limits import SPIKE_SHARE, TrackerSettings, WindowLimits, limit_fields
from windowpane.core.tracking.compaction_level import CompactionLevels
from windowpane.core.tracking.emitter import EventEmitter, SessionInfo
from windowpane.core.tracking.facts import (
    CallEnding,
    CallOpening,
    CallSending,
    LimitSetting,
    ModelChoice,
    ProgramVersion,
    SessionEnding,
    SessionOpening,
    SpanChoice,
    TurnOpening,
    WindowReading,
)
from windowpane.core.tracking.peak import TrendCounters
from windowpane.core.tracking.pressure import PressureGauge
from windowpane.core.tracking.prompt_cache import PromptCache
from windowpane.core.tracking.provider_totals import ProviderTotals
from windowpane.core.vocabulary import CountSource, LimitSource, Phase
from windowpane.core.window.blocks import Block
from windowpane.core.window.window import Window

UNIDENTIFIED_RATIO: Final = 0.10
UNIDENTIFIED_TOKENS: Final = 2_000
COMPACTED_SHARE: Final = 0.7
"""Smallest share of a smaller window at which a compaction shows that window: below, a setting is more likely."""
OBSERVABLE_SOURCES: Final[frozenset[LimitSource]] = frozenset(
    {"earlier", "catalogue", "assumed", "observed_floor"}
)
"""Sources of a size that an automatic compaction may refute."""


class TurnConclusions:
    """The session and its turns: limits, measurements, and the provider's counts at the end of each turn."""

    def __init__(
        self,
        info: SessionInfo,
        *,
        emit: Callable[[list[Event]], None],
        limits: WindowLimits | None = None,
        settings: TrackerSettings | None = None,
        next_limit: Callable[[int], int | None] | None = None,
        smaller_limit: Callable[[int], int | None] | None = None,
        program: AgentProgram | None = None,
    ) -> None:
        """*next_limit* and *smaller_limit* return the other window sizes of the model, as in `ModelCatalog`.

        *program* is what is known of the agent's program; by default it is known by the agent's name.
        """
        program = program or AgentProgram(info.agent)
        self.settings = settings = settings or TrackerSettings()
        self.emitter = EventEmitter(info, emit=emit)
        self.record, self.flush = self.emitter.record, self.emitter.flush
        self.window = Window(settings.lifetimes)
        self.gauge = PressureGauge(self.window, settings, documented_growth=documented_growth(program.name))
        self.compactions = CompactionLevels(program)
        self.limits = limits
        self.limits_of: Callable[[int, LimitSource], WindowLimits] | None = None
        """Makes the limits of a size that is learnt later; None for the default reserve and margin."""
        self.turn = 0
        self.window_id = 1
        self.exchange = 0
        """Exchange of the last block that was added."""
        self.in_turn = False
        """True while a turn is open: a block was added since the last one ended."""
        self.rejected: UsageRejected | None = None
        """The report that was rejected in the last turn that ended."""
        self._next_limit = next_limit
        self._smaller_limit = smaller_limit
        self._totals = ProviderTotals()
        self._cache = PromptCache()
        self._trend = TrendCounters()
        self._call_utilization: float | None = None
        """Utilization at the last call, by its last measurement."""
        self._measured = False
        """True if the turn's pressure was measured before its call."""
        self.replied = False
        """True if the turn's reply has started: blocks after it are not sent with its call."""
        self._call_end = 0
        """Position behind the content that the turn's call sends."""
        self._unattributed: str | None = None
        """Block of the tokens that only the provider counts."""
        self._unattributed_blocks = 0
        """Number of such blocks so far; they are numbered apart from content."""
        self._unseen_growth = 0
        """Part of it that was added since the window's first total."""
        self._attribute_next = True
        self._update_compaction_level()

    @property
    def info(self) -> SessionInfo:
        """Identity of the session."""
        return self.emitter.info

    # -- session ----------------------------------------------------------------------------------------------

    def open_session(self, fact: SessionOpening) -> None:
        """Emit `session.started` with the window that the session starts with."""
        earlier = self.compactions.program.earlier
        started = SessionStarted(
            task_digest=fact.task_digest,
            earlier_compaction_tokens=earlier.compaction_tokens,
            earlier_base_tokens=earlier.base_tokens,
            stated_compaction_tokens=self.compactions.program.compaction_tokens,
            derived_by=fact.derived_by,
            **limit_fields(self.limits),
        )
        self.record(started, fact.at)

    def end_session(self, fact: SessionEnding) -> TrendReport:
        """Emit `session.ended` with the trend report, and flush all events."""
        growth = self.gauge.growth
        report = self._trend.report(added_tokens=growth.total_added, counted_turns=growth.turns)
        self.record(SessionEnded(fact.reason, report), fact.at)
        self.flush()
        return report

    def choose_model(self, fact: ModelChoice) -> None:
        """Adopt the model of the following calls, and the limits of its window."""
        self.emitter.set_model(fact.model)
        self.compactions.program = replace(self.compactions.program, model=fact.model)
        if fact.limits != self.limits:
            self._set_limits(fact.limits, fact.at)

    def set_limits(self, fact: LimitSetting) -> None:
        """Adopt the limits of the window and emit `limit.changed`."""
        self._set_limits(fact.limits, fact.at)

    def set_version(self, fact: ProgramVersion) -> None:
        """Adopt the level at which this release of the agent's program compacts."""
        self.compactions.program = replace(self.compactions.program, version=fact.version)
        self._update_compaction_level()

    def choose_span(self, fact: SpanChoice) -> None:
        """Emit the following events as those of an OpenTelemetry span."""
        self.emitter.set_trace(fact.trace_id, fact.span_id)

    def _set_limits(self, limits: WindowLimits | None, at: float | None) -> None:
        previous, self.limits = self.limits, limits
        before = None if previous is None else previous.limit_tokens
        described = {"limit_tokens": None, "limit_source": None, **limit_fields(limits)}
        self.record(change := LimitChanged(previous_tokens=before, **described), at)
        if self._trend.peak.change_limit(change, self.info.model) is not None and limits is not None:
            self._totals.correct_limits(before, limits)
        self._update_compaction_level()

    def _update_compaction_level(self) -> None:
        """Have the following measurements use the compaction level on the present evidence."""
        self.gauge.compaction_level = self.compactions.level(self.limits)

    # -- turns ------------------------------------------------------------------------------------------------

    def open_turn(self, fact: TurnOpening) -> None:
        """Emit `turn.started`."""
        self.turn += 1
        self.in_turn = True
        self._measured = self.replied = False
        self.window.enter_turn(self.turn)
        self.gauge.open_turn()
        self.emitter.enter(self.turn, self.window_id)
        self.record(TurnStarted(), fact.at)
        base = self.compactions.program.earlier.base_tokens
        if self.turn == 1 and base:
            self._set_unattributed(base, fact.at, count_source="estimate")

    def open_call(self, _fact: CallOpening) -> None:
        """Count what is added from here to the measurement as sent by the call."""
        self.replied = True
        self._call_end = self.window.next_position

    def send_call(self, fact: CallSending) -> None:
        """Measure the window before its call, unless it was measured in this turn already."""
        if not self._measured:
            self._measure("before", fact.at)
        else:
            self.gauge.count_call()
            self._call_end = self.window.next_position
        self.replied = True

    def read_window(self, fact: WindowReading) -> PressureMeasured:
        """Emit `pressure.measured`, and `zone.changed` if it changed."""
        return self._measure(fact.phase, fact.at)

    def _measure(self, phase: Phase, at: float | None) -> PressureMeasured:
        gauge = self.gauge
        gauge.count_call()
        self._measured = True
        self._call_end = self.window.next_position
        measured = gauge.measure(phase, self.limits)
        self._call_utilization = measured.utilization
        self.record(measured, at)
        self._trend.count(measured, self.turn, self.info.model)
        if measured.zone is not None and measured.zone != gauge.zone:
            previous, gauge.zone = gauge.zone, measured.zone
            self.record(
                ZoneChanged(previous, measured.zone, measured.used_tokens, measured.utilization or 0.0), at
            )
        return measured

    def end_call(
        self, fact: CallEnding, cost_of: Callable[[Usage], float | None] | None = None
    ) -> PressureMeasured:
        """Close the turn after its model call; the provider's count replaces the estimate.

        Returns the window as the next call would send it, the reply included. *cost_of* returns the price of any
        usage of the call's model.
        """
        gauge, usage, at, self.rejected = self.gauge, fact.usage, fact.at, None
        window_tokens, reported_tokens = fact.window_tokens, fact.reported_tokens
        reported = 0 if usage is None else usage.input_total if window_tokens is None else window_tokens
        gauge.count_cache(usage, reported)
        trusted = reported > 0 and self._accept_total(reported, at)
        total = reported if trusted else None
        removed = False
        source: CountSource = "usage" if trusted else gauge.count_source
        if reported_tokens is not None and self._accept_report(reported_tokens, total, at) and total is None:
            total, source = reported_tokens, "reported"
        if total is not None:
            removed = trusted and self._compare_totals(total, at)
            self._anchor(total, at, is_identified=removed)
            if usage is not None and trusted and window_tokens is None:
                gauge.count_reply(usage)
            if self.compactions.record_call(total, gauge.compaction_level):
                self._update_compaction_level()
        billed, recorded = usage, None
        if usage is not None and fact.output_tokens is not None:
            billed, recorded = replace(usage, output_tokens=fact.output_tokens), usage.output_tokens
        ended = self.record(
            TurnEnded(
                billed,
                source,
                fact.cost_dollars,
                fact.latency_seconds,
                fact.stop_reason,
                fact.response_id,
                recorded,
                fact.list_cost_dollars,
            ),
            at,
        )
        if usage is not None and trusted and window_tokens is None:
            self._compare_cache(usage, cost_of, fact.latency_seconds or 0.0, ended, is_reduced=removed)
        added = gauge.added
        baseline = gauge.close_turn(self.turn)
        final = gauge.measure("final", self.limits, reported_tokens=total, count_source=source)
        following = gauge.measure_next(final, self.limits)
        self._call_utilization = final.utilization
        self.record(final, at)
        if baseline is not None and (self.limits is None or added >= SPIKE_SHARE * self.limits.limit_tokens):
            self.record(VelocitySpiked(added, baseline), at)
        self.in_turn = False
        self._measured = self.replied = False
        if following is not None:
            self.record(following, at)
        model = self.info.model
        self._trend.count(final, self.turn, model, cost_dollars=fact.cost_dollars)
        if following is not None:
            self._trend.count(following, self.turn, model)
        self.flush()
        return following or final

    def _compare_totals(self, total: int, at: float | None) -> bool:
        """Record what a total shows beside the one before it; return whether it shows a removal."""
        change = self._totals.add(total, self.info.model)
        if change is None:
            return False
        self.record(change, at)
        if isinstance(change, CompactionMeasured):
            self._trend.peak.count_compaction(change, self.turn)
            return False
        return True

    def _compare_cache(
        self,
        usage: Usage,
        cost_of: Callable[[Usage], float | None] | None,
        latency_seconds: float,
        ended: Event,
        *,
        is_reduced: bool,
    ) -> None:
        """Record what the call read from the prompt cache, and a cache break that it shows."""
        broken = self._cache.add(
            usage,
            model=self.info.model,
            started_at=None if ended.at is None else ended.at - latency_seconds,
            sent_end=self._call_end,
            tokens_between=self.window.tokens_between,
            is_reduced=is_reduced,
            cost_of=cost_of,
        )
        if broken is not None:
            self.record(broken, ended.at)

    def _accept_total(self, total: int, at: float | None) -> bool:
        """Reject a total above a given limit; raise a limit of the catalog instead."""
        limits = self.limits
        if limits is None or total <= limits.limit_tokens:
            return True
        if limits.source in ("given", "provider"):
            self.rejected = UsageRejected(total, limits.limit_tokens, "above_limit")
            self.record(self.rejected, at)
            return False
        self._raise_limit(total, at)
        return True

    def _raise_limit(self, used_tokens: int, at: float | None) -> None:
        """Raise a limit that was not given to the next size that holds *used_tokens*."""
        limits = self.limits
        if limits is None or used_tokens <= limits.limit_tokens or limits.source in ("given", "provider"):
            return
        larger = (self._next_limit(used_tokens) if self._next_limit is not None else None) or used_tokens
        self._set_limits(self._limits_like(limits, max(larger, used_tokens), "observed_floor"), at)

    def _record_own_compaction(self, used_tokens: int, at: float | None, *, is_at_limit: bool = True) -> None:
        """Learn from an automatic compaction: the level, and the size of a window that was assumed too large.

        *is_at_limit* is False for one at a level that a setting of the request decides.
        """
        self.compactions.record_compaction(used_tokens)
        limits = self.limits if is_at_limit else None
        if limits is not None and limits.source in OBSERVABLE_SOURCES and self._smaller_limit is not None:
            smaller = self._smaller_limit(max(used_tokens, self._trend.peak.largest_total))
            if smaller is not None and COMPACTED_SHARE * smaller <= used_tokens and smaller < limits.limit_tokens:
                self._set_limits(self._limits_like(limits, smaller, "observed_compaction"), at)
        self._update_compaction_level()

    def _limits_like(self, limits: WindowLimits, limit_tokens: int, source: LimitSource) -> WindowLimits:
        """Return limits of another size, with the thresholds of *limits* where they are not the usual ones."""
        limits_of = self.limits_of
        if limits_of is None:
            thresholds = None if limits.has_usual_zones else limits.thresholds
            limits_of = partial(WindowLimits.of, thresholds=thresholds)
        return limits_of(limit_tokens, source)

    def _accept_report(self, reported: int, total: int | None, at: float | None) -> bool:
        """Reject a model's report of its budget unless it is near the provider's count, or near the estimate."""
        expected = self.gauge.account.used(self.gauge.call_tokens) if total is None else total
        limit = None if self.limits is None else self.limits.limit_tokens
        low, high = REPORT_RANGE
        if reported > 0 and low * expected <= reported <= high * expected and reported <= (limit or reported):
            return True
        self.rejected = UsageRejected(reported, limit or 0, "reported_drift", expected)
        self.record(self.rejected, at)
        return False

    def _anchor(self, total: int, at: float | None, *, is_identified: bool) -> None:
        gauge, account = self.gauge, self.gauge.account
        expected = account.used(gauge.call_tokens)
        comparable = account.anchored and not self._attribute_next
        report = gauge.count_total(total, first=self._attribute_next)
        if self._attribute_next:
            self._attribute_next, self._unseen_growth = False, 0
            self._set_unattributed(max(0, total - gauge.call_tokens + self._unattributed_tokens), at)
            return
        unseen = max(report.unseen_tokens, -self._unseen_growth)
        if unseen:
            self._unseen_growth += unseen
            self._set_unattributed(max(0, self._unattributed_tokens + unseen), at)
        if (
            comparable
            and not is_identified
            and abs(total - expected) > max(UNIDENTIFIED_TOKENS, UNIDENTIFIED_RATIO * total)
        ):
            self.record(ChangeUnidentified(total - expected), at)

    @property
    def _unattributed_tokens(self) -> int:
        block_id = self._unattributed
        return self.window.slot(block_id).block.tokens if block_id is not None and block_id in self.window else 0

    def _set_unattributed(self, tokens: int, at: float | None, *, count_source: CountSource = "usage") -> None:
        """Put the tokens that the provider counts beyond the visible content into one unattributed block."""
        old_id = self._unattributed
        old = self.window.slot(old_id).block if old_id is not None and old_id in self.window else None
        before = 0 if old is None else old.tokens
        remainder = tokens
        if remainder == before:
            return
        block_id = f"u{self._unattributed_blocks}"
        self._unattributed_blocks += 1
        block = Block(
            block_id,
            "unattributed",
            remainder,
            self.turn,
            group=block_id,
            exchange=self.exchange if old is None else old.exchange,
            digest="",
            chars=0,
            count_source=count_source,
            replaces=None if old is None else old.id,
        )
        self.window.replace(() if old is None else (old.id,), (block,) if remainder else ())
        self._unattributed = block.id if remainder else None
        self.record(BlockAdded(block), at)
        self.gauge.count_unattributed(remainder, remainder - before)
