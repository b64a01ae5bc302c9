"""What an agent tells the manager of its task: what is planned, begun and done, decided, in the way, learnt.

Each of these that changes the course of the task saves a checkpoint, so that nothing is lost with the window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from windowpane.exceptions import ConfigurationError
from windowpane.manager.engine import Engine
from windowpane.manager.inspection import AdvisingSession
from windowpane.manager.pending_calls import hold, release
from windowpane.manager.plans.notes import IMPORTANCES, Importance
from windowpane.manager.plans.task_record import Choice, SubtaskStatus
from windowpane.manager.steps.new_window import save_checkpoint
from windowpane.manager.steps.resume import Resumption, resume, start_anew


class TaskSession(AdvisingSession):
    """A managed session with the record of its task."""

    def __init__(self, *args: Any, resume_task: bool = False, **options: Any) -> None:
        """As `ManagedSession`; *resume_task* takes up the task's newest checkpoint, where there is one.

        A task with an id of its own that is not resumed begins anew, and its checkpoints are put aside.
        """
        super().__init__(*args, **options)
        self.resumed: Resumption | None = None
        """What the session resumed from; None on a cold start."""
        engine = self._engine
        if engine.settings.checkpoint and engine.task_id != self.session_id:
            if resume_task:
                self.resumed = self._here("resume", resume(engine))
            else:
                self._here("resume", start_anew(engine))

    @property
    def task_id(self) -> str:
        """What the task's checkpoints are kept under."""
        return self._engine.task_id

    @property
    def goal(self) -> str:
        """What the session is for: as given, as resumed, or the first user message."""
        return self._engine.goal

    @property
    def subtasks(self) -> dict[str, SubtaskStatus]:
        """The subtasks in the order they were planned; a plan is not done until `done()` says so."""
        with self._lock:
            return dict(self._engine.task.subtasks)

    def plan(self, *subtasks: str) -> None:
        """Subtasks that are intended."""
        self._note("plan", lambda engine: engine.task.plan(_each(subtasks)))

    def begin(self, subtask: str) -> None:
        """A subtask is being worked on.

        One that is done stays done, so that a program may begin its steps again after it resumed; `subtasks` says
        which to pass over, and `reopen` takes one back.
        """
        self._note("begin", lambda engine: engine.task.begin(subtask))

    def reopen(self, subtask: str) -> None:
        """A subtask that was done has to be worked on again; saves a checkpoint."""
        self._note("reopen", lambda engine: engine.task.reopen(subtask), milestone=True)

    def done(self, subtask: str) -> None:
        """A subtask is finished; saves a checkpoint."""
        self._note("done", lambda engine: engine.task.done(subtask), milestone=True)

    def decision(self, what: str, *, why: str = "", instead_of: Sequence[str] = ()) -> None:
        """A choice with its reason and what was not chosen; saves a checkpoint."""
        self._note(
            "decision", lambda engine: engine.task.choose(Choice(what, why, _each([instead_of]))), milestone=True
        )

    def issue(self, text: str) -> None:
        """Something stands in the way; saves a checkpoint."""
        self._note("issue", lambda engine: engine.task.issue(text), milestone=True)

    def resolve(self, text: str) -> None:
        """An issue is out of the way."""
        self._note("resolve", lambda engine: engine.task.resolve(text))

    def learn(self, text: str) -> None:
        """Something worth knowing later."""
        self._note("learn", lambda engine: engine.task.learn(text))

    def note(self, text: str, *, category: str = "misc", importance: Importance = "normal") -> None:
        """Write down what later windows need to know; `critical` notes are never given up for others.

        Raises `ConfigurationError` for an importance that is none.
        """
        if importance not in IMPORTANCES:
            raise ConfigurationError("importance", f"{importance!r}", expected=", ".join(IMPORTANCES))
        self._quick(
            "note",
            lambda engine: engine.notes.write(category, text, importance=importance, turn=engine.tracker.turn),
        )

    @property
    def notes(self) -> str:
        """All notes as they are shown to a model; empty without any."""
        with self._lock:
            return self._engine.notes.text()

    def hold(self, tool_call_id: str, *, reason: str = "waits for approval") -> None:
        """A tool call waits for a person or for long work: its group never leaves until its result came."""
        self._quick("hold", lambda engine: hold(engine, tool_call_id, reason))

    def release(self, tool_call_id: str) -> None:
        """A call that was held will get no result."""
        self._quick("release", lambda engine: release(engine, tool_call_id))

    def watch(self, *paths: str) -> None:
        """Files the task depends on; what changed of them is told when it is resumed."""
        self._note("watch", lambda engine: engine.task.watch(_each(paths)))

    def _note(self, what: str, change: Callable[[Engine], None], *, milestone: bool = False) -> None:
        self._quick(what, change)
        if milestone:
            self._milestone(what)

    def _milestone(self, trigger: str) -> None:
        """Save a checkpoint, as the driver can."""
        self._here("checkpoint", save_checkpoint(self._engine, trigger))


def _each(given: Iterable[object]) -> tuple[str, ...]:
    """The texts one by one, also of a list that was given as one."""
    lists = ([one] if isinstance(one, str) or not isinstance(one, Iterable) else one for one in given)
    return tuple(str(text) for texts in lists for text in texts)
