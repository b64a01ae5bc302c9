"""What both managers share: the core and its lock, content that comes in, messages that go out, listeners.

No failure of this machinery reaches the agent, except `IrreducibleContextError`: there the next call cannot be
made. Everything else is contained at one boundary, logged once a hook, and counted.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, Final, Generic, Literal, NamedTuple, TypeVar, overload

from windowpane.core.events import PAYLOADS, Event, FidelityEvaluated
from windowpane.core.limits import TrackerSettings, WindowLimits
from windowpane.core.tracking import SessionInfo, SessionTracker
from windowpane.core.window.blocks import Block
from windowpane.effects.commands import (
    ArchiveCheckpoint,
    ArchiveOriginals,
    Command,
    CommandResult,
    CompactionProposal,
    ConfirmCompaction,
    Effect,
    LoadCheckpoint,
    ProbeEnvironment,
    SaveCheckpoint,
)
from windowpane.exceptions import ConfigurationError
from windowpane.fidelity.judge.sampling import JudgedSession
from windowpane.manager.auditing import AUDITED, AUDITED_EVENTS
from windowpane.manager.dependencies import CheckpointStore, Dependencies, Task
from windowpane.manager.engine import Engine
from windowpane.manager.history import take_user
from windowpane.manager.messages import AnthropicMessages, Message, anthropic_messages, openai_messages
from windowpane.manager.plans.checkpoint import Found
from windowpane.manager.plans.task_record import TaskRecord
from windowpane.manager.preset_log import SourceRecord
from windowpane.manager.safe_counter import ContainedCounter
from windowpane.manager.settings import EngineSettings
from windowpane.manager.spans import spanned
from windowpane.manager.status import Decision
from windowpane.manager.steps.new_window import clear, save_checkpoint
from windowpane.models.replies import read_reply

__all__ = ["CheckpointStore", "Dependencies", "ManagedSession", "Task"]

T = TypeVar("T")
Listener = Callable[[Event], object]
Adviser = Callable[[CompactionProposal], object]
"""Told of a compaction before it is made; False stops it."""
RecordListener = Callable[[SourceRecord], object]

_UNTRACED: Final = nullcontext()

_log = logging.getLogger(__name__)


class Step(NamedTuple, Generic[T]):
    """Where a program has got to: a request to carry out, or its result."""

    request: Command | None
    result: T | None


class ManagedSession:
    """What both drivers share: the core, its lock, the listeners, and all that needs no request."""

    def __init__(
        self,
        info: SessionInfo,
        *,
        dependencies: Dependencies,
        task: Task | None = None,
        limits: WindowLimits | None = None,
        settings: EngineSettings | None = None,
        tracking: TrackerSettings | None = None,
    ) -> None:
        task = task or Task()
        self._dependencies = dependencies
        self._lock = threading.RLock()
        """Guards the core and everything below; never held while a request is carried out."""
        self._listeners: dict[str, list[Listener]] = {}
        self._advisers: list[Adviser] = []
        self._record_listeners: list[RecordListener] = []
        self._heard: list[Event] = []
        self._logged: set[str] = set()
        self._closed = False
        self._audit: deque[Event] = deque(maxlen=AUDITED_EVENTS)
        tracker = SessionTracker(
            info,
            emit=self._emit,
            digest=dependencies.digest,
            limits=limits,
            settings=tracking,
            clock=dependencies.clock,
            next_limit=dependencies.next_limit,
        )
        settings = _fitting(settings or EngineSettings(), dependencies)
        if settings.limits_of != WindowLimits.of:
            tracker.limits_of = settings.limits_of
        self._engine = Engine(
            tracker,
            ContainedCounter(dependencies.counter),
            dependencies.digest,
            settings,
            goal=task.goal,
            constraints=task.constraints,
            cost_of=dependencies.cost_of,
            timer=dependencies.timer,
            note_store=dependencies.notes,
            task_id=task.task_id,
            task=TaskRecord(success_criteria=task.success_criteria, paths=list(task.paths)),
        )
        if dependencies.judge is not None:
            judged = JudgedSession(dependencies.judge, dependencies.digest, self._judged)
            tracker.on_compressed = lambda event, removed: judged.offer(event.event_id, removed, tracker.window)
        tracker.start(task=task.goal or None)

    # -- content ----------------------------------------------------------------------------------------------

    def add_system(self, text: str) -> None:
        """The system prompt; never removed."""
        self._quick("add_system", lambda engine: engine.add("system_prompt", text))

    def add_tool_definitions(self, tools: str | Iterable[Mapping[str, Any]]) -> None:
        """The tools as they are sent with each call, each an object; counted, but never part of `messages()`."""
        self._quick("add_tool_definitions", lambda engine: engine.add_tools(tools))

    def add_user(self, content: str | Sequence[Mapping[str, Any]], *, pinned: bool = False) -> None:
        """A user message: text, or content parts with images; `tool_result` parts answer their calls."""
        self._here("add_user", take_user(self._engine, content, pinned=pinned))

    def add_memory(self, text: str, *, pinned: bool = False) -> None:
        """Content retrieved from a memory."""
        self._quick("add_memory", lambda engine: engine.add("memory_injection", text, pinned=pinned))

    def add_assistant(self, text: str | None, *, tool_calls: Iterable[object] | None = ()) -> None:
        """A reply where there is no reply object: its text and OpenAI-style tool calls. Ends no turn."""
        message = {"role": "assistant", "content": text, "tool_calls": tool_calls}
        self._quick("add_assistant", lambda engine: engine.add_reply(read_reply(message).parts))

    def clear(self) -> None:
        """Go on in a new window that holds nothing but system prompt, tools and what is pinned."""
        self._quick("clear", clear)

    # -- reading ----------------------------------------------------------------------------------------------

    @overload
    def messages(self) -> list[Message]: ...
    @overload
    def messages(self, shape: Literal["openai"]) -> list[Message]: ...
    @overload
    def messages(self, shape: Literal["anthropic"]) -> AnthropicMessages: ...
    def messages(self, shape: Literal["openai", "anthropic"] = "openai") -> list[Message] | AnthropicMessages:
        """What to send: always valid, whatever has left the window or was never answered."""
        if shape not in ("openai", "anthropic"):
            raise ConfigurationError("shape", f"{shape!r}", expected="openai or anthropic")
        with self._lock:
            engine = self._engine
            blocks = list(engine.tracker.window)
            if shape == "anthropic":
                return anthropic_messages(blocks, engine.payloads)
            return openai_messages(blocks, engine.payloads)

    def blocks(self) -> tuple[Block, ...]:
        """The window's blocks in the order the model sees them."""
        with self._lock:
            return tuple(self._engine.tracker.window)

    @property
    def session_id(self) -> str:
        """The session's id."""
        return self._engine.tracker.info.session_id

    def retrieve(self, handle: str) -> str | None:
        """The original behind a placeholder's handle; None when it is not kept (any more)."""
        archive = self._dependencies.archive
        if archive is None:
            return None
        try:
            return archive.get(self.session_id, handle)
        except Exception as error:  # noqa: BLE001 (an archive may be the user's, and away)
            self._contain("retrieve", error)
            return None

    def on(self, event_name: str, listener: Listener) -> None:
        """Call *listener* with every event of that name, such as `zone.changed`; `*` means all of them.

        It is called on the agent's thread, after the hook that caused it, without the lock; what it raises
        is logged. Raises `ConfigurationError` for a name that no event has, and for what cannot be called.
        """
        _check_callable("on", listener)
        if event_name != "*" and event_name not in PAYLOADS:
            near = ", ".join(get_close_matches(event_name, PAYLOADS)) or "an event's name, or *"
            raise ConfigurationError("on", f"there is no event {event_name!r}", expected=near)
        with self._lock:
            self._listeners.setdefault(event_name, []).append(listener)

    def before_compaction(self, adviser: Adviser) -> None:
        """Ask *adviser* before every compaction, without the lock; where it returns False there is none now.

        What has to leave for the call to fit still leaves. What it raises is logged and stops nothing. Raises
        `ConfigurationError` for what cannot be called.
        """
        _check_callable("before_compaction", adviser)
        with self._lock:
            self._advisers.append(adviser)
            self._engine.consulted = True

    def on_record(self, listener: RecordListener) -> None:
        """Call *listener* with what the session's preset tells in its source's own names; as `on` does."""
        with self._lock:
            self._record_listeners.append(listener)

    # -- ending -----------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Hand over the events that are still held back."""
        self._quick("flush", lambda engine: engine.tracker.flush())

    def close(self, reason: str = "completed") -> None:
        """End the session: `session.ended` with the trend report. Closing twice changes nothing.

        A task that is not complete can be resumed: what happened since its last checkpoint is saved.
        """
        if not self._begin_end():
            return
        if self._engine.task_id != self.session_id:
            self._here("close", save_checkpoint(self._engine, "close"))
        self._quick("close", lambda engine: engine.tracker.end(reason))

    def _begin_end(self) -> bool:
        """Whether the session had not ended before."""
        with self._lock:
            was_closed, self._closed = self._closed, True
        return not was_closed

    # -- inside -----------------------------------------------------------------------------------------------

    def _judged(self, evaluated: FidelityEvaluated) -> None:
        """A judgement came back, on the judge's thread; one of a session that has ended is let go."""
        with self._lock:
            if self._closed:
                return
            self._engine.tracker.record(evaluated)
            self._engine.tracker.flush()
        self._tell()

    def _emit(self, batch: list[Event]) -> None:
        """Events leave the tracker; called with the lock held, so their order is kept."""
        self._audit.extend(event for event in batch if event.type in AUDITED)
        if self._listeners:
            self._heard.extend(event for event in batch if self._is_heard(event))
        self._dependencies.emit(batch)

    def _is_heard(self, event: Event) -> bool:
        return event.type in self._listeners or "*" in self._listeners

    def _tell(self) -> None:
        """Call the listeners, without the lock."""
        if not self._heard and not self._engine.journal:
            return
        with self._lock:
            heard, self._heard = self._heard, []
            records = self._engine.journal.take()
        for event in heard:
            for listener in (*self._listeners.get(event.type, ()), *self._listeners.get("*", ())):
                self._call(listener, event, event.type)
        for record in records:
            _log.info("%s", record.text)
            for record_listener in self._record_listeners:
                self._call(record_listener, record, record.name)

    def _approves(self, adviser: Adviser, proposal: CompactionProposal) -> bool:
        try:
            return adviser(proposal) is not False
        except Exception:  # noqa: BLE001 (an adviser is the user's code)
            _log.exception("an adviser on compactions failed; it is taken to agree")
            return True

    def _call(self, listener: Callable[[T], object], what: T, name: str) -> None:
        try:
            listener(what)
        except Exception:  # noqa: BLE001 (a listener is the user's code)
            _log.exception("a listener of %s failed", name)

    def _quick(self, hook: str, action: Callable[[Engine], object]) -> None:
        """A hook without requests, contained."""
        started = self._dependencies.timer()
        try:
            with self._lock:
                action(self._engine)
                if self._listeners:
                    self._engine.tracker.flush()
        except Exception as error:  # noqa: BLE001 (telemetry never harms the agent)
            self._contain(hook, error)
        self._timed(hook, started)
        self._tell()

    def _advance(self, program: Effect[T], answer: CommandResult | None) -> Step[T]:
        """One step of a program, with the lock held."""
        with self._lock:
            try:
                request = next(program) if answer is None else program.send(answer)
            except StopIteration as end:
                if self._listeners:
                    self._engine.tracker.flush()
                return Step(None, end.value)
            return Step(request, None)

    def _here(self, hook: str, program: Effect[T]) -> T | None:
        """Run a program that asks for nothing but files, on this thread; contained, None when it failed."""
        try:
            step = self._advance(program, None)
            while step.request is not None:
                step = self._advance(program, self._local(step.request))
        except Exception as error:  # noqa: BLE001 (telemetry never harms the agent)
            self._contain(hook, error)
            return None
        self._tell()
        return step.result

    def _spanned(self) -> AbstractContextManager[None]:
        """Around a hook: its events carry the current span's ids, and the span is told about the window."""
        link = self._dependencies.spans
        return _UNTRACED if link is None else spanned(link, self._engine, self._lock, self._contain)

    def _contain(self, hook: str, error: Exception) -> None:
        """The one boundary: what fails in here is logged once a hook and never reaches the agent."""
        if hook not in self._logged:
            self._logged.add(hook)
            _log.error("%s failed; the agent goes on unmanaged this time", hook, exc_info=error)

    def _timed(self, hook: str, started: float) -> None:
        if self._dependencies.hook_took is not None:
            self._dependencies.hook_took(hook, self._dependencies.timer() - started)

    def _unmanaged(self) -> Decision:
        with self._lock:
            status = self._engine.status()
        return Decision("none", status, reason="the hook failed; see the log")

    def _subagent(self, _system: str, assignment: str) -> Any:
        """The sub-agent as a model is called."""
        assert self._dependencies.subagent is not None, "a sub-agent is asked only where there is one"
        return self._dependencies.subagent(assignment)

    def _local(self, request: Command) -> CommandResult:
        """Carry out a request on files; a failure is the answer."""
        try:
            if isinstance(request, ArchiveOriginals) and self._dependencies.archive is not None:
                for handle, text in request.items:
                    self._dependencies.archive.put(self.session_id, handle, text)
            elif isinstance(request, ConfirmCompaction):
                return CommandResult(all(self._approves(adviser, request.proposal) for adviser in self._advisers))
            elif isinstance(request, ProbeEnvironment) and self._dependencies.environment is not None:
                return CommandResult(self._dependencies.environment.observe(request.paths))
            elif self._dependencies.checkpoints is not None:
                return CommandResult(_ask_store(self._dependencies.checkpoints, request))
            return CommandResult()
        except Exception as error:  # noqa: BLE001 (the program decides what a failed request means)
            return CommandResult(error=error)


def _ask_store(store: CheckpointStore, request: Command) -> Found | None:
    if isinstance(request, SaveCheckpoint):
        store.save(request.document, request.markdown)
    elif isinstance(request, ArchiveCheckpoint):
        store.archive(request.task_id)
    elif isinstance(request, LoadCheckpoint):
        return store.load(request.task_id)
    return None


def _fitting(settings: EngineSettings, dependencies: Dependencies) -> EngineSettings:
    """The settings without what no dependency can do."""
    model = settings.model or getattr(dependencies.model, "name", "") or type(dependencies.model).__name__
    return replace(
        settings,
        archive=settings.archive and dependencies.archive is not None,
        checkpoint=settings.checkpoint and dependencies.checkpoints is not None,
        environment=settings.environment and dependencies.environment is not None,
        subagent=settings.subagent and dependencies.subagent is not None,
        model=str(model) if dependencies.model is not None else "",
    )


def _check_callable(what: str, given: object) -> None:
    if not callable(given):
        raise ConfigurationError(what, f"{given!r} cannot be called", expected="a function")
