"""What is known of one managed session: its limits, its task, what waits, and the snapshot plans are made from.

Not thread-safe: the manager holds the session's lock around every step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from windowpane.core.events import PressureMeasured, Usage
from windowpane.core.limits import WindowLimits
from windowpane.core.protocols import Digester, TokenCounter
from windowpane.core.tracking.tracker import SessionTracker
from windowpane.core.vocabulary import Component
from windowpane.core.window.blocks import Block
from windowpane.core.window.references import ReferenceIndex
from windowpane.fidelity.facts import Fact
from windowpane.manager.budget import Budget
from windowpane.manager.circuit_breaker import Breaker
from windowpane.manager.levels import Levels
from windowpane.manager.payloads import Payload
from windowpane.manager.plans.notes import IMPORTANCES, Note, NoteBook, NoteStore
from windowpane.manager.plans.placeholders import handle_of
from windowpane.manager.plans.progressive import ShortenedBlocks
from windowpane.manager.plans.task_record import TaskRecord
from windowpane.manager.preset_log import Journal
from windowpane.manager.settings import EngineSettings
from windowpane.manager.snapshot import Snapshot, items_of
from windowpane.manager.status import Status, status_of

IN_USE_TURNS: Final = 20
"""Turns for which a name counts as in use after the agent used it."""
PROGRESS_TOKENS: Final = 1_500
PROGRESS_RATIO: Final = 0.03
"""Of usable; the smaller of both bounds what summaries say of the task's record."""


@dataclass(slots=True)
class OpenCall:
    """A tool call that waits for its result."""

    group: str
    name: str


class Stuck(NamedTuple):
    """A component that is over its budget and could not be reduced."""

    used_tokens: int
    turn: int


