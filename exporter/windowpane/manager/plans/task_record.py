"""The task record: subtasks, choices, issues, learnings and files that the agent reports beside the conversation.

It is part of every checkpoint and of every summary, so it survives compactions and windows. Planned work is never
reported as done.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from windowpane.core.validation import described
from windowpane.exceptions import CorruptCheckpointError

StoredModel = TypeVar("StoredModel", bound=BaseModel)
SubtaskStatus = Literal["planned", "in_progress", "done"]

MAXIMUM_ENTRIES: Final = 200
"""Subtasks, choices, issues and learnings kept of each; of subtasks the oldest done ones go first."""
LINE_CHARACTERS: Final = 500
SHOWN_DONE: Final = 10
"""Done subtasks that are named in a summary, the last ones; of the others only how many."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A decision with its reason, so that it is not debated again."""

    what: str
    why: str = ""
    instead_of: tuple[str, ...] = ()
    """Rejected alternatives."""

    def __str__(self) -> str:
        because = f", because {self.why}" if self.why else ""
        instead = f" (not: {'; '.join(self.instead_of)})" if self.instead_of else ""
        return f"{self.what}{because}{instead}"


class StoredSubtask(BaseModel):
    """A subtask in a checkpoint."""

    name: str
    status: SubtaskStatus


class StoredIssue(BaseModel):
    """An issue in a checkpoint."""

    text: str
    open: bool


class StoredTask(BaseModel):
    """A task record in a checkpoint."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    success_criteria: tuple[str, ...] = ()
    subtasks: tuple[StoredSubtask, ...] = ()
    choices: tuple[Choice, ...] = ()
    issues: tuple[StoredIssue, ...] = ()
    learnings: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()


@dataclass(slots=True)
class TaskRecord:
    """The state of one task; bounded, and plain enough for JSON."""

    success_criteria: tuple[str, ...] = ()
    subtasks: dict[str, SubtaskStatus] = field(default_factory=dict)
    """In the order they were planned."""
    choices: list[Choice] = field(default_factory=list)
    issues: dict[str, bool] = field(default_factory=dict)
    """True for each issue that is open."""
    learnings: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    """Files the task depends on; they are probed when the task is resumed."""

    # -- what happens -----------------------------------------------------------------------------------------

    def plan(self, names: Iterable[str]) -> None:
        """Add subtasks that are intended; one that is known keeps its status."""
        for name in names:
            self.subtasks.setdefault(_line(name), "planned")
        self._bound()

    def start(self, name: str) -> None:
        """Mark a subtask as in progress, unless it is done; `reopen` continues one that is done."""
        if self.subtasks.get(_line(name)) != "done":
            self.subtasks[_line(name)] = "in_progress"
            self._bound()

    def reopen(self, name: str) -> None:
        """Mark a done subtask as in progress again; any other keeps its status."""
        if self.subtasks.get(_line(name)) == "done":
            self.subtasks[_line(name)] = "in_progress"

    def done(self, name: str) -> None:
        """Mark a subtask as done."""
        self.subtasks[_line(name)] = "done"
        self._bound()

    def choose(self, choice: Choice) -> None:
        """Record a decision."""
        _append(self.choices, Choice(_line(choice.what), _line(choice.why), tuple(map(_line, choice.instead_of))))

    def issue(self, text: str) -> None:
        """Record an open issue."""
        self.issues[_line(text)] = True
        while len(self.issues) > MAXIMUM_ENTRIES:
            closed = (name for name, is_open in self.issues.items() if not is_open)
            del self.issues[next(closed, next(iter(self.issues)))]

    def resolve(self, text: str) -> None:
        """Close an issue."""
        self.issues[_line(text)] = False

    def learn(self, text: str) -> None:
        """Record a learning, once."""
        if _line(text) not in self.learnings:
            _append(self.learnings, _line(text))

    def watch(self, paths: Iterable[str]) -> None:
        """Add files that the task depends on."""
        self.paths = list(dict.fromkeys([*self.paths, *paths]))[-MAXIMUM_ENTRIES:]

    def _bound(self) -> None:
        while len(self.subtasks) > MAXIMUM_ENTRIES:
            finished = (name for name, status in self.subtasks.items() if status == "done")
            del self.subtasks[next(finished, next(iter(self.subtasks)))]

    # -- what is known ----------------------------------------------------------------------------------------

    def with_status(self, status: SubtaskStatus) -> list[str]:
        """Return the subtasks of one status, in order."""
        return [name for name, current in self.subtasks.items() if current == status]

    @property
    def open_issues(self) -> list[str]:
        """Issues that are not resolved."""
        return [text for text, is_open in self.issues.items() if is_open]

    @property
    def unfinished(self) -> list[str]:
        """Subtasks that are not done."""
        return [name for name, status in self.subtasks.items() if status != "done"]

    def lines(self) -> list[str]:
        """Return the record as lines for a model, most urgent first; planned subtasks are marked."""
        finished = self.with_status("done")
        omitted = len(finished) - SHOWN_DONE
        return [
            *(f"[in progress] {name}" for name in self.with_status("in_progress")),
            *(f"[open issue] {text}" for text in self.open_issues),
            *(f"[planned, not begun] {name}" for name in self.with_status("planned")),
            *(f"[decided] {choice}" for choice in self.choices),
            *([f"[done] {omitted} more"] if omitted > 0 else []),
            *(f"[done] {name}" for name in finished[-SHOWN_DONE:]),
            *(f"[learnt] {text}" for text in self.learnings),
        ]

    # -- JSON -------------------------------------------------------------------------------------------------

    def to_document(self) -> dict[str, Any]:
        """Plain JSON types."""
        stored = StoredTask(
            success_criteria=self.success_criteria,
            subtasks=tuple(StoredSubtask(name=name, status=status) for name, status in self.subtasks.items()),
            choices=tuple(self.choices),
            issues=tuple(StoredIssue(text=text, open=is_open) for text, is_open in self.issues.items()),
            learnings=tuple(self.learnings),
            paths=tuple(self.paths),
        )
        return stored.model_dump(mode="json")

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> TaskRecord:
        """Return the record of a checkpoint. Raises `CorruptCheckpointError` for one that is not well formed."""
        stored = read_stored(StoredTask, document)
        return cls(
            success_criteria=stored.success_criteria,
            subtasks={subtask.name: subtask.status for subtask in stored.subtasks},
            choices=list(stored.choices),
            issues={issue.text: issue.open for issue in stored.issues},
            learnings=list(stored.learnings),
            paths=list(stored.paths),
        )


def read_stored(kind: type[StoredModel], document: object) -> StoredModel:
    """Return a document as a model. Raises `CorruptCheckpointError` about every invalid field."""
    try:
        return kind.model_validate(document)
    except ValidationError as error:
        problems = []
        for detail in error.errors(include_url=False):
            problem, expected = described(detail)
            key = ".".join(map(str, detail["loc"])) or "the checkpoint"
            problems.append(f"{key}: {problem}; expected {expected}")
        raise CorruptCheckpointError("; ".join(problems)) from None


def _line(text: str) -> str:
    """One line, of bounded length."""
    return " ".join(str(text)[: 4 * LINE_CHARACTERS].split())[:LINE_CHARACTERS]


def _append(entries: list[Any], entry: Any) -> None:
    entries.append(entry)
    del entries[:-MAXIMUM_ENTRIES]
