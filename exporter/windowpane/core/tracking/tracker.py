"""The session tracker: one session's window, and the only code that derives events from facts.

The manager, the observer and every importer feed it; what it emits is all that metrics, alerts, timeline, audit
and replay ever see. It does no I/O: events leave through the `emit` callable it is given, one list a turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Literal

from windowpane.core.events import (
    BlockAdded,
    BlocksEvicted,
    BlocksReferenced,
    ContentCompressed,
    Event,
    WindowRolled,
    event_id,
)
from windowpane.core.limits import TrackerSettings, WindowLimits
from windowpane.core.protocols import Clock, Digester
from windowpane.core.tracking.emitter import BUFFERED_EVENTS, SessionInfo
from windowpane.core.tracking.regret import Cause, Departures, departure_of
from windowpane.core.tracking.turns import Turns
from windowpane.core.vocabulary import (
    COMPONENT_OF,
    DERIVED_TYPES,
    NOT_ADDED,
    REPLY_TYPES,
    ContentType,
    CountSource,
)
from windowpane.core.window.blocks import Block


class SessionTracker(Turns):
    """Owns one session's window and turns what happens to it into events.

    Not thread-safe; its owner serialises calls. Every method takes an optional `at` (seconds since the epoch,
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
        settings = settings or TrackerSettings()
        super().__init__(
            info, emit=emit, digest=digest, limits=limits, settings=settings, clock=clock, next_limit=next_limit
        )
        self.on_compressed: Callable[[Event, Sequence[Block]], object] | None = None
        """Told of each accepted compression and the blocks that left with it, once they have left."""
        self._departures = Departures(capacity=settings.remembered_departures, turns=settings.regret_turns)
        self._call_blocks: dict[str, Block] = {}
        """Tool calls in the window by id, for what comes back as their results."""
        self._last_type: ContentType | None = None

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
        """A block entered; opens a turn when none is open, and a reply first measures what it answers."""
        if not self.in_turn:
            self._open_turn(at)
        block_id = f"b{self._blocks}"
        group = block_id
        if content_type in REPLY_TYPES:
            if not self._replied:
                self._note_call(at)
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
        if count_source != "exact":
            self._exact = False
        if content_type not in NOT_ADDED:
            self._added += tokens
            component = COMPONENT_OF[content_type]
            self._added_by_component[component] = self._added_by_component.get(component, 0) + tokens
        if at is None and self._clock is not None:
            at = self._clock()
        # `record`, written out: this is the one event an agent's thread makes by the dozen.
        self._buffer.append(Event(self._context, self._n, at, BlockAdded(block)))
        self._n += 1
        if len(self._buffer) >= BUFFERED_EVENTS:
            self.flush()
        if content_type == "tool_call" and tool_call_id is not None:
            self._call_blocks[tool_call_id] = block
        if digest in self._departures.by_digest:
            self._notice_return(block, at)
        return block

    def stand_in(
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
        """Make the block that will take the place of *replaces*, keeping its group and tool call; adds nothing.

        Pass it to `evict` or `compress`.
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

    def shorter(
        self, block: Block, text: str, tokens: int, *, count_source: CountSource, handle: str | None
    ) -> Block:
        """Make the block that will say less in *block*'s place: of its kind and age, in its group and tool call.

        Pass it to `compress`. A call stays known by the digest of all its arguments.
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

    def refer(self, block_ids: Sequence[str], by: str, at: float | None = None) -> None:
        """Later content used something that only these blocks hold; their lifetimes begin again."""
        known = tuple(block_id for block_id in block_ids if self.window.refer(block_id, self.turn))
        if known:
            self.record(BlocksReferenced(known, by), at)

    def evict(self, eviction: BlocksEvicted, stand_ins: Iterable[Block] = (), at: float | None = None) -> Event:
        """Take blocks out; masks leave their *stand_ins* in place. Ids the window never held are legal."""
        event = self.record(eviction, at)
        cause = event_id(self.info.stream_id, event.n, event.at)
        places = {block.replaces: block for block in stand_ins}
        left: list[Block] = []
        for evicted in eviction.blocks:
            stand_in = places.pop(evicted.block_id, None)
            left += self.window.replace((evicted.block_id,), () if stand_in is None else (stand_in,))
            if stand_in is not None:
                self.record(BlockAdded(stand_in), at)
        self._depart(left, "eviction", cause)
        self.pace.evicted(len(eviction.blocks))
        self._trend.evicted_blocks += len(eviction.blocks)
        self.accounts.reduced()
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
        """Replace content by less content; an attempt that was rejected or failed changes nothing.

        *window_tokens* is the size of the whole window afterwards, where the agent reported one. The results
        stand where the first block stood, or *in_place*: each where the block stood that it `replaces`.
        """
        event = self.record(compression, at)
        if compression.outcome != "accepted":
            return event
        results = tuple(results)
        if in_place:
            places = {block.replaces: block for block in results}
            left = [
                block
                for gone in compression.removed
                for block in self.window.replace((gone,), (places[gone],) if gone in places else ())
            ]
        else:
            left = self.window.replace(compression.removed, results)
        self._depart(left, "compression", event_id(self.info.stream_id, event.n, event.at))
        for block in results:
            self._tell_of(block, at)
        self._trend.compressions += 1
        self.accounts.reduced()
        if window_tokens is not None or compression.scope == "window" or compression.method == "agent":
            self.accounts.rebase(window_tokens, self.window.tokens)
            self._attribute_next = True
        if self.on_compressed is not None:
            self.on_compressed(event, left)
        return event

    def roll(self, reason: str, at: float | None = None, *, carried: Iterable[Block] = ()) -> list[Block]:
        """Go on in a new window; *reason* is `checkpoint` or `clear`.

        *carried* blocks open it: each under a new id that `replaces` the old one, in its old group and tool
        cycle, and none counts as added. Returns them as they stand in the new window.
        """
        before = self.accounts.used(self.window.tokens)
        self.record(
            WindowRolled(
                "clear" if reason == "clear" else "checkpoint", self.window_id, self.window_id + 1, before
            ),
            at,
        )
        self.window.clear()
        self.window_id += 1
        self.accounts.reset()
        self._unattributed, self._attribute_next = None, True
        self._call_blocks.clear()
        self._reply_group = None
        self._measured = self._replied = False
        self._renew_context()
        opened = [self._carry(block, at) for block in self._renamed(carried)]
        self._call_raw = self.window.tokens
        self._call_components = dict(self.window.tokens_by_component)
        return opened

    def _renamed(self, blocks: Iterable[Block]) -> list[Block]:
        """The blocks under new ids; a group goes on under the new id of its first block."""
        groups: dict[str, str] = {}
        renamed = []
        for block in blocks:
            block_id = self._new_id()
            group = groups.setdefault(block.group, block_id)
            renamed.append(replace(block, id=block_id, group=group, replaces=block.id))
        return renamed

    def _carry(self, block: Block, at: float | None) -> Block:
        self.window.add(block)
        self._tell_of(block, at)
        return block

    def _tell_of(self, block: Block, at: float | None) -> None:
        """A block stands for another; what comes back for a tool call finds it under its new id."""
        self.record(BlockAdded(block), at)
        if block.content_type == "tool_call" and block.tool_call_id is not None:
            self._call_blocks[block.tool_call_id] = block

    def _notice_return(self, block: Block, at: float | None) -> None:
        departure = self._departures.returned(block.digest, self.turn)
        if departure is None:
            return
        self._trend.regrets += 1
        match: Literal["same_call", "same_digest"] = (
            "same_call" if block.content_type == "tool_call" else "same_digest"
        )
        self.record(departure.regretted(match, by=block.id), at)

    def _depart(self, left: Sequence[Block], cause: Cause, cause_event_id: str) -> None:
        for block in left:
            call = self._call_blocks.get(block.tool_call_id) if block.tool_call_id is not None else None
            departure = departure_of(block, call, turn=self.turn, cause=cause, cause_event_id=cause_event_id)
            if block.tokens >= self.settings.regret_minimum_tokens and block.content_type not in DERIVED_TYPES:
                self._departures.remember(departure)
        for block in left:
            if block.content_type == "tool_call" and block.tool_call_id is not None:
                self._call_blocks.pop(block.tool_call_id, None)
