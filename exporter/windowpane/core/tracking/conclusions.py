"""Conclusions of one session: its window, and the only code that derives events from facts.

No conclusion reads the text of a block, a clock or a file, so the same facts give the same events: live, in an
import, and when they are read again. Events are passed to the `emit` callable, one list per turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal

from windowpane.core.agents import AgentProgram
from windowpane.core.events import (
    BlockAdded,
    BlocksEvicted,
    BlocksReferenced,
    Event,
    EvictedBlock,
    HistoryRewound,
    MisstepObserved,
    ReplyDiscarded,
    StaticContentRemoved,
    Usage,
    WindowRolled,
    event_id,
)
from windowpane.core.limits import TrackerSettings, WindowLimits
from windowpane.core.tracking.emitter import BUFFERED_EVENTS, SessionInfo
from windowpane.core.tracking.facts import (
    Addition,
    BlockEviction,
    CallEnding,
    CallOpening,
    CallSending,
    Discard,
    LimitSetting,
    ModelChoice,
    ProgramVersion,
    Reduction,
    Reference,
    Revision,
    Rewind,
    Rollover,
    SentChange,
    SessionEnding,
    SessionFact,
    SessionOpening,
    SpanChoice,
    Statement,
    TurnOpening,
    WindowReading,
)
from windowpane.core.tracking.marks import ACCESS_MARKS
from windowpane.core.tracking.missteps import MisstepWatch
from windowpane.core.tracking.regret import RESTATED_TYPES, Cause, RemovedBlocks
from windowpane.core.tracking.turns import TurnConclusions
from windowpane.core.vocabulary import (
    COMPONENT_OF,
    NOT_ADDED,
    PROVIDER,
    REPLY_TYPES,
    REWOUND,
    STATIC_TYPES,
    UNKNOWN_CAUSE,
    CacheBreakCause,
    ContentType,
)
from windowpane.core.window.blocks import Block


class Conclusions(TurnConclusions):
    """Holds one session's window and derives its events from facts.

    Not thread-safe; its owner serializes calls.
    """

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
        super().__init__(
            info,
            emit=emit,
            limits=limits,
            settings=settings,
            next_limit=next_limit,
            smaller_limit=smaller_limit,
            program=program,
        )
        self.calls: dict[str, Block] = {}
        """Tool calls in the window by id."""
        self._removed = RemovedBlocks(self.settings)
        self._missteps = MisstepWatch(self.settings)

    def conclude(self, fact: SessionFact, cost_of: Callable[[Usage], float | None] | None = None) -> None:
        """Derive the events of any fact; *cost_of* returns the price of usage, for the end of a call."""
        if isinstance(fact, CallEnding):
            self.end_call(fact, cost_of)
        else:
            _METHODS[type(fact)](self, fact)

    def record_statement(self, fact: Statement) -> Event:
        """Emit what was recorded, as it is."""
        return self.record(fact.payload, fact.at)

    def add(self, fact: Addition) -> None:
        """Add a block to the window; emit `block.added`, and the regret or the misstep that it shows."""
        block, at = fact.block, fact.at
        content_type, tokens, digest = block.content_type, block.tokens, block.digest
        gauge, emitter = self.gauge, self.emitter
        if content_type in REPLY_TYPES:
            gauge.reply_tokens += tokens
            if content_type == "tool_call":
                gauge.reply_tool_calls += 1
        self.exchange = block.exchange
        self.window.add(block)
        if block.count_source != "exact":
            gauge.exact = False
        if content_type not in NOT_ADDED:
            gauge.added_tokens += tokens
            component, added = COMPONENT_OF[content_type], gauge.added_by_component
            added[component] = added.get(component, 0) + tokens
        else:
            gauge.exclude(tokens)
        # `EventEmitter.record`, written out: the one event that an agent's thread makes by the dozen. The
        # constructor of a named tuple is a Python function, which takes twice as long.
        buffer, number = emitter.buffer, emitter.n
        buffer.append(tuple.__new__(Event, (emitter.context, number, at, BlockAdded(block))))
        emitter.n = number + 1
        if len(buffer) >= BUFFERED_EVENTS:
            emitter.flush()
        is_call = content_type == "tool_call"
        if is_call and block.tool_call_id is not None:
            self.calls[block.tool_call_id] = block
        if (removed := self._removed).by_digest:
            if digest in removed.by_digest:
                self._check_regret(block, at)
            if is_call:
                removed.record_call(block)
        if is_call or not block.marks <= ACCESS_MARKS:
            self._check_misstep(block, at)

    def reference(self, fact: Reference) -> None:
        """Renew the lifetimes of the blocks that are in the window, and emit `blocks.referenced`."""
        window, turn = self.window, self.turn
        marked = tuple(block_id for block_id in fact.block_ids if window.mark_referenced(block_id, turn))
        if marked:
            self.record(BlocksReferenced(marked, fact.by), fact.at)

    def revise(self, fact: Revision) -> None:
        """Replace static content, or that of a reply; only growth counts as added."""
        block = fact.block
        if block.content_type in NOT_ADDED:
            self._record_change("edited", (block.replaces or "",))
            used, raw = self.gauge.used, self.window.tokens
            self.window.replace((block.replaces or "",), (block,))
            self._record_added(block, fact.at)
            self.gauge.count_removed(used, raw)
            return
        self._record_change("edited", (block.replaces or "",), block.id)
        before = sum(old.tokens for old in self.window.replace((block.replaces or "",), (block,)))
        grown = max(0, block.tokens - before)
        component, gauge = COMPONENT_OF[block.content_type], self.gauge
        gauge.added_tokens += grown
        gauge.added_by_component[component] = gauge.added_by_component.get(component, 0) + grown
        self._record_added(block, fact.at)

    def discard(self, fact: Discard) -> None:
        """Remove content that the agent no longer sends, by an event that is not an eviction."""
        used, raw = self.gauge.used, self.window.tokens
        self._record_change("removed", fact.block_ids)
        removed = self.window.replace(fact.block_ids, ())
        event = ReplyDiscarded if fact.kind == "reply" else StaticContentRemoved
        self.record(event(fact.block_ids, sum(block.tokens for block in removed)), fact.at)
        self.gauge.count_removed(used, raw)
        self._totals.record_removal()
        if fact.kind == "reply":
            self._remove_calls(removed)

    def evict(self, fact: BlockEviction) -> Event:
        """Remove blocks, or replace them by placeholders; ids that the window never held are skipped.

        A removal without a record took place at any time before: it explains no total and no cache break, and
        nothing is watched for its return.
        """
        eviction, at = fact.eviction, fact.at
        is_recorded = eviction.policy != UNKNOWN_CAUSE
        event = self.record(eviction, at)
        used, raw = self.gauge.used, self.window.tokens
        cause = event_id(self.info.stream_id, event.n, event.at)
        by_replaced = {block.replaces: block for block in fact.placeholders}
        removed: list[Block] = []
        if eviction.policy == REWOUND:
            self._cache.restart()
        for evicted in eviction.blocks:
            placeholder = by_replaced.pop(evicted.block_id, None)
            edited = placeholder is not None and placeholder.content_type != "placeholder"
            if is_recorded:
                self._record_change("edited" if edited else "removed", (evicted.block_id,))
            removed += self.window.replace((evicted.block_id,), () if placeholder is None else (placeholder,))
            if placeholder is not None:
                self.record(BlockAdded(placeholder), at)
        self._trend.evicted_blocks += len(eviction.blocks)
        self.gauge.count_removed(used, raw)
        if is_recorded:
            self._watch(removed, "eviction", cause, except_types=STATIC_TYPES)  # sent again, they are not fetched
            self.gauge.growth.count_evicted(sum(one.content_type not in STATIC_TYPES for one in eviction.blocks))
            self._totals.record_removal()
        else:
            self._remove_calls(removed)
        if fact.window_tokens is not None:
            self.gauge.rebase(fact.window_tokens)
        return event

    def rewind(self, fact: Rewind) -> None:
        """Remove the abandoned blocks and put back the restored ones; nothing is watched for regret."""
        at = fact.at
        blocks = [self.window.slot(block_id).block for block_id in fact.abandoned]
        used, raw = self.gauge.used, self.window.tokens
        tokens = sum(block.tokens for block in blocks)
        turns = len({block.turn for block in blocks if block.content_type in REPLY_TYPES})
        self.record(HistoryRewound(fact.last_kept, turns, len(blocks), tokens), at)
        if blocks:
            evicted = tuple(
                EvictedBlock(
                    block.id, block.content_type, block.tokens, "drop", "the branch was abandoned",
                    turn_added=block.turn, tool_name=block.tool_name,
                )
                for block in blocks
            )  # fmt: skip
            self.record(BlocksEvicted(REWOUND, evicted, tokens, tokens), at)
        self.window.replace(fact.abandoned, ())
        self._remove_calls(blocks)
        for block in fact.restored:
            self.window.add(block)
            self._record_added(block, at)
        unsent = [block for block in blocks if self.in_turn and block.turn == self.turn]
        self.gauge.count_rewound(unsent, used, raw)
        self._totals.record_rewind()

    def compress(self, fact: Reduction) -> Event:
        """Replace content by less content; a rejected or failed attempt changes nothing."""
        compression, results, at = fact.compression, fact.results, fact.at
        event = self.record(compression, at)
        if compression.outcome != "accepted":
            return event
        used, raw = self.gauge.used, self.window.tokens
        used_before = fact.window_tokens_before or self.gauge.account.used(self.window.tokens)
        if fact.window_tokens_before is not None:
            self._raise_limit(fact.window_tokens_before, at)
        if compression.strategy == "compaction":
            stated = fact.window_tokens_before
            self._totals.record_compaction(event.event_id, stated_tokens=stated, limits=self.limits)
            self._cache.restart()
        else:
            self._totals.record_removal()
            self._record_change("removed", compression.removed)
        if fact.in_place:
            by_replaced = {block.replaces: (block,) for block in results}
            removed = [
                block
                for block_id in compression.removed
                for block in self.window.replace((block_id,), by_replaced.get(block_id, ()))
            ]
        else:
            removed = self.window.replace(compression.removed, results)
        cause = event_id(self.info.stream_id, event.n, event.at)
        by_agent = compression.strategy == "compaction" and compression.method == "agent"
        self._watch(removed, "compression", cause, except_types=RESTATED_TYPES if by_agent else frozenset())
        for block in results:
            self._record_added(block, at)
        self._trend.compressions += 1
        self.gauge.count_removed(used, raw)
        by_provider = compression.method == PROVIDER
        if (
            fact.window_tokens is not None
            or compression.scope == "window"
            or compression.method in ("agent", PROVIDER)
        ):
            self.gauge.restart(fact.window_tokens)
            self._attribute_next = True
        if compression.is_own_compaction or by_provider:
            self._record_own_compaction(used_before, at, is_at_limit=not by_provider)
        return event

    def roll(self, fact: Rollover) -> None:
        """Continue in a new window, which holds the carried blocks; they are not counted as added."""
        before = self.gauge.account.used(self.window.tokens)
        self.record(WindowRolled(fact.reason, self.window_id, self.window_id + 1, before), fact.at)
        self.window.clear()
        self.window_id += 1
        self.gauge.restart()
        self.gauge.account.reset()
        self._totals.restart()
        self._cache.restart()
        self._unattributed, self._attribute_next = None, True
        self.calls.clear()
        self._measured = self.replied = False
        self.emitter.enter(self.turn, self.window_id)
        for block in fact.carried:
            self.window.add(block)
            self._record_added(block, fact.at)
        self.gauge.count_call()

    def record_change(self, fact: SentChange) -> None:
        """Record that sent content changed: the next call cannot read what follows it from the prompt cache."""
        self._record_change(fact.cause, fact.block_ids, fact.changed)

    # -- inside -----------------------------------------------------------------------------------------------

    def _record_change(
        self, cause: CacheBreakCause, block_ids: Iterable[str], changed: str | None = None
    ) -> None:
        window = self.window
        for block_id in block_ids:
            if block_id in window:
                self._cache.record_change(window.slot(block_id).position, cause, changed or block_id)

    def _record_added(self, block: Block, at: float | None) -> None:
        """Record a replacement; results of a tool call find its group under the new id."""
        self.record(BlockAdded(block), at)
        if block.content_type == "tool_call" and block.tool_call_id is not None:
            self.calls[block.tool_call_id] = block

    def _check_misstep(self, block: Block, at: float | None) -> None:
        watch, call_turn = self._missteps, self.turn - 1
        if block.content_type == "tool_call":
            misstep, call_turn = watch.in_call(block), self.turn
        elif block.content_type == "user_message":
            misstep = watch.in_message(block)
        else:
            call = self.calls.get(block.tool_call_id or "")
            misstep = watch.in_result(block)
            call_turn = call_turn if call is None else call.turn
        if misstep is not None:
            self.record(MisstepObserved(misstep, block.id, call_turn, self._call_utilization), at)

    def _check_regret(self, block: Block, at: float | None) -> None:
        removed = self._removed.take(block.digest, self.turn)
        if removed is not None:
            self._trend.regrets += 1
            match: Literal["same_call", "same_digest"] = (
                "same_call" if block.content_type == "tool_call" else "same_digest"
            )
            self.record(removed.regretted(match, by=block.id), at)

    def _watch(
        self,
        blocks: Sequence[Block],
        cause: Cause,
        cause_event_id: str,
        *,
        except_types: frozenset[ContentType] = frozenset(),
    ) -> None:
        """Watch removed blocks for their return."""
        self._removed.watch(
            blocks,
            self.calls,
            turn=self.turn,
            cause=cause,
            cause_event_id=cause_event_id,
            except_types=except_types,
        )
        self._remove_calls(blocks)

    def _remove_calls(self, removed: Iterable[Block]) -> None:
        for block in removed:
            if block.content_type == "tool_call" and block.tool_call_id is not None:
                self.calls.pop(block.tool_call_id, None)


_METHODS: Final[Mapping[type, Callable[[Conclusions, Any], object]]] = {
    SessionOpening: Conclusions.open_session,
    LimitSetting: Conclusions.set_limits,
    ModelChoice: Conclusions.choose_model,
    ProgramVersion: Conclusions.set_version,
    SpanChoice: Conclusions.choose_span,
    TurnOpening: Conclusions.open_turn,
    CallOpening: Conclusions.open_call,
    CallSending: Conclusions.send_call,
    WindowReading: Conclusions.read_window,
    Addition: Conclusions.add,
    Reference: Conclusions.reference,
    Revision: Conclusions.revise,
    Discard: Conclusions.discard,
    BlockEviction: Conclusions.evict,
    Rewind: Conclusions.rewind,
    Reduction: Conclusions.compress,
    Rollover: Conclusions.roll,
    SentChange: Conclusions.record_change,
    SessionEnding: Conclusions.end_session,
    Statement: Conclusions.record_statement,
}
