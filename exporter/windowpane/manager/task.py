"""The task of a managed window: its plan, decisions, issues and notes, kept across windows and sessions.

What changes the course of the task saves a checkpoint, so that nothing is lost with the window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from windowpane.exceptions import ConfigurationError
from windowpane.manager.engine import Engine
from windowpane.manager.plans.notes import IMPORTANCES, Importance
from windowpane.manager.plans.task_record import Choice, SubtaskStatus
from windowpane.manager.session import ManagedSession
from windowpane.manager.steps.checkpoint import Resumption


class WindowTask:
    """The task of a managed window, as `window.task`."""

    def __init__(self, session: ManagedSession) -> None:
        self._session = session

    @property
    def id(self) -> str:
        """The id that the task's checkpoints are saved under; the session's id for a task without one."""
        return self._session.engine.task.id

    @property
    def goal(self) -> str:
        """The goal as given, as resumed, or the first user message."""
        return self._session.engine.task.goal

    @property
    def resumed(self) -> Resumption | None:
        """The checkpoint that the session continues from; None on a cold start."""
        return self._session.resumed

    @property
    def subtasks(self) -> dict[str, SubtaskStatus]:
        """The status of each subtask, in the order they were planned."""
        with self._session.lock:
            return dict(self._session.engine.task.record.subtasks)

    @property
    def notes(self) -> str:
        """All notes as a model sees them; empty without notes."""
        with self._session.lock:
            return self._session.engine.notes.text()

    def plan(self, *subtasks: str) -> None:
        """Add subtasks to the plan."""
        self._record("plan", lambda engine: engine.task.record.plan(_each(subtasks)))

    def start(self, subtask: str) -> None:
        """Mark a subtask as in progress.

        A completed one stays completed, so that a program may start its steps again after it resumed; `subtasks`
        shows which ones to skip, and `reopen` takes one back.
        """
        self._record("begin", lambda engine: engine.task.record.start(subtask))

    def complete(self, subtask: str) -> None:
        """Mark a subtask as done and save a checkpoint."""
        self._record("done", lambda engine: engine.task.record.done(subtask), milestone=True)

    def reopen(self, subtask: str) -> None:
        """Mark a completed subtask as in progress again and save a checkpoint."""
        self._record("reopen", lambda engine: engine.task.record.reopen(subtask), milestone=True)

    def decide(self, what: str, *, why: str = "", instead_of: Sequence[str] = ()) -> None:
        """Record a decision with its reason and the rejected alternatives, and save a checkpoint."""
        choice = Choice(what, why, _each([instead_of]))
        self._record("decision", lambda engine: engine.task.record.choose(choice), milestone=True)

    def add_issue(self, text: str) -> None:
        """Record an open issue and save a checkpoint."""
        self._record("issue", lambda engine: engine.task.record.issue(text), milestone=True)

    def resolve_issue(self, text: str) -> None:
        """Remove an issue from the open ones."""
        self._record("resolve", lambda engine: engine.task.record.resolve(text))

    def add_learning(self, text: str) -> None:
        """Record something worth knowing later."""
        self._record("learn", lambda engine: engine.task.record.learn(text))

    def add_note(self, text: str, *, category: str = "misc", importance: Importance = "normal") -> None:
        """Write a note for later windows; `critical` notes are never removed to make room for others.

        Raises `ConfigurationError` for an unknown importance.
        """
        if importance not in IMPORTANCES:
            raise ConfigurationError("importance", f"{importance!r}", expected=", ".join(IMPORTANCES))
        self._record(
            "note",
            lambda engine: engine.notes.write(category, text, importance=importance, turn=engine.tracker.turn),
        )

    def watch(self, *paths: str) -> None:
        """Add files the task depends on; those that changed are reported to the model when it is resumed."""
        self._record("watch", lambda engine: engine.task.record.watch(_each(paths)))

    def _record(self, what: str, change: Callable[[Engine], object], *, milestone: bool = False) -> None:
        self._session.apply(what, change)
        if milestone:
            self._session.save_milestone(what)


def _each(given: Iterable[object]) -> tuple[str, ...]:
    """Return the texts one by one, also those of a list that was passed as one argument."""
    lists = ([one] if isinstance(one, str) or not isinstance(one, Iterable) else one for one in given)
    return tuple(str(text) for texts in lists for text in texts)