@dataclass(slots=True)
class SessionState:
    """What is known of one managed session beside its tracker."""

    tracker: SessionTracker
    counter: TokenCounter
    digest: Digester
    settings: EngineSettings = field(default_factory=EngineSettings)
    goal: str = ""
    constraints: Sequence[str] = ()
    cost_of: Callable[[Usage], float | None] | None = None
    note_store: NoteStore | None = None
    timer: Callable[[], float] = float
    """Seconds of any monotonic clock; the default never moves, so durations are 0."""
    limits: WindowLimits | None = None
    levels: Levels | None = None
    budget: Budget | None = None
    breaker: Breaker = field(default_factory=Breaker)
    payloads: dict[str, Payload] = field(default_factory=dict)
    references: ReferenceIndex = field(default_factory=ReferenceIndex)
    journal: Journal = field(default_factory=Journal)
    shortened: ShortenedBlocks = field(default_factory=ShortenedBlocks)
    """What content became shorter by its age."""
    open_calls: dict[str, OpenCall] = field(default_factory=dict)
    held: dict[str, OpenCall] = field(default_factory=dict)
    """Calls that wait for an approval or for long work, whatever the conversation does meanwhile."""
    interim: dict[str, str] = field(default_factory=dict)
    """The block that stands for the result of such a call."""
    stuck: dict[Component, Stuck] = field(default_factory=dict)
    """Components that could not be brought within their budgets."""
    children: int = 0
    """Sub-agents that were asked."""
    wanting_notes: tuple[Note, ...] = ()
    """The notes that did not say enough when they were offered."""
    answered: set[str] = field(default_factory=set)
    measured: PressureMeasured | None = None
    last_usage: Usage | None = None
    sent: int = 0
    """Used tokens with which the last call was made."""
    goal_block: str | None = None
    fruitless_used: int | None = None
    """Used tokens at the last eviction plan that was not worth applying."""
    retried_turn: int | None = None
    compacting: int = 0
    """Summaries that are being written; more than one only where the window is about to overflow."""
    consulted: bool = False
    """Whether anyone wants to be asked before a compaction."""
    compacted_turn: int | None = None
    """The last turn whose conversation was compacted before its call."""
    checkpoint_version: int = 0
    checkpoint_turn: int | None = None
    task_id: str = ""
    """What checkpoints are kept under; the session's id where the task has none of its own."""
    task: TaskRecord = field(default_factory=TaskRecord)
    windows_before: int = 0
    """Windows of the task before this session."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """What surrounded the task when it was last looked at."""
    opening: str = ""
    """What a resumed window begins with, until it is put in."""
    milestone: str = ""
    """What happened that a checkpoint is still to be saved for."""
    failed_steps: set[str] = field(default_factory=set)
    """Steps that have failed and were logged."""
    _alarms: dict[Component, int] = field(default_factory=dict)
    _handles: int = 0

    def __post_init__(self) -> None:
        self.task_id = self.task_id or self.tracker.info.session_id
        self.notes = NoteBook(self.counter, self.digest, record=self.tracker.record, store=self.note_store)
        self.goal_is_given = bool(self.goal)
        self.set_limits(self.tracker.limits)

    goal_is_given: bool = False
    notes: NoteBook = field(init=False)

    # -- what is known ----------------------------------------------------------------------------------------

    def set_limits(self, limits: WindowLimits | None) -> None:
        """Derive levels and budgets from the window's size."""
        self.limits = limits
        self.levels = None if limits is None else self.settings.levels_of(limits, self.settings.checkpoint_ratio)
        if self.levels is not None and limits is not None and self.settings.compact_ratio is not None:
            self.levels = self.levels.compacting_at(limits, self.settings.compact_ratio)
        reserved = {} if self.budget is None else self.budget.reserved
        self.budget = None
        if limits is not None:
            shares, soft = self.tracker.settings.budget, self.settings.soft_ratio
            self.budget = Budget(shares, limits.limit_tokens, soft_ratio=soft)
            self.budget.reserved.update(reserved)

    def follow_limits(self) -> None:
        """Take over a size that the tracker learnt from the provider."""
        if self.tracker.limits is not self.limits:
            self.set_limits(self.tracker.limits)

    def used(self) -> int:
        """What the next call would send, tokens."""
        return self.tracker.gauge.account.used(self.tracker.window.tokens)

    def raw(self, used_tokens: int) -> int:
        """As many tokens of our own count as *used_tokens* of the provider's are."""
        accounts = self.tracker.gauge.account
        return math.ceil(used_tokens / (accounts.calibration if accounts.anchored else 1.0))

    def standing(self) -> int:
        """Tokens that are sent with every call and can never be reduced."""
        window = self.tracker.window
        by_component = window.tokens_by_component
        raw = by_component["system_prompt"] + by_component["tool_definitions"] + by_component["unattributed"]
        return int(raw * (self.tracker.gauge.account.calibration if self.tracker.gauge.account.anchored else 1.0))

    def status(self) -> Status:
        """The window at the last measurement."""
        tracker = self.tracker
        return status_of(self.measured, turn=tracker.turn, window_id=tracker.window_id, used_tokens=self.used())

    def now(self) -> float | None:
        """Seconds since the epoch, UTC; None where events have no time."""
        return self.tracker.emitter.now()

    def progress(self) -> list[str]:
        """What of the task is under way, planned and done, in lines whose number does not grow with the task."""
        room = PROGRESS_RATIO * (self.limits.usable_tokens if self.limits else PROGRESS_TOKENS / PROGRESS_RATIO)
        room = min(PROGRESS_TOKENS, room)
        lines = []
        newest = self.notes.notes[::-1]
        notes = sorted(newest, key=lambda note: IMPORTANCES.index(note.importance))
        for line in (*self.task.lines(), *(f"[note: {note.category}] {note.text}" for note in notes)):
            room -= self.counter.count(line) + 2
            if room < 0:
                break
            lines.append(line)
        return lines

    def snapshot(self, limits: WindowLimits) -> Snapshot:
        """The window as policies see it."""
        tracker = self.tracker
        return Snapshot(
            version=tracker.window.version,
            turn=tracker.turn,
            exchange=tracker.exchange,
            limits=limits,
            items=items_of(tracker.window.slots()),
            lifetimes=tracker.settings.lifetimes,
            goal_block=self.goal_block,
            open_calls=frozenset(call.group for calls in (self.open_calls, self.held) for call in calls.values()),
            findings={
                block_id: payload.finding for block_id, payload in self.payloads.items() if payload.finding
            },
            in_use=self.references.in_use(tracker.turn - IN_USE_TURNS),
            protected_types=self.settings.protected_types,
            references_known=self.settings.references,
        )

    def forget(self, blocks: Sequence[Block]) -> None:
        """Drop what is kept beside blocks that left."""
        for block in blocks:
            self.payloads.pop(block.id, None)
            self.references.forget(block.id)
        self.shortened.forget(blocks)

    def hand_over(self, block: Block, shorter: Block) -> None:
        """What is kept beside a block that left stays with the block that says less in its place.

        But for the provider's own form, which says as much as before, and for images, which are counted no more.
        """
        payload = self.payloads.get(block.id)
        self.forget([block])
        if payload is not None:
            self.payloads[shorter.id] = replace(payload, raw=None, media=())
        if self.goal_block == block.id:
            self.goal_block = shorter.id
        for call_id, waiting in self.interim.items():
            if waiting == block.id:
                self.interim[call_id] = shorter.id

    def assess(
        self,
        removed: Sequence[Block],
        visible: Sequence[Block],
        *,
        recoverable: bool,
        facts: Sequence[Fact] | None,
        of: str,
    ) -> None:
        """Report how much of what a compression removed can still be seen, where that is asked for."""
        evaluate = self.settings.evaluate
        if evaluate is not None:
            self.tracker.record(
                evaluate(removed, visible, digest=self.digest, recoverable=recoverable, facts=facts, of=of)
            )

    def next_handle(self) -> str:
        """A handle for an original that never had a block of its own."""
        self._handles += 1
        return handle_of(f"k{self._handles}")
