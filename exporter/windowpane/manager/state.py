"""The state of a managed session by subject: its tool calls, its task, and the reductions of its window.

Reductions may call the language model and the sub-agent `BURST` times at once, and once every few turns on
average after that (`EngineSettings.model_calls_per_turn`). Where the budget is used up, they do without.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from windowpane.core.vocabulary import Component, ContentType
from windowpane.core.window.blocks import Block
from windowpane.manager.circuit_breaker import Breaker
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
    is_opened: bool = False
    """True once the window has what its first call starts with."""
    opening: str = ""
    """The record of a resumed task, which its window starts with."""
    carried: Sequence[tuple[ContentType, str]] = ()
    """The pinned messages and memories of a resumed task, which are pinned in its window too."""
    stated_block: str | None = None
    """The pinned block that states goal, constraints and success criteria as given, in every call."""
    milestone: str = ""
    """The event that a checkpoint still has to be saved for."""
    checkpoint_version: int = 0
    checkpoint_turn: int | None = None


BURST: Final = 8
"""Calls that a session may make before the average applies, and the most that it saves up."""
REFUSED_SHARE: Final = 0.5
"""Content counts as refused if at least this share of its tokens was."""


@dataclass(slots=True)
class ModelCallBudget:
    """The model calls that a session may still make; it grows with every turn, up to `BURST`."""

    _available: float = BURST
    _turn: int = 0

    def allows(self, turn: int, per_turn: float) -> bool:
        """Return whether a call may be made in *turn*; each turn since the last adds *per_turn* calls."""
        if turn > self._turn:
            self._available = min(BURST, self._available + (turn - self._turn) * per_turn)
            self._turn = turn
        return self._available >= 1

    def spend(self) -> None:
        """Count a call; a reduction that is under way may overdraw the budget."""
        self._available -= 1


@dataclass(slots=True)
class RefusedContent:
    """Blocks whose replacement by a model or sub-agent was refused, by strategy: they are not sent again."""

    _blocks: dict[str, set[str]] = field(default_factory=dict)

    def add(self, strategy: str, blocks: Iterable[Block]) -> None:
        """Remember that *strategy* failed to replace *blocks*."""
        self._blocks.setdefault(strategy, set()).update(block.id for block in blocks)

    def covers(self, strategy: str, blocks: Sequence[Block]) -> bool:
        """Return whether *blocks* are mostly content that was refused before."""
        refused = self._blocks.get(strategy)
        if not refused:
            return False
        tokens = sum(block.tokens for block in blocks if block.id in refused)
        return tokens >= REFUSED_SHARE * sum(block.tokens for block in blocks)

    def transfer(self, block: Block, shorter: Block) -> None:
        """Count *shorter* as refused if *block* was, which it replaces."""
        for refused in self._blocks.values():
            if block.id in refused:
                refused.add(shorter.id)

    def discard(self, blocks: Iterable[Block]) -> None:
        """Forget *blocks*, which were removed."""
        for refused in self._blocks.values():
            refused.difference_update(block.id for block in blocks)


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
