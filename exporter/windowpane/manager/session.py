"""One managed session behind its lock: the engine, the listeners, and the boundary that contains every failure.

No failure of this machinery reaches the agent, except `IrreducibleContextError`: there the next call cannot be
made. Everything else is logged once per hook.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Final, Generic, NamedTuple, TypeVar

from windowpane.core.events import Event, Payload
from windowpane.core.limits import TrackerSettings, WindowLimits
from windowpane.core.tracking import SessionInfo, SessionTracker
from windowpane.effects.background_writer import END_SECONDS, WAIT_SECONDS, BackgroundWriter, writer_named
from windowpane.effects.commands import (
    ArchiveCheckpoint,
    ArchiveOriginals,
    Command,
    CommandResult,
    Compute,
    ConfirmCompaction,
    Effect,
    LoadCheckpoint,
    ProbeEnvironment,
    SaveCheckpoint,
    cancel_when,
)
from windowpane.exceptions import UnfinishedWriteError
from windowpane.fidelity.judge.sampling import JudgedSession
from windowpane.fidelity.rule_survival import RuleFollower
from windowpane.manager import hooks
from windowpane.manager.dependencies import ContainedCounter, Dependencies, Task
from windowpane.manager.engine import Engine
from windowpane.manager.listeners import Listeners
from windowpane.manager.pending_files import BackgroundNotes, PendingOriginals
from windowpane.manager.plans.task_record import TaskRecord
from windowpane.manager.settings import EngineSettings
from windowpane.manager.spans import spanned
from windowpane.manager.state import TaskState
from windowpane.manager.steps.checkpoint import Resumption, discard_checkpoint, resume, save_checkpoint

T = TypeVar("T")

_UNTRACED: Final = nullcontext()

_log = logging.getLogger(__name__)


class EffectProgress(NamedTuple, Generic[T]):
    """The state of a running effect: a command to carry out, or its result."""

    command: Command | None
    result: T | None


class ManagedSession:
    """One managed session: its engine, lock, listeners and dependencies; what both drivers work with."""

    def __init__(
        self,
        info: SessionInfo,
        *,
        dependencies: Dependencies,
        task: Task | None = None,
        limits: WindowLimits | None = None,
        settings: EngineSettings | None = None,
        tracking: TrackerSettings | None = None,
        resume_task: bool = False,
    ) -> None:
        """Start the session.

        With *resume_task* it continues from the task's newest checkpoint, if there is one. A task that has an id
        and is not resumed starts afresh, and its checkpoints are archived.
        """
        task = task or Task()
        self.dependencies = dependencies
        self.lock = threading.RLock()
        """Guards the engine and the listeners; never held while a command is carried out."""
        self.listeners = Listeners()
        self.closed = False
        self.defers_milestones = False
        """True to have the next hook save the checkpoint of a milestone, which it can await."""
        self._logged: set[str] = set()
        self._evaluating_thread: int | None = None
        """The thread on which a compression of this session is being evaluated."""
        tracker = SessionTracker(
            info,
            emit=self._emit,
            digest=dependencies.digest,
            limits=limits,
            settings=tracking,
            clock=dependencies.clock,
            next_limit=dependencies.next_limit,
        )
        self.files = writer_named(task.task_id or info.session_id)
        """Writes the session's files off the agent's thread."""
        self.originals = (
            None
            if dependencies.archive is None
            else PendingOriginals(self.files, dependencies.archive, info.session_id)
        )
        self._probes = BackgroundWriter()
        settings = _available(settings or EngineSettings(), dependencies)
        if settings.limits_of != WindowLimits.of:
            tracker.limits_of = settings.limits_of
        self.engine = Engine(
            tracker,
            ContainedCounter(dependencies.counter),
            dependencies.digest,
            settings,
            TaskState(
                task.goal,
                task.constraints,
                task.task_id,
                TaskRecord(success_criteria=task.success_criteria, paths=list(task.paths)),
            ),
            cost_of=dependencies.cost_of,
            model_cost_of=dependencies.model_cost_of,
            timer=dependencies.timer,
            note_store=None if dependencies.notes is None else BackgroundNotes(dependencies.notes, self.files),
        )
        if dependencies.evaluations is not None:
            self.engine.defer_evaluation = self._defer_evaluation
            self.engine.readings.later = self._read_later
        if settings.evaluate is not None:
            defer = None if dependencies.evaluations is None else self._defer_evaluation
            RuleFollower(tracker, digest=dependencies.digest, defer=defer)
        if dependencies.judge is not None:
            judged = JudgedSession(dependencies.judge, dependencies.digest, self._record_evaluation)
            tracker.compression_listeners.append(
                lambda event, removed: judged.offer(event.event_id, removed, tracker.window)
            )
        tracker.start(task=task.goal or None)
        self.resumed = self._start_task(resume_task=resume_task)

    @property
    def session_id(self) -> str:
        """The session's id."""
        return self.engine.tracker.info.session_id

    @property
    def has_named_task(self) -> bool:
        """True if the task has an id that another session can resume it by."""
        return self.engine.task.id != self.session_id

    # -- running hooks ----------------------------------------------------------------------------------------

    def apply(self, hook: str, action: Callable[[Engine], object]) -> None:
        """Run *action* on the engine; an exception is contained and the time is reported as that of *hook*."""
        started = self.dependencies.timer()
        try:
            with self.lock:
                action(self.engine)
                if self.listeners.has_event_listeners:
                    self.engine.tracker.flush()
        except Exception as error:  # noqa: BLE001 (telemetry never harms the agent)
            self.contain(hook, error)
        self.record_time(hook, started)
        self.notify()

    def run_local(self, hook: str, effect: Effect[T]) -> T | None:
        """Run an effect whose commands only touch files, on this thread; None if it failed."""
        try:
            progress = self.advance(effect, None)
            while progress.command is not None:
                progress = self.advance(effect, self.execute(progress.command))
        except Exception as error:  # noqa: BLE001 (telemetry never harms the agent)
            self.contain(hook, error)
            return None
        self.notify()
        return progress.result

    def advance(self, effect: Effect[T], result: CommandResult | None) -> EffectProgress[T]:
        """Run *effect* up to its next command or its end, with the lock held."""
        with self.lock:
            try:
                command = next(effect) if result is None else effect.send(result)
            except StopIteration as end:
                if self.listeners.has_event_listeners:
                    self.engine.tracker.flush()
                return EffectProgress(None, end.value)
            return EffectProgress(command, None)

    def discard(self, effect: Effect[T]) -> None:
        """Close an effect that was interrupted, as by a cancelled task, so that it blocks nothing."""
        with self.lock:
            effect.close()

    def execute(self, command: Command) -> CommandResult:
        """Carry out a command that needs no model: archive, checkpoints, environment, callbacks, computations."""
        environment = self.dependencies.environment
        try:
            if isinstance(command, ConfirmCompaction):
                return CommandResult(self.listeners.confirm_compaction(command.proposal))
            if isinstance(command, Compute):
                return CommandResult(command.function())
            if isinstance(command, ArchiveOriginals):
                return CommandResult() if self.originals is None else self.originals.put(command.items)
            if isinstance(command, ProbeEnvironment) and environment is not None:
                return self._probes.run(lambda: environment.observe(command.paths))
            return self._execute_on_checkpoints(command)
        except Exception as error:  # noqa: BLE001 (the effect decides what a failed command means)
            return CommandResult(error=error)

    def _execute_on_checkpoints(self, command: Command) -> CommandResult:
        """Carry out a command about checkpoints, within a bounded wait."""
        store = self.dependencies.checkpoints
        if store is None:
            return CommandResult()
        if isinstance(command, LoadCheckpoint):
            return self.files.run(lambda: store.load(command.task_id), wait_seconds=END_SECONDS)
        if isinstance(command, SaveCheckpoint):
            return self.files.run(
                lambda: store.save(command.document, command.markdown),
                characters=len(command.markdown),
                wait_seconds=END_SECONDS if command.is_last else WAIT_SECONDS,
                on_late=lambda result: self._record_late(lambda: command.on_late(result)),
            )
        if isinstance(command, ArchiveCheckpoint):
            wait_seconds = END_SECONDS if command.is_last else WAIT_SECONDS
            return self.files.run(lambda: store.archive(command.task_id), wait_seconds=wait_seconds)
        return CommandResult()

    def work_after_turn(self) -> Effect[None] | None:
        """Return what is due now that the turn has ended, or None; it is cancelled once the session is closed."""
        try:
            with self.lock:
                due = hooks.is_work_after_turn(self.engine)
        except Exception as error:  # noqa: BLE001 (a step may be the user's code)
            self.contain("after_turn", error)
            return None
        return cancel_when(lambda: self.closed, hooks.after_turn(self.engine)) if due else None

    def traced(self) -> AbstractContextManager[None]:
        """Around a hook: its events carry the current span's ids, and the span then describes the window."""
        link = self.dependencies.spans
        return _UNTRACED if link is None else spanned(link, self.engine, self.lock, self.contain)

    def contain(self, hook: str, error: Exception) -> None:
        """Log *error* once per hook; it never reaches the agent."""
        if hook not in self._logged:
            self._logged.add(hook)
            _log.error("%s failed; the agent continues unmanaged this time", hook, exc_info=error)

    def record_time(self, hook: str, started: float) -> None:
        """Report how long *hook* blocked the agent."""
        if self.dependencies.hook_took is not None:
            self.dependencies.hook_took(hook, self.dependencies.timer() - started)

    def notify(self) -> None:
        """Pass new events and preset records to the listeners, without the lock."""
        if not self.listeners.has_pending and not self.engine.journal:
            return
        with self.lock:
            events, records = self.listeners.consume_pending(), self.engine.journal.consume()
        self.listeners.notify(events, records)

    # -- milestones and the end -------------------------------------------------------------------------------

    def save_milestone(self, trigger: str) -> None:
        """Save a checkpoint because of *trigger*, or have the next hook save it."""
        if not self.defers_milestones:
            self.run_local("checkpoint", save_checkpoint(self.engine, trigger))
            return
        with self.lock:
            self.engine.task.milestone = trigger

    def settle_evaluations(self, timeout_seconds: float = END_SECONDS) -> bool:
        """Wait until the compressions so far are evaluated; False on timeout.

        Returns at once when called by the evaluation itself, as from a listener.
        """
        writer = self.dependencies.evaluations
        if writer is None or writer.is_idle or self._evaluating_thread == threading.get_ident():
            return True
        return not writer.run(lambda: None, wait_seconds=timeout_seconds).failed

    def end(self) -> bool:
        """Mark the session as closed; return False if it already was."""
        with self.lock:
            was_closed, self.closed = self.closed, True
        return not was_closed

    def close(self, reason: str) -> None:
        """Save what happened since the last checkpoint of a task that can be resumed, and end the session."""
        if not self.end():
            return
        self.save_last()
        self.finish(reason)

    def save_last(self) -> None:
        """Save the last checkpoint of a task that can be resumed."""
        if self.has_named_task:
            self.run_local("close", save_checkpoint(self.engine, "close"))

    def finish(self, reason: str) -> None:
        """End a session that is marked as closed."""

        def end(engine: Engine) -> None:
            engine.settings = replace(engine.settings, checkpoint=False)
            engine.tracker.end(reason)

        self.apply("close", end)

    # -- private ----------------------------------------------------------------------------------------------

    def _start_task(self, *, resume_task: bool) -> Resumption | None:
        if not self.engine.settings.checkpoint or not self.has_named_task:
            return None
        if resume_task:
            return self.run_local("resume", resume(self.engine))
        self.run_local("resume", discard_checkpoint(self.engine))
        return None

    def _emit(self, batch: list[Event]) -> None:
        """Emit events; called by the tracker with the lock held, which preserves their order."""
        self.listeners.collect(batch)
        self.dependencies.emit(batch)

    def _defer_evaluation(self, measure: Callable[[], Payload], characters: int) -> bool:
        """Queue the evaluation of a compression; called with the lock held."""
        writer = self.dependencies.evaluations
        assert writer is not None, "deferred only to a writer"
        result = writer.run(lambda: self._evaluate(measure), characters=characters, wait_seconds=0.0)
        return result.error is None or isinstance(result.error, UnfinishedWriteError)

    def _read_later(self, read: Callable[[], None], characters: int) -> None:
        """Queue the reading of texts; what is not read in time is read where it is needed."""
        writer = self.dependencies.evaluations
        assert writer is not None, "deferred only to a writer"
        writer.run(read, characters=characters, wait_seconds=0.0)

    def _evaluate(self, measure: Callable[[], Payload]) -> None:
        """Measure a compression on the evaluations' thread, and record its fidelity."""
        self._evaluating_thread = threading.get_ident()
        try:
            self._record_evaluation(measure())
        except Exception as error:  # noqa: BLE001 (the evaluator may be the user's code)
            self.contain("fidelity", error)
        finally:
            self._evaluating_thread = None

    def _record_evaluation(self, evaluated: Payload) -> None:
        """Record what a probe or judge measured on its thread; that of a session that has ended is discarded."""
        with self.lock:
            if self.closed:
                return
            self.engine.tracker.record(evaluated)
            self.engine.tracker.flush()
        self.notify()

    def _record_late(self, record: Callable[[], object]) -> None:
        """Record the outcome of a write that took long, on the writer's thread, unless the session has ended."""
        with self.lock:
            if self.engine.settings.checkpoint:
                record()
        self.notify()


def _available(settings: EngineSettings, dependencies: Dependencies) -> EngineSettings:
    """Return the settings without features whose dependency is missing."""
    model = settings.model or getattr(dependencies.model, "name", "") or type(dependencies.model).__name__
    return replace(
        settings,
        archive=settings.archive and dependencies.archive is not None,
        checkpoint=settings.checkpoint and dependencies.checkpoints is not None,
        environment=settings.environment and dependencies.environment is not None,
        subagent=settings.subagent and dependencies.subagent is not None,
        model=str(model) if dependencies.model is not None else "",
    )
