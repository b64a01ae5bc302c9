"""The session tracker: one session's window, and the only code that derives events from facts.

The manager, the observer and every importer call it; metrics, alerts, timeline, audit and replay read only the
events that it emits. It does no I/O: events are passed to the `emit` callable, one list per turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, Literal

from windowpane.core.events import (
    BlockAdded,
    BlocksEvicted,
    BlocksReferenced,
    ChangeUnidentified,
    ContentCompressed,
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
    WindowRolled,
    ZoneChanged,
    event_id,
)
from windowpane.core.limits import TrackerSettings, WindowLimits
from windowpane.core.protocols import Clock, Digester
from windowpane.core.tracking.emitter import BUFFERED_EVENTS, EventEmitter, SessionInfo
from windowpane.core.tracking.pressure import PressureGauge, TrendCounters
from windowpane.core.tracking.regret import Cause, RemovedBlock, RemovedBlocks
from windowpane.core.vocabulary import (
    COMPONENT_OF,
    DERIVED_TYPES,
    NOT_ADDED,
    REPLY_TYPES,
    ContentType,
    CountSource,
    LimitSource,
)
from windowpane.core.window.blocks import Block
from windowpane.core.window.window import Window

UNIDENTIFIED_RATIO: Final = 0.10
UNIDENTIFIED_TOKENS: Final = 2_000
REPORT_RANGE: Final = (0.5, 2.0)
"""A model's report of its budget is accepted within this ratio to the known count."""


