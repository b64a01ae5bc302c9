"""A session's turns: when one opens, what its call sends, what the provider says of it, and what that means.

A turn is measured against what its call sends, not against what has entered since: the reply and what follows it
belong to the next call.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, Literal

from windowpane.core.events import (
    BlockAdded,
    ChangeUnidentified,
    Event,
    PressureMeasured,
    TurnEnded,
    TurnStarted,
    Usage,
    UsageRejected,
    VelocitySpiked,
    ZoneChanged,
)
from windowpane.core.limits import TrackerSettings, WindowLimits
from windowpane.core.protocols import Clock, Digester
from windowpane.core.tracking.emitter import SessionInfo
from windowpane.core.tracking.forecast import zone_of
from windowpane.core.tracking.measure import Reading
from windowpane.core.tracking.measure import measure as read_gauges
from windowpane.core.tracking.session import Session
from windowpane.core.tracking.token_account import Accounts
from windowpane.core.vocabulary import Component, CountSource, LimitSource, Phase, Zone
from windowpane.core.window.blocks import Block
from windowpane.core.window.window import Window

UNIDENTIFIED_RATIO: Final = 0.10
UNIDENTIFIED_TOKENS: Final = 2_000
REPORT_RANGE: Final = (0.5, 2.0)
"""What a model says of its own budget is believed within this share of what is known."""


class Turns(Session):
    """Opens, measures and closes the turns of a session, and keeps its token accounts."""

    def __init__(
        self,
        info: SessionInfo,
        *,
        emit: Callable[[list[Event]], None],
        digest: Digester,
        limits: WindowLimits | None,
        settings: TrackerSettings,
        clock: Clock | None,
        next_limit: Callable[[int], int | None] | None,
    ) -> None:
        super().__init__(info, emit=emit, digest=digest, limits=limits, settings=settings, clock=clock)
        self.window = Window(settings.lifetimes)
        self.accounts = Accounts()
        self.exchange = 0
        self.zone: Zone = "green"
        self.in_turn = False
        """Whether a turn is open: a block came in since the last one ended."""
        self._next_limit = next_limit
        self.share: Callable[[int, LimitSource], WindowLimits] | None = None
        """How a size that is learnt later is shared out; None for the usual way."""
        self._blocks = 0
        """Blocks made so far; the next one's number."""
        self._reply_group: str | None = None
        self._measured = False
        """Whether the turn's pressure was measured before its call."""
        self._replied = False
        """Whether the turn's reply has begun: what follows was not sent with its call."""
        self._added = 0
        self._added_by_component: dict[Component, int] = {}
        self._call_raw = 0
        """Tokens that the turn's call sends, as counted here; likewise by component."""
        self._call_components: dict[Component, int] = {}
        self._unattributed: str | None = None
        """The block that stands for what the provider counts and nobody sees."""
        self._attribute_next = True
        self._exact = True
        """Whether every block so far was counted by the model's own tokenizer."""
        self._estimate_error: float | None = None
        self._last_usage: Usage | None = None

    def begin_call(self, at: float | None = None) -> None:
        """What enters from here to `measure` is sent with one call, replies that are sent back included."""
        if not self.in_turn:
            self._open_turn(at)
        self._replied = True

    def measure(self, phase: Literal["before", "after"], at: float | None = None) -> PressureMeasured:
        """Emit `pressure.measured`, and `zone.changed` where the zone did; opens a turn when none is open."""
        if not self.in_turn:
            self._open_turn(at)
        self._note_sent()
        self._measured = True
        measured = read_gauges(self, self._reading(phase))
        self.record(measured, at)
        if measured.zone is not None and measured.zone != self.zone:
            previous, self.zone = self.zone, measured.zone
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
        """The model call came back: the provider's count becomes the truth and the turn closes.

        *reported_tokens* is what the model itself said that the call sent; it counts where there is no usage and
        it is near the estimate.
        """
        if not self._replied or not self.in_turn:
            self._note_call(at)
        trusted = usage is not None and usage.input_total > 0 and self._believe(usage.input_total, at)
        total = usage.input_total if usage is not None and trusted else None
        source: CountSource = "usage" if trusted else self._count_source()
        if reported_tokens is not None and self._agrees(reported_tokens, total, at) and total is None:
            total, source = reported_tokens, "reported"
        if total is not None:
            self._anchor(total, at)
        self._last_usage = usage
        self.record(TurnEnded(usage, source, cost_dollars, latency_seconds, stop_reason), at)
        added = round(self._added * self.accounts.calibration)
        baseline = self.pace.close_turn(self.turn, added, self._added_by_component)
        measured = read_gauges(self, self._reading("final", reported=total, source=source))
        self.record(measured, at)
        self._trend.close_turn(measured, cost_dollars)
        if baseline is not None:
            self.record(VelocitySpiked(added, baseline), at)
        self.in_turn = False
        self._measured = self._replied = False
        self._reply_group = None
        self.flush()
        return measured

    # -- inside -----------------------------------------------------------------------------------------------

    def _note_call(self, at: float | None) -> None:
        """The model is called now: the window, as it is, is what it sees."""
        if not self._measured:
            self.measure("before", at)
        else:
            self._note_sent()
        self._replied = True

    def _note_sent(self) -> None:
        self._call_raw = self.window.tokens
        self._call_components = dict(self.window.tokens_by_component)

    def _open_turn(self, at: float | None) -> None:
        self.turn += 1
        self.in_turn = True
        self._measured = self._replied = False
        self._added = 0
        self._added_by_component = {}
        self._estimate_error = None
        self.window.enter_turn(self.turn)
        self.pace.open_turn()
        self._renew_context()
        self.record(TurnStarted(), at)

    def _believe(self, total: int, at: float | None) -> bool:
        """Whether a call's total can be true; one above a catalog's limit raises the limit instead."""
        limits = self.limits
        if limits is None or total <= limits.limit_tokens:
            return True
        if limits.source in ("given", "provider"):
            self.record(UsageRejected(total, limits.limit_tokens, "above_limit"), at)
            return False
        larger = (self._next_limit(total) if self._next_limit is not None else None) or total
        share = self.share
        if share is None:
            share = partial(WindowLimits.of, thresholds=None if limits.has_usual_zones else limits.thresholds)
        self.set_limits(share(max(larger, total), "observed_floor"), at)
        return True

    def _agrees(self, reported: int, total: int | None, at: float | None) -> bool:
        """Whether what the model said of its budget can be true: near the provider's count, or the estimate."""
        expected = self.accounts.used(self._call_raw) if total is None else total
        limit = None if self.limits is None else self.limits.limit_tokens
        low, high = REPORT_RANGE
        if reported > 0 and low * expected <= reported <= high * expected and reported <= (limit or reported):
            return True
        self.record(UsageRejected(reported, limit or 0, "reported_drift"), at)
        return False

    def _anchor(self, total: int, at: float | None) -> None:
        expected = self.accounts.used(self._call_raw)
        surprised = self.accounts.anchored and not self._attribute_next
        self._estimate_error = self.accounts.reported(total, self._call_raw)
        if self._attribute_next:
            self._attribute(total, at)
        elif surprised and abs(total - expected) > max(UNIDENTIFIED_TOKENS, UNIDENTIFIED_RATIO * total):
            self.record(ChangeUnidentified(total - expected), at)

    def _attribute(self, total: int, at: float | None) -> None:
        """What the provider counts beyond the visible content becomes one unattributed block."""
        self._attribute_next = False
        known = self._unattributed
        old = self.window.slot(known).block if known is not None and known in self.window else None
        held = 0 if old is None else old.tokens
        remainder = max(0, total - (self._call_raw - held))
        if remainder == held:
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
        self.accounts.shift(remainder - held)
        self._call_raw += remainder - held
        self._call_components = {**self._call_components, "unattributed": remainder}

    def _count_source(self) -> CountSource:
        return "exact" if self._exact and not self.accounts.anchored else "estimate"

    def _reading(
        self, phase: Phase, *, reported: int | None = None, source: CountSource | None = None
    ) -> Reading:
        used = reported if reported is not None else self.accounts.used(self._call_raw)
        return Reading(
            phase=phase,
            used_tokens=used,
            components=self._call_components,
            count_source=source or self._count_source(),
            zone=None if self.limits is None else zone_of(used, self.limits, previous=self.zone),
            added_tokens=round(self._added * self.accounts.calibration),
            added_by_component=dict(self._added_by_component),
            estimate_error=self._estimate_error if phase == "final" else None,
            usage=self._last_usage,
        )

    def _new_id(self) -> str:
        """An id that no block of this session has had."""
        block_id = f"b{self._blocks}"
        self._blocks += 1
        return block_id
