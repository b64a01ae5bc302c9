"""The session tracker: one session's window, and the only code that derives events from facts.

The manager, the observer and every importer call it; metrics, alerts, timeline, audit and replay read only the
events that it emits. It does no I/O: events are passed to the `emit` callable, one list per turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from windowpane.core.agents import AgentProgram
from windowpane.core.events import (
    BlockAdded,
    BlocksEvicted,
    BlocksReferenced,
    ContentCompressed,
    Event,
    EvictedBlock,
    HistoryRewound,
    MisstepObserved,
    ReplyDiscarded,
    StaticContentRemoved,
    WindowRolled,
    event_id,
)
from windowpane.core.limits import TrackerSettings, WindowLimits
from windowpane.core.protocols import Clock, Digester
from windowpane.core.redaction import stored_id, stored_name
from windowpane.core.tracking.marks import ACCESS_MARKS, MARKED_TYPES, NO_MARKS, marks_of
from windowpane.core.tracking.missteps import MisstepWatch
from windowpane.core.tracking.regret import RESTATED_TYPES, Cause, RemovedBlocks
from windowpane.core.tracking.targets import SKILL_TOOL, call_target, memory_file_of, memory_path, skill_of
from windowpane.core.tracking.turns import BUFFERED_EVENTS, SessionInfo, TurnTracker
from windowpane.core.vocabulary import (
    COMPONENT_OF,
    NOT_ADDED,
    PROVIDER,
    REPLY_TYPES,
    REWOUND,
    STATIC_TYPES,
    CacheBreakCause,
    ContentType,
    CountSource,
)
from windowpane.core.window.blocks import Block, renamed, replacement, shortened


class SessionTracker(TurnTracker):
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
        smaller_limit: Callable[[int], int | None] | None = None,
        program: AgentProgram | None = None,
    ) -> None:
        super().__init__(
            info,
            emit=emit,
            digest=digest,
            limits=limits,
            settings=settings,
            clock=clock,
            next_limit=next_limit,
            smaller_limit=smaller_limit,
            program=program,
        )
        self.compression_listeners: list[Callable[[Event, Sequence[Block]], object]] = []
        """Called after each accepted compression with its event and the removed blocks."""
        self._removed = RemovedBlocks(self.settings)
        self._missteps = MisstepWatch(self.settings)
        self._call_blocks: dict[str, Block] = {}
        """Tool calls in the window by id."""
        self._last_type: ContentType | None = None

    def add(  # noqa: C901, PLR0912, PLR0915  # the agent's hot path, written out
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
        memory_file: str | None = None,
        at: float | None = None,
    ) -> Block:
        """Add a block; opens a turn if none is open, and measures the call at the first block of its reply.

        *memory_file* is the path of the file that injected content is from, unless the text starts with it.
        """
        if not self.in_turn:
            self._open_turn(at)
        if tool_call_id:
            tool_call_id = stored_id(tool_call_id)
        if handle:
            handle = stored_id(handle)
        if tool_name:
            tool_name = stored_name(tool_name)
        block_id = group = f"b{self._blocks}"
        gauge, emitter = self.gauge, self.emitter
        if content_type in REPLY_TYPES:
            if not self._replied:
                self._measure_call(at)
            group = self._reply_group = self._reply_group or block_id
            gauge.reply_tokens += tokens
            if content_type == "tool_call":
                gauge.reply_tool_calls += 1
        else:
            self._reply_group = None
            if content_type == "user_message" and self._last_type != "user_message":
                self.exchange += 1
            elif tool_call_id is not None and tool_call_id in self._call_blocks:
                group = self._call_blocks[tool_call_id].group
        self._last_type = content_type
        target = call = None
        if tool_call_id is not None:
            if content_type == "tool_call":
                target = call_target(text) if text else None
            elif (call := self._call_blocks.get(tool_call_id)) is not None:
                tool_name, target = tool_name or call.tool_name, call.target
        elif content_type == "memory_injection" and text:
            if (target := skill_of(text)) is not None:
                tool_name = SKILL_TOOL
            else:
                target = memory_path(memory_file) if memory_file else memory_file_of(text)
        if text:
            digest = digest or self._digest(text)
        marks = NO_MARKS
        if content_type in MARKED_TYPES:
            marks = marks_of(content_type, text, tool_name=tool_name, target=target, call=call)
        block = Block(
            block_id, content_type, tokens, self.turn, group, self.exchange, digest, len(text or ""),
            count_source, text, tool_call_id, tool_name, pinned, None, handle, target, marks,
        )  # fmt: skip
        self._blocks += 1
        self.window.add(block)
        if count_source != "exact":
            gauge.exact = False
        if content_type not in NOT_ADDED:
            gauge.added_tokens += tokens
            component, added = COMPONENT_OF[content_type], gauge.added_by_component
            added[component] = added.get(component, 0) + tokens
        else:
            gauge.exclude(tokens)
        if at is None and emitter.clock is not None:
            at = emitter.clock()
        # `EventEmitter.record`, written out: the one event that an agent's thread makes by the dozen. The
        # constructor of a named tuple is a Python function, which takes twice as long.
        buffer, number = emitter.buffer, emitter.n
        buffer.append(tuple.__new__(Event, (emitter.context, number, at, BlockAdded(block))))
        emitter.n = number + 1
        if len(buffer) >= BUFFERED_EVENTS:
            emitter.flush()
        if tool_call_id is not None and content_type == "tool_call":
            self._call_blocks[tool_call_id] = block
        if (removed := self._removed).by_digest:
            if digest in removed.by_digest:
                self._check_regret(block, at)
            if content_type == "tool_call":
                removed.record_call(block)
        if content_type == "tool_call" or (marks and not marks <= ACCESS_MARKS):
            self._check_misstep(block, at)
        return block

    def discard_text(self, block_id: str) -> None:
        """Discard the text of a block in the window, whose digest and size remain."""
        block = self.window.discard_text(block_id)
        if block.content_type == "tool_call" and block.tool_call_id in self._call_blocks:
            self._call_blocks[block.tool_call_id] = block

    def make_replacement(
        self,
        content_type: ContentType,
        text: str | None,
        tokens: int,
        *,
        replaces: str | None,
        count_source: CountSource = "estimate",
        handle: str | None = None,
    ) -> Block:
        """Make a block that replaces the block *replaces*, for `evict` or `compress`; the window is unchanged.

        A placeholder belongs to the group and the tool call of the block that it replaces.
        """
        return replacement(
            self._new_id(),
            content_type,
            text,
            tokens,
            turn=self.turn,
            exchange=self.exchange,
            digest=self._digest(text) if text else "",
            count_source=count_source,
            handle=handle,
            replaces=replaces,
            old=self.window.slot(replaces).block if replaces is not None and replaces in self.window else None,
            marks=marks_of(content_type, text),
        )

    def make_shortened(
        self, block: Block, text: str, tokens: int, *, count_source: CountSource, handle: str | None
    ) -> Block:
        """Make a shorter version of *block* for `compress`: same type, age, group and tool call.

        A tool call keeps the digest of all its arguments.
        """
        digest = block.digest if block.content_type == "tool_call" else self._digest(text)
        return shortened(
            block, self._new_id(), text, tokens, digest=digest, count_source=count_source, handle=handle
        )

    def mark_referenced(self, block_ids: Sequence[str], by: str, at: float | None = None) -> None:
        """Block *by* used identifiers that only *block_ids* hold; their lifetimes start again."""
        marked = tuple(block_id for block_id in block_ids if self.window.mark_referenced(block_id, self.turn))
        if marked:
            self.record(BlocksReferenced(marked, by), at)

    def revise(self, block: Block, at: float | None = None) -> None:
        """Replace static content, or that of a reply, by *block*, as the agent sends it; only growth is added."""
        if block.content_type in NOT_ADDED:
            self.record_change("edited", (block.replaces or "",))
            used, raw = self.gauge.used, self.window.tokens
            self.window.replace((block.replaces or "",), (block,))
            self._record_added(block, at)
            self.gauge.count_removed(used, raw)
            return
        self.record_change("edited", (block.replaces or "",), block.id)
        before = sum(old.tokens for old in self.window.replace((block.replaces or "",), (block,)))
        grown = max(0, block.tokens - before)
        component, gauge = COMPONENT_OF[block.content_type], self.gauge
        gauge.added_tokens += grown
        gauge.added_by_component[component] = gauge.added_by_component.get(component, 0) + grown
        self._record_added(block, at)

    def discard_reply(self, block_ids: Sequence[str], at: float | None = None) -> None:
        """Remove content of a reply that the agent did not send back."""
        removed = self._remove(block_ids, ReplyDiscarded, at)
        self._remove_calls(removed)

    def remove_static(self, block_ids: Sequence[str], at: float | None = None) -> None:
        """Remove a system prompt or tool definitions that the agent no longer sends."""
        self._remove(block_ids, StaticContentRemoved, at)

    def _remove(
        self, block_ids: Sequence[str], event: type[ReplyDiscarded | StaticContentRemoved], at: float | None
    ) -> Sequence[Block]:
        """Remove blocks by an event that is not an eviction; return them."""
        used, raw = self.gauge.used, self.window.tokens
        self.record_change("removed", block_ids)
        removed = self.window.replace(block_ids, ())
        self.record(event(tuple(block_ids), sum(block.tokens for block in removed)), at)
        self.gauge.count_removed(used, raw)
        self._totals.record_removal()
        return removed

    def evict(
        self, eviction: BlocksEvicted, placeholders: Iterable[Block] = (), at: float | None = None
    ) -> Event:
        """Remove blocks, or replace them by *placeholders*; ids that the window never held are skipped."""
        event = self.record(eviction, at)
        used, raw = self.gauge.used, self.window.tokens
        cause = event_id(self.info.stream_id, event.n, event.at)
        by_replaced = {block.replaces: block for block in placeholders}
        removed: list[Block] = []
        if eviction.policy == REWOUND:
            self._cache.restart()
        for evicted in eviction.blocks:
            placeholder = by_replaced.pop(evicted.block_id, None)
            edited = placeholder is not None and placeholder.content_type != "placeholder"
            self.record_change("edited" if edited else "removed", (evicted.block_id,))
            removed += self.window.replace((evicted.block_id,), () if placeholder is None else (placeholder,))
            if placeholder is not None:
                self.record(BlockAdded(placeholder), at)
        self._watch(removed, "eviction", cause, except_types=STATIC_TYPES)  # sent again, they are not fetched
        self.gauge.growth.count_evicted(sum(one.content_type not in STATIC_TYPES for one in eviction.blocks))
        self._trend.evicted_blocks += len(eviction.blocks)
        self.gauge.count_removed(used, raw)
        self._totals.record_removal()
        return event

    def rewind(
        self,
        abandoned: Sequence[str],
        *,
        last_kept: str | None,
        restored: Iterable[Block] = (),
        at: float | None = None,
    ) -> list[Block]:
        """Continue after the block *last_kept*: the blocks *abandoned* leave, and those of *restored* return.

        The user left a branch, and no policy removed content, so nothing is watched for regret. Returns the
        restored blocks, each under a new id that `replaces` the old one.
        """
        blocks = [self.window.slot(block_id).block for block_id in abandoned]
        used, raw = self.gauge.used, self.window.tokens
        tokens = sum(block.tokens for block in blocks)
        turns = len({block.turn for block in blocks if block.content_type in REPLY_TYPES})
        self.record(HistoryRewound(last_kept, turns, len(blocks), tokens), at)
        if blocks:
            evicted = tuple(
                EvictedBlock(
                    block.id, block.content_type, block.tokens, "drop", "the branch was abandoned",
                    turn_added=block.turn, tool_name=block.tool_name,
                )
                for block in blocks
            )  # fmt: skip
            self.record(BlocksEvicted(REWOUND, evicted, tokens, tokens), at)
        self.window.replace(abandoned, ())
        self._remove_calls(blocks)
        returned = renamed(restored, self._new_id)
        for block in returned:
            self.window.add(block)
            self._record_added(block, at)
        unsent = [block for block in blocks if self.in_turn and block.turn == self.turn]
        self.gauge.count_rewound(unsent, used, raw)
        self._totals.record_rewind()
        self._reply_group = self._last_type = None
        return returned

    def compress(
        self,
        compression: ContentCompressed,
        results: Iterable[Block] = (),
        at: float | None = None,
        *,
        window_tokens: int | None = None,
        window_tokens_before: int | None = None,
        in_place: bool = False,
    ) -> Event:
        """Replace content by less content; a rejected or failed attempt changes nothing.

        *window_tokens* is the size of the whole window afterwards, if the agent reported one, and
        *window_tokens_before* the one before. The results take the position of the first removed block, or with
        *in_place* each the position of the block it `replaces`.
        """
        event = self.record(compression, at)
        if compression.outcome != "accepted":
            return event
        used, raw = self.gauge.used, self.window.tokens
        results = tuple(results)
        used_before = window_tokens_before or self.gauge.account.used(self.window.tokens)
        if window_tokens_before is not None:
            self._raise_limit(window_tokens_before, at)
        if compression.strategy == "compaction":
            self._totals.record_compaction(event.event_id, stated_tokens=window_tokens_before, limits=self.limits)
            self._cache.restart()
        else:
            self._totals.record_removal()
            self.record_change("removed", compression.removed)
        if in_place:
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
            window_tokens is not None
            or compression.scope == "window"
            or compression.method in ("agent", PROVIDER)
        ):
            self.gauge.restart(window_tokens)
            self._attribute_next = True
        if compression.is_own_compaction or by_provider:
            self._record_own_compaction(used_before, at, is_at_limit=not by_provider)
        for listener in self.compression_listeners:
            listener(event, removed)
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
        self.gauge.restart()
        self.gauge.account.reset()
        self._totals.restart()
        self._cache.restart()
        self._unattributed, self._attribute_next = None, True
        self._call_blocks.clear()
        self._reply_group = None
        self._measured = self._replied = False
        self.emitter.enter(self.turn, self.window_id)
        opened = renamed(carried, self._new_id)
        for block in opened:
            self.window.add(block)
            self._record_added(block, at)
        self.gauge.count_call()
        return opened

    def record_change(self, cause: CacheBreakCause, block_ids: Iterable[str], changed: str | None = None) -> None:
        """Record that sent blocks changed, or that *changed* was put in front of them."""
        window = self.window
        for block_id in block_ids:
            if block_id in window:
                self._cache.record_change(window.slot(block_id).position, cause, changed or block_id)

    def _record_added(self, block: Block, at: float | None) -> None:
        """Record a replacement; results of a tool call find its group under the new id."""
        self.record(BlockAdded(block), at)
        if block.content_type == "tool_call" and block.tool_call_id is not None:
            self._call_blocks[block.tool_call_id] = block

    def _check_misstep(self, block: Block, at: float | None) -> None:
        watch, call_turn = self._missteps, self.turn - 1
        if block.content_type == "tool_call":
            misstep, call_turn = watch.in_call(block), self.turn
        elif block.content_type == "user_message":
            misstep = watch.in_message(block)
        else:
            call = self._call_blocks.get(block.tool_call_id or "")
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
            self._call_blocks,
            turn=self.turn,
            cause=cause,
            cause_event_id=cause_event_id,
            except_types=except_types,
        )
        self._remove_calls(blocks)

    def _remove_calls(self, removed: Iterable[Block]) -> None:
        for block in removed:
            if block.content_type == "tool_call" and block.tool_call_id is not None:
                self._call_blocks.pop(block.tool_call_id, None)
