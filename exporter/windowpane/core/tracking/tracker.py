"""The session tracker: turns what happens to one session's window into facts, and has their conclusions drawn.

The manager, the observer and every importer call it. What a text shows is measured here, once, and is part of the
facts. Metrics, alerts, timeline, audit and replay read only the events that `Conclusions` emits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Literal, TypeVar

from windowpane.core.agents import AgentProgram
from windowpane.core.events import (
    BlocksEvicted,
    ContentCompressed,
    Event,
    Payload,
    PressureMeasured,
    TrendReport,
    Usage,
    UsageRejected,
)
from windowpane.core.limits import TrackerSettings, WindowLimits
from windowpane.core.protocols import Clock, Digester
from windowpane.core.redaction import stored_id, stored_name
from windowpane.core.tracking.conclusions import Conclusions
from windowpane.core.tracking.emitter import SessionInfo
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
from windowpane.core.tracking.marks import MARKED_TYPES, NO_MARKS, marks_of
from windowpane.core.tracking.targets import SKILL_TOOL, call_target, memory_file_of, memory_path, skill_of
from windowpane.core.vocabulary import REPLY_TYPES, CacheBreakCause, ContentType, CountSource, LimitSource
from windowpane.core.window.blocks import Block, renamed, replacement, shortened

MAXIMUM_ID_CHARACTERS: Final = 200

_Fact = TypeVar("_Fact", bound=SessionFact)


class SessionTracker:
    """Records the facts of one session.

    Not thread-safe; its owner serializes calls. Every method takes an optional `at` (seconds since the epoch,
    UTC); without one the clock is read, and without a clock the fact has no time.
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
        on_fact: Callable[[SessionFact], object] | None = None,
    ) -> None:
        """*next_limit* and *smaller_limit* return the other window sizes of the model, as in `ModelCatalog`.

        *program* is what is known of the agent's program; by default it is known by the agent's name. *on_fact*
        is called with each fact before it is concluded from.
        """
        self.conclusions = conclusions = Conclusions(
            info,
            emit=emit,
            limits=limits,
            settings=settings,
            next_limit=next_limit,
            smaller_limit=smaller_limit,
            program=program,
        )
        self.window, self.gauge = conclusions.window, conclusions.gauge
        self.settings, self.flush = conclusions.settings, conclusions.flush
        self.clock = clock
        self.exchange = 0
        self.on_call: Callable[[float | None], object] | None = None
        """Called before the next call is measured, with its time: the window is what the call sends."""
        self.compression_listeners: list[Callable[[Event, Sequence[Block]], object]] = []
        """Called after each accepted compression with its event and the removed blocks."""
        self._digest = digest
        self._on_fact = on_fact
        self._blocks = 0
        """Number of blocks made so far, and the number of the next one."""
        self._reply_group: str | None = None
        self._last_type: ContentType | None = None

    # -- state ------------------------------------------------------------------------------------------------

    @property
    def info(self) -> SessionInfo:
        """Identity of the session."""
        return self.conclusions.emitter.info

    @property
    def limits(self) -> WindowLimits | None:
        """Limits of the window; None while its size is unknown."""
        return self.conclusions.limits

    @property
    def limits_of(self) -> Callable[[int, LimitSource], WindowLimits] | None:
        """Makes the limits of a size that is learnt later; None for the default reserve and margin."""
        return self.conclusions.limits_of

    @limits_of.setter
    def limits_of(self, limits_of: Callable[[int, LimitSource], WindowLimits]) -> None:
        self.conclusions.limits_of = limits_of

    @property
    def program(self) -> AgentProgram:
        """The agent's program, as far as it is known."""
        return self.conclusions.compactions.program

    @property
    def turn(self) -> int:
        """Turn of the session, from 1; 0 before the first."""
        return self.conclusions.turn

    @property
    def window_id(self) -> int:
        """Context window of the session, from 1."""
        return self.conclusions.window_id

    @property
    def in_turn(self) -> bool:
        """True while a turn is open: a block was added since the last one ended."""
        return self.conclusions.in_turn

    @property
    def rejected(self) -> UsageRejected | None:
        """The report that was rejected in the last turn that ended."""
        return self.conclusions.rejected

    def now(self) -> float | None:
        """Return seconds since the epoch, UTC, or None without a clock."""
        return None if self.clock is None else self.clock()

    # -- session ----------------------------------------------------------------------------------------------

    def start(self, at: float | None = None, *, task: str | None = None, derived_by: str | None = None) -> None:
        """Start the session with the window that it has."""
        fact = SessionOpening(self._time(at), self._digest(task) if task else None, derived_by)
        self.conclusions.open_session(self._reported(fact))

    def end(self, reason: str, at: float | None = None) -> TrendReport:
        """End the session, and flush all events."""
        return self.conclusions.end_session(self._reported(SessionEnding(self._time(at), reason)))

    def record(self, payload: Payload, at: float | None = None) -> Event:
        """Record anything that changes no window; the returned event may hold secrets, `flush` removes them."""
        return self.conclusions.record_statement(self._reported(Statement(self._time(at), payload)))

    def set_model(self, model: str, limits: WindowLimits | None, at: float | None = None) -> None:
        """Set the model of the following calls, and the limits of its window."""
        self.conclusions.choose_model(self._reported(ModelChoice(self._time(at), model, limits)))

    def set_limits(self, limits: WindowLimits | None, at: float | None = None) -> None:
        """Set the limits of the window."""
        self.conclusions.set_limits(self._reported(LimitSetting(self._time(at), limits)))

    def set_version(self, version: str) -> None:
        """Set the release of the agent's program."""
        self.conclusions.set_version(self._reported(ProgramVersion(version)))

    def set_span(self, trace_id: str | None, span_id: str | None) -> None:
        """Set the OpenTelemetry span of the following events."""
        self.conclusions.choose_span(self._reported(SpanChoice(trace_id, span_id)))

    # -- turns ------------------------------------------------------------------------------------------------

    def start_call(self, at: float | None = None) -> None:
        """Start a call: it sends everything added from here to `measure`, earlier replies included."""
        self._open_turn(at)
        self.conclusions.open_call(self._reported(CallOpening()))

    def measure(self, phase: Literal["before", "after"], at: float | None = None) -> PressureMeasured:
        """Measure the window; opens a turn if none is open."""
        self._open_turn(at)
        if self.on_call is not None:
            self.on_call(at)
        return self.conclusions.read_window(self._reported(WindowReading(self._time(at), phase)))

    def end_turn(
        self,
        usage: Usage | None = None,
        *,
        output_tokens: int | None = None,
        window_tokens: int | None = None,
        reported_tokens: int | None = None,
        cost_dollars: float | None = None,
        list_cost_dollars: float | None = None,
        cost_of: Callable[[Usage], float | None] | None = None,
        latency_seconds: float | None = None,
        stop_reason: str | None = None,
        response_id: str | None = None,
        at: float | None = None,
    ) -> PressureMeasured:
        """Close the turn after its model call; the provider's count replaces the estimate.

        Returns the window as the next call would send it, the reply included. *output_tokens* is an estimate of
        the output where *usage* states only its start; *cost_dollars* includes it. *window_tokens* is the size of
        the window where the input of *usage* is another, 0 where it is unknown. *reported_tokens* is the size of
        the call as the model itself reported it; it is used without *usage* and near the estimate. *cost_of*
        returns the price of any usage of the call's model.
        """
        if not self.conclusions.replied or not self.in_turn:
            self._send_call(at)
        self._reply_group = None
        fact = CallEnding(
            self._time(at),
            usage,
            output_tokens,
            window_tokens,
            reported_tokens,
            cost_dollars,
            list_cost_dollars,
            latency_seconds,
            stop_reason,
            None if response_id is None else response_id[:MAXIMUM_ID_CHARACTERS],
        )
        return self.conclusions.end_call(self._reported(fact), cost_of)

    # -- content ----------------------------------------------------------------------------------------------

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
        memory_file: str | None = None,
        at: float | None = None,
    ) -> Block:
        """Add a block; opens a turn if none is open, and sends the call at the first block of its reply.

        *memory_file* is the path of the file that injected content is from, unless the text starts with it.
        """
        conclusions = self.conclusions
        if not conclusions.in_turn:
            self._open_turn(at)
        if tool_call_id:
            tool_call_id = stored_id(tool_call_id)
        if handle:
            handle = stored_id(handle)
        if tool_name:
            tool_name = stored_name(tool_name)
        calls = conclusions.calls
        block_id = group = f"b{self._blocks}"
        if content_type in REPLY_TYPES:
            if not conclusions.replied:
                self._send_call(at)
            group = self._reply_group = self._reply_group or block_id
        else:
            self._reply_group = None
            if content_type == "user_message" and self._last_type != "user_message":
                self.exchange += 1
            elif tool_call_id is not None and tool_call_id in calls:
                group = calls[tool_call_id].group
        self._last_type = content_type
        target = call = None
        if tool_call_id is not None:
            if content_type == "tool_call":
                target = call_target(text) if text else None
            elif (call := calls.get(tool_call_id)) is not None:
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
            block_id, content_type, tokens, conclusions.turn, group, self.exchange, digest, len(text or ""),
            count_source, text, tool_call_id, tool_name, pinned, None, handle, target, marks,
        )  # fmt: skip
        self._blocks += 1
        if at is None and self.clock is not None:
            at = self.clock()
        fact = Addition(at, block)
        if self._on_fact is not None:
            self._on_fact(fact)
        conclusions.add(fact)
        return block

    def discard_text(self, block_id: str) -> None:
        """Discard the text of a block in the window, whose digest and size remain."""
        block, calls = self.window.discard_text(block_id), self.conclusions.calls
        if block.content_type == "tool_call" and block.tool_call_id in calls:
            calls[block.tool_call_id] = block

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
        if block_ids:
            self.conclusions.reference(self._reported(Reference(self._time(at), tuple(block_ids), by)))

    def revise(self, block: Block, at: float | None = None) -> None:
        """Replace static content, or that of a reply, by *block*, as the agent sends it; only growth is added."""
        self.conclusions.revise(self._reported(Revision(self._time(at), block)))

    def discard_reply(self, block_ids: Sequence[str], at: float | None = None) -> None:
        """Remove content of a reply that the agent did not send back."""
        self.conclusions.discard(self._reported(Discard(self._time(at), "reply", tuple(block_ids))))

    def remove_static(self, block_ids: Sequence[str], at: float | None = None) -> None:
        """Remove a system prompt or tool definitions that the agent no longer sends."""
        self.conclusions.discard(self._reported(Discard(self._time(at), "static", tuple(block_ids))))

    def evict(
        self,
        eviction: BlocksEvicted,
        placeholders: Iterable[Block] = (),
        at: float | None = None,
        *,
        window_tokens: int | None = None,
    ) -> Event:
        """Remove blocks, or replace them by *placeholders*; ids that the window never held are skipped.

        *window_tokens* is the size of the whole window afterwards, if the agent reported one.
        """
        fact = BlockEviction(self._time(at), eviction, tuple(placeholders), window_tokens)
        return self.conclusions.evict(self._reported(fact))

    def rewind(
        self,
        abandoned: Sequence[str],
        *,
        last_kept: str | None,
        restored: Iterable[Block] = (),
        at: float | None = None,
    ) -> tuple[Block, ...]:
        """Continue after the block *last_kept*: the blocks *abandoned* leave, and those of *restored* return.

        The user left a branch, and no policy removed content, so nothing is watched for regret. Returns the
        restored blocks, each under a new id that `replaces` the old one.
        """
        returned = tuple(renamed(restored, self._new_id))
        self.conclusions.rewind(self._reported(Rewind(self._time(at), tuple(abandoned), last_kept, returned)))
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
        removed = [self.window.slot(name).block for name in compression.removed if name in self.window]
        fact = Reduction(
            self._time(at), compression, tuple(results), window_tokens, window_tokens_before, in_place
        )
        event = self.conclusions.compress(self._reported(fact))
        if compression.outcome == "accepted":
            for listener in self.compression_listeners:
                listener(event, removed)
        return event

    def roll(
        self, reason: Literal["checkpoint", "clear"], at: float | None = None, *, carried: Iterable[Block] = ()
    ) -> tuple[Block, ...]:
        """Continue in a new window.

        *carried* blocks open it: each under a new id that `replaces` the old one, in its old group and tool
        cycle, and not counted as added. Returns them as they are in the new window.
        """
        opened = tuple(renamed(carried, self._new_id))
        self.conclusions.roll(self._reported(Rollover(self._time(at), reason, opened)))
        self._reply_group = None
        return opened

    def record_change(self, cause: CacheBreakCause, block_ids: Iterable[str], changed: str | None = None) -> None:
        """Record that sent blocks changed, or that *changed* was put in front of them."""
        self.conclusions.record_change(self._reported(SentChange(cause, tuple(block_ids), changed)))

    # -- inside -----------------------------------------------------------------------------------------------

    def _reported(self, fact: _Fact) -> _Fact:
        """Return *fact*, after `on_fact` was called with it."""
        if self._on_fact is not None:
            self._on_fact(fact)
        return fact

    def _time(self, at: float | None) -> float | None:
        return self.clock() if at is None and self.clock is not None else at

    def _open_turn(self, at: float | None) -> None:
        if not self.in_turn:
            self.conclusions.open_turn(self._reported(TurnOpening(self._time(at))))

    def _send_call(self, at: float | None) -> None:
        """Record that the model is called now, with the window as it is."""
        self._open_turn(at)
        if self.on_call is not None:
            self.on_call(at)
        self.conclusions.send_call(self._reported(CallSending(self._time(at))))

    def _new_id(self) -> str:
        block_id = f"b{self._blocks}"
        self._blocks += 1
        return block_id