class SessionTracker:
    """Owns one session's window and turns changes of it into events.

    Not thread-safe; its owner serializes calls. Every method takes an optional `at` (seconds since the epoch,
    UTC); without one the clock is read, and without a clock the event has no time.
    """

    def __init__(
        self,
        info: SessionInfo,
        *,
        emit: Callable[[list[Event]], None],
        digest: Digester,
        limits: WindowLimits | None = None,
        settings: TrackerSettings | None = None,
        clock: Clock | None = None,
        next_limit: Callable[[int], int | None] | None = None,
    ) -> None:
        self.settings = settings = settings or TrackerSettings()
        self.emitter = EventEmitter(info, emit=emit, clock=clock)
        self.record, self.flush = self.emitter.record, self.emitter.flush
        self.window = Window(settings.lifetimes)
        self.gauge = PressureGauge(self.window, settings)
        self.limits = limits
        self.limits_of: Callable[[int, LimitSource], WindowLimits] | None = None
        """Makes the limits of a size that is learnt later; None for the default reserve and margin."""
        self.turn = 0
        self.window_id = 1
        self.exchange = 0
        self.in_turn = False
        """True while a turn is open: a block was added since the last one ended."""
        self.on_compressed: Callable[[Event, Sequence[Block]], object] | None = None
        """Called after each accepted compression with its event and the removed blocks."""
        self._digest = digest
        self._next_limit = next_limit
        self._trend = TrendCounters()
        self._removed = RemovedBlocks(capacity=settings.remembered_blocks, turns=settings.regret_turns)
        self._blocks = 0
        """Number of blocks made so far, and the number of the next one."""
        self._call_blocks: dict[str, Block] = {}
        """Tool calls in the window by id."""
        self._last_type: ContentType | None = None
        self._reply_group: str | None = None
        self._measured = False
        """True if the turn's pressure was measured before its call."""
        self._replied = False
        """True if the turn's reply has started: blocks after it are not sent with its call."""
        self._unattributed: str | None = None
        """Block of the tokens that only the provider counts."""
        self._attribute_next = True

    @property
    def info(self) -> SessionInfo:
        """Identity of the session."""
        return self.emitter.info

    # -- session ----------------------------------------------------------------------------------------------

    def start(self, at: float | None = None, *, task: str | None = None) -> None:
        """Emit `session.started` with the window that the session starts with."""
        task_digest = self._digest(task) if task else None
        self.record(SessionStarted(task_digest=task_digest, **_limit_fields(self.limits)), at)

    def end(self, reason: str, at: float | None = None) -> TrendReport:
        """Emit `session.ended` with the trend report, and flush all events."""
        report = self._trend.report(self.gauge.growth)
        self.record(SessionEnded(reason, report), at)
        self.flush()
        return report

    def set_model(self, model: str, limits: WindowLimits | None, at: float | None = None) -> None:
        """Set the model of the following calls, and the limits of its window."""
        self.emitter.set_model(model)
        if limits != self.limits:
            self.set_limits(limits, at)

    def set_limits(self, limits: WindowLimits | None, at: float | None = None) -> None:
        """Set the limits of the window and emit `limit.changed`."""
        previous, self.limits = self.limits, limits
        before = None if previous is None else previous.limit_tokens
        described = {"limit_tokens": None, "limit_source": None, **_limit_fields(limits)}
        self.record(LimitChanged(previous_tokens=before, **described), at)

    # -- turns ------------------------------------------------------------------------------------------------

    def start_call(self, at: float | None = None) -> None:
        """Start a call: it sends everything added from here to `measure`, earlier replies included."""
        if not self.in_turn:
            self._open_turn(at)
        self._replied = True

    def measure(self, phase: Literal["before", "after"], at: float | None = None) -> PressureMeasured:
        """Emit `pressure.measured`, and `zone.changed` if it changed; opens a turn if none is open."""
        if not self.in_turn:
            self._open_turn(at)
        gauge = self.gauge
        gauge.count_call()
        self._measured = True
        measured = gauge.measure(phase, self.limits)
        self.record(measured, at)
        if measured.zone is not None and measured.zone != gauge.zone:
            previous, gauge.zone = gauge.zone, measured.zone
            self.record(
                ZoneChanged(previous, measured.zone, measured.used_tokens, measured.utilization or 0.0), at
            )
        return measured

    def end_turn(
        self,
        usage: Usage | None = None,
        *,
        reported_tokens: int | None = None,
        cost_dollars: float | None = None,
        latency_seconds: float | None = None,
        stop_reason: str | None = None,
        at: float | None = None,
    ) -> PressureMeasured:
        """Close the turn after its model call; the provider's count replaces the estimate.

        *reported_tokens* is the size of the call as the model itself reported it; it is used without *usage* and
        near the estimate.
        """
        gauge = self.gauge
        if not self._replied or not self.in_turn:
            self._measure_call(at)
        trusted = usage is not None and usage.input_total > 0 and self._accept_total(usage.input_total, at)
        total = usage.input_total if usage is not None and trusted else None
        source: CountSource = "usage" if trusted else gauge.count_source
        if reported_tokens is not None and self._accept_report(reported_tokens, total, at) and total is None:
            total, source = reported_tokens, "reported"
        if total is not None:
            self._anchor(total, at)
        gauge.last_usage = usage
        self.record(TurnEnded(usage, source, cost_dollars, latency_seconds, stop_reason), at)
        added = gauge.added
        baseline = gauge.close_turn(self.turn)
        measured = gauge.measure("final", self.limits, reported_tokens=total, count_source=source)
        self.record(measured, at)
        self._trend.close_turn(measured, cost_dollars)
        if baseline is not None:
            self.record(VelocitySpiked(added, baseline), at)
        self.in_turn = False
        self._measured = self._replied = False
        self._reply_group = None
        self.flush()
        return measured

    def _open_turn(self, at: float | None) -> None:
        self.turn += 1
        self.in_turn = True
        self._measured = self._replied = False
        self.window.enter_turn(self.turn)
        self.gauge.open_turn()
        self.emitter.enter(self.turn, self.window_id)
        self.record(TurnStarted(), at)

    def _measure_call(self, at: float | None) -> None:
        """Record that the model is called now, with the window as it is."""
        if not self._measured:
            self.measure("before", at)
        else:
            self.gauge.count_call()
        self._replied = True

    def _accept_total(self, total: int, at: float | None) -> bool:
        """Reject a total above a given limit; raise a limit of the catalog instead."""
        limits = self.limits
        if limits is None or total <= limits.limit_tokens:
            return True
        if limits.source in ("given", "provider"):
            self.record(UsageRejected(total, limits.limit_tokens, "above_limit"), at)
            return False
        larger = (self._next_limit(total) if self._next_limit is not None else None) or total
        limits_of = self.limits_of
        if limits_of is None:
            thresholds = None if limits.has_usual_zones else limits.thresholds
            limits_of = partial(WindowLimits.of, thresholds=thresholds)
        self.set_limits(limits_of(max(larger, total), "observed_floor"), at)
        return True

    def _accept_report(self, reported: int, total: int | None, at: float | None) -> bool:
        """Reject a model's report of its budget unless it is near the provider's count, or near the estimate."""
        expected = self.gauge.account.used(self.gauge.call_tokens) if total is None else total
        limit = None if self.limits is None else self.limits.limit_tokens
        low, high = REPORT_RANGE
        if reported > 0 and low * expected <= reported <= high * expected and reported <= (limit or reported):
            return True
        self.record(UsageRejected(reported, limit or 0, "reported_drift"), at)
        return False

    def _anchor(self, total: int, at: float | None) -> None:
        gauge, account = self.gauge, self.gauge.account
        expected = account.used(gauge.call_tokens)
        comparable = account.anchored and not self._attribute_next
        gauge.estimate_error = account.report(total, gauge.call_tokens)
        if self._attribute_next:
            self._attribute(total, at)
        elif comparable and abs(total - expected) > max(UNIDENTIFIED_TOKENS, UNIDENTIFIED_RATIO * total):
            self.record(ChangeUnidentified(total - expected), at)

    def _attribute(self, total: int, at: float | None) -> None:
        """Put the tokens that the provider counts beyond the visible content into one unattributed block."""
        self._attribute_next = False
        old_id = self._unattributed
        old = self.window.slot(old_id).block if old_id is not None and old_id in self.window else None
        before = 0 if old is None else old.tokens
        remainder = max(0, total - (self.gauge.call_tokens - before))
        if remainder == before:
            return
        block_id = self._new_id()
        block = Block(
            block_id,
            "unattributed",
            remainder,
            self.turn,
            group=block_id,
            exchange=self.exchange if old is None else old.exchange,
            digest="",
            chars=0,
            count_source="usage",
            replaces=None if old is None else old.id,
        )
        self.window.replace(() if old is None else (old.id,), (block,) if remainder else ())
        self._unattributed = block.id if remainder else None
        self.record(BlockAdded(block), at)
        self.gauge.count_unattributed(remainder, remainder - before)

    # -- blocks -----------------------------------------------------------------------------------------------

    def add(  # noqa: C901, PLR0912  # the agent's hot path, written out
        self,
        content_type: ContentType,
        text: str | None,
        tokens: int,
        *,
        count_source: CountSource = "estimate",
        digest: str = "",
        tool_call_id: str | None = None,
        tool_name: str | None = None,
        pinned: bool = False,
        handle: str | None = None,
        at: float | None = None,
    ) -> Block:
        """Add a block; opens a turn if none is open, and measures the call at the first block of its reply."""
        if not self.in_turn:
            self._open_turn(at)
        block_id = f"b{self._blocks}"
        group = block_id
        if content_type in REPLY_TYPES:
            if not self._replied:
                self._measure_call(at)
            group = self._reply_group = self._reply_group or block_id
        else:
            self._reply_group = None
            if content_type == "user_message" and self._last_type != "user_message":
                self.exchange += 1
            elif tool_call_id is not None and tool_call_id in self._call_blocks:
                group = self._call_blocks[tool_call_id].group
        self._last_type = content_type
        chars = 0
        if text:
            chars = len(text)
            digest = digest or self._digest(text)
        block = Block(
            block_id, content_type, tokens, self.turn, group, self.exchange, digest, chars, count_source, text,
            tool_call_id, tool_name, pinned, None, handle,
        )  # fmt: skip
        self._blocks += 1
        self.window.add(block)
        gauge, emitter = self.gauge, self.emitter
        if count_source != "exact":
            gauge.exact = False
        if content_type not in NOT_ADDED:
            gauge.added_tokens += tokens
            component, added = COMPONENT_OF[content_type], gauge.added_by_component
            added[component] = added.get(component, 0) + tokens
        if at is None and emitter.clock is not None:
            at = emitter.clock()
        # `EventEmitter.record`, written out: the one event that an agent's thread makes by the dozen.
        emitter.buffer.append(Event(emitter.context, emitter.n, at, BlockAdded(block)))
        emitter.n += 1
        if len(emitter.buffer) >= BUFFERED_EVENTS:
            emitter.flush()
        if content_type == "tool_call" and tool_call_id is not None:
            self._call_blocks[tool_call_id] = block
        if digest in self._removed.by_digest:
            self._check_regret(block, at)
        return block

    def make_replacement(
        self,
        content_type: ContentType,
        text: str | None,
        tokens: int,
        *,
        replaces: str | None,
        count_source: CountSource = "estimate",
        handle: str | None = None,
        pinned: bool = False,
    ) -> Block:
        """Make a block that replaces the block *replaces*, for `evict` or `compress`; the window is unchanged.

        A placeholder belongs to the group and the tool call of the block that it replaces.
        """
        block_id = self._new_id()
        old = self.window.slot(replaces).block if replaces is not None and replaces in self.window else None
        placeholder = content_type == "placeholder" and old is not None
        return Block(
            id=block_id,
            content_type=content_type,
            tokens=tokens,
            turn=self.turn,
            group=old.group if placeholder and old else block_id,
            exchange=old.exchange if old else self.exchange,
            digest=self._digest(text) if text else "",
            chars=len(text) if text else 0,
            count_source=count_source,
            text=text,
            tool_call_id=old.tool_call_id if placeholder and old else None,
            tool_name=old.tool_name if placeholder and old else None,
            pinned=pinned,
            replaces=replaces,
            handle=handle,
        )

    def make_shortened(
        self, block: Block, text: str, tokens: int, *, count_source: CountSource, handle: str | None
    ) -> Block:
        """Make a shorter version of *block* for `compress`: same type, age, group and tool call.

        A tool call keeps the digest of all its arguments.
        """
        return replace(
            block,
            id=self._new_id(),
            tokens=tokens,
            digest=block.digest if block.content_type == "tool_call" else self._digest(text),
            chars=len(text),
            count_source=count_source,
            text=text,
            replaces=block.id,
            handle=handle,
        )

    def mark_referenced(self, block_ids: Sequence[str], by: str, at: float | None = None) -> None:
        """Block *by* used identifiers that only *block_ids* hold; their lifetimes start again."""
        marked = tuple(block_id for block_id in block_ids if self.window.mark_referenced(block_id, self.turn))
        if marked:
            self.record(BlocksReferenced(marked, by), at)

    def evict(
        self, eviction: BlocksEvicted, placeholders: Iterable[Block] = (), at: float | None = None
    ) -> Event:
        """Remove blocks, or replace them by *placeholders*; ids that the window never held are skipped."""
        event = self.record(eviction, at)
        cause = event_id(self.info.stream_id, event.n, event.at)
        by_replaced = {block.replaces: block for block in placeholders}
        removed: list[Block] = []
        for evicted in eviction.blocks:
            placeholder = by_replaced.pop(evicted.block_id, None)
            removed += self.window.replace((evicted.block_id,), () if placeholder is None else (placeholder,))
            if placeholder is not None:
                self.record(BlockAdded(placeholder), at)
        self._watch(removed, "eviction", cause)
        self.gauge.growth.count_evicted(len(eviction.blocks))
        self._trend.evicted_blocks += len(eviction.blocks)
        self.gauge.account.reduce()
        return event

    def compress(
        self,
        compression: ContentCompressed,
        results: Iterable[Block] = (),
        at: float | None = None,
        *,
        window_tokens: int | None = None,
        in_place: bool = False,
    ) -> Event:
        """Replace content by less content; a rejected or failed attempt changes nothing.

        *window_tokens* is the size of the whole window afterwards, if the agent reported one. The results take
        the position of the first removed block, or with *in_place* each the position of the block it `replaces`.
        """
        event = self.record(compression, at)
        if compression.outcome != "accepted":
            return event
        results = tuple(results)
        if in_place:
            by_replaced = {block.replaces: block for block in results}
            removed = [
                block
                for block_id in compression.removed
                for block in self.window.replace(
                    (block_id,), (by_replaced[block_id],) if block_id in by_replaced else ()
                )
            ]
        else:
            removed = self.window.replace(compression.removed, results)
        self._watch(removed, "compression", event_id(self.info.stream_id, event.n, event.at))
        for block in results:
            self._record_added(block, at)
        self._trend.compressions += 1
        account = self.gauge.account
        account.reduce()
        if window_tokens is not None or compression.scope == "window" or compression.method == "agent":
            account.rebase(window_tokens, self.window.tokens)
            self._attribute_next = True
        if self.on_compressed is not None:
            self.on_compressed(event, removed)
        return event

    def roll(self, reason: str, at: float | None = None, *, carried: Iterable[Block] = ()) -> list[Block]:
        """Continue in a new window; *reason* is `checkpoint` or `clear`.

        *carried* blocks open it: each under a new id that `replaces` the old one, in its old group and tool
        cycle, and not counted as added. Returns them as they are in the new window.
        """
        before = self.gauge.account.used(self.window.tokens)
        self.record(
            WindowRolled(
                "clear" if reason == "clear" else "checkpoint", self.window_id, self.window_id + 1, before
            ),
            at,
        )
        self.window.clear()
        self.window_id += 1
        self.gauge.account.reset()
        self._unattributed, self._attribute_next = None, True
        self._call_blocks.clear()
        self._reply_group = None
        self._measured = self._replied = False
        self.emitter.enter(self.turn, self.window_id)
        opened = self._renamed(carried)
        for block in opened:
            self.window.add(block)
            self._record_added(block, at)
        self.gauge.count_call()
        return opened

    def _renamed(self, blocks: Iterable[Block]) -> list[Block]:
        """Return the blocks under new ids; a group is named after the new id of its first block."""
        groups: dict[str, str] = {}
        renamed = []
        for block in blocks:
            block_id = self._new_id()
            group = groups.setdefault(block.group, block_id)
            renamed.append(replace(block, id=block_id, group=group, replaces=block.id))
        return renamed

    def _new_id(self) -> str:
        block_id = f"b{self._blocks}"
        self._blocks += 1
        return block_id

    def _record_added(self, block: Block, at: float | None) -> None:
        """Record a replacement; results of a tool call find its group under the new id."""
        self.record(BlockAdded(block), at)
        if block.content_type == "tool_call" and block.tool_call_id is not None:
            self._call_blocks[block.tool_call_id] = block

    def _check_regret(self, block: Block, at: float | None) -> None:
        removed = self._removed.take(block.digest, self.turn)
        if removed is not None:
            self._trend.regrets += 1
            match: Literal["same_call", "same_digest"] = (
                "same_call" if block.content_type == "tool_call" else "same_digest"
            )
            self.record(removed.regretted(match, by=block.id), at)

    def _watch(self, blocks: Sequence[Block], cause: Cause, cause_event_id: str) -> None:
        """Watch removed blocks for their return."""
        for block in blocks:
            if block.tokens >= self.settings.regret_minimum_tokens and block.content_type not in DERIVED_TYPES:
                call = self._call_blocks.get(block.tool_call_id) if block.tool_call_id is not None else None
                self._removed.remember(
                    RemovedBlock.of(block, call, turn=self.turn, cause=cause, cause_event_id=cause_event_id)
                )
        for block in blocks:
            if block.content_type == "tool_call" and block.tool_call_id is not None:
                self._call_blocks.pop(block.tool_call_id, None)


def _limit_fields(limits: WindowLimits | None) -> dict[str, Any]:
    """Return the fields of events that report limits; empty for unknown limits."""
    if limits is None:
        return {}
    return {
        "limit_tokens": limits.limit_tokens,
        "limit_source": limits.source,
        "reserved_tokens": limits.reserved_tokens,
        "margin_tokens": limits.margin_tokens,
        "yellow_ratio": limits.thresholds.yellow,
        "orange_ratio": limits.thresholds.orange,
        "red_ratio": limits.thresholds.red,
    }
