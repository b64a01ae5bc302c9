"""The state of a managed session by subject: its tool calls, its task, and the reductions of its window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from windowpane.core.vocabulary import Component
from windowpane.manager.circuit_breaker import Breaker
from windowpane.manager.model_budget import ModelCallBudget, RefusedContent
from windowpane.manager.plans.notes import Note
from windowpane.manager.plans.task_record import TaskRecord


@dataclass(frozen=True, slots=True)
class Payload:
    """Properties of a block beyond its text that the provider's messages need."""

    finding: str = ""
    """One line of what a tool result found, taken when it was added; part of its placeholder later."""
    raw: Mapping[str, Any] | None = None
    """The part in the provider's own shape, where the text alone would lose something."""
    media: tuple[Mapping[str, Any], ...] = ()
    """Images and documents in a tool's output, as they came."""
    is_error: bool = False
    """A tool result that reports a failure."""
    joined: bool = False
    """Part of the same message as the block before it."""


@dataclass(slots=True)
class OpenCall:
    """A tool call that waits for its result."""

    group: str
    name: str


@dataclass(slots=True)
class ToolCalls:
    """The tool calls of a session, by their id."""

    open: dict[str, OpenCall] = field(default_factory=dict)
    """Calls of the last reply without a result."""
    held: dict[str, OpenCall] = field(default_factory=dict)
    """Calls that wait for an approval or for long work, however the conversation continues meanwhile."""
    interim: dict[str, str] = field(default_factory=dict)
    """Id of the block that replaces the result of a held call until it comes."""
    answered: set[str] = field(default_factory=set)
    """Calls of the last reply with a result."""

    @property
    def groups(self) -> frozenset[str]:
        """The groups that wait for a result."""
        return frozenset(call.group for calls in (self.open, self.held) for call in calls.values())

    def start_reply(self) -> None:
        """Forget earlier replies: their calls without a result will never get one."""
        self.open.clear()
        self.answered.clear()

    def hold(self, call_id: str) -> bool:
        """Keep a call waiting; return False for one that is neither open nor held."""
        call = self.open.get(call_id) or self.held.get(call_id)
        if call is None:
            return False
        self.held[call_id] = call
        self.open.pop(call_id, None)
        return True

    def release(self, call_id: str) -> None:
        """Stop waiting for a held call."""
        self.held.pop(call_id, None)
        self.interim.pop(call_id, None)

    def answer(self, call_id: str) -> OpenCall | None:
        """Mark a call as answered and return it."""
        self.answered.add(call_id)
        return self.held.pop(call_id, None) or self.open.pop(call_id, None)

    def find(self, name: str, call_id: str | None) -> str | None:
        """Return the call that a result answers by id, else the first open one of the tool, else the only."""
        if call_id is not None:
            exists = call_id in self.open or call_id in self.held or call_id in self.answered
            return call_id if exists else None
        by_name = next((open_id for open_id, call in self.open.items() if call.name == name), None)
        if by_name is None and len(self.open) == 1:
            return next(iter(self.open))
        return by_name


@dataclass(slots=True)
class TaskState:
    """The task of a session, and its checkpoints."""

    goal: str = ""
    constraints: Sequence[str] = ()
    id: str = ""
    """The id that checkpoints are saved under; the session's id for a task without one."""
    record: TaskRecord = field(default_factory=TaskRecord)
    goal_is_given: bool = False
    """True if the goal was passed or resumed, rather than read from the first user message."""
    goal_block: str | None = None
    """The block that states the goal."""
    windows_before: int = 0
    """Windows of the task before this session."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Facts about the task's surroundings when they were last observed."""
    opening: str = ""
    """The text that a resumed window starts with, until it is inserted."""
    milestone: str = ""
    """The event that a checkpoint still has to be saved for."""
    checkpoint_version: int = 0
    checkpoint_turn: int | None = None


class StuckComponent(NamedTuple):
    """A component that is over its budget and could not be reduced."""

    used_tokens: int
    turn: int


@dataclass(slots=True)
class ReductionState:
    """Attempts to reduce the window, so that those that cannot help are not repeated."""

    breaker: Breaker = field(default_factory=Breaker)
    model_calls: ModelCallBudget = field(default_factory=ModelCallBudget)
    refused: RefusedContent = field(default_factory=RefusedContent)
    answers_in_parts: bool = True
    """False once the model answered several texts as if they were one."""
    has_callbacks: bool = False
    """True if callbacks are called before a compaction."""
    compactions_running: int = 0
    """Summaries being written; more than one only if the window is about to overflow meanwhile."""
    compacted_turn: int | None = None
    """The last turn whose conversation was compacted before its call."""
    fruitless_used: int | None = None
    """Used tokens at the last eviction plan that was not worth applying."""
    retried_turn: int | None = None
    """The turn whose call was repeated after an overflow."""
    stuck: dict[Component, StuckComponent] = field(default_factory=dict)
    failed_steps: set[str] = field(default_factory=set)
    """Steps whose failure was logged."""
    subagents_run: int = 0
    rejected_notes: tuple[Note, ...] = ()
    """The notes that did not cover enough when they were offered as a summary."""
