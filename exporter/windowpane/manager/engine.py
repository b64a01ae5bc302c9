"""The engine of one managed session, without I/O: its window, limits and budgets, and its state by subject.

Not thread-safe: the session's lock is held around every call. Content comes in through `content` and
`tool_results`; the hooks are in `hooks`, the reductions in `steps`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from windowpane.core.events import (
    BlocksEvicted,
    BudgetBlocked,
    BudgetWarned,
    EvictedBlock,
    FidelityEvaluated,
    PressureMeasured,
    Usage,
)
from windowpane.core.limits import WindowLimits
from windowpane.core.protocols import Digester, TokenCounter
from windowpane.core.tracking.tracker import SessionTracker
from windowpane.core.vocabulary import COMPONENT_OF, STATIC_TYPES, Component, ContentType
from windowpane.core.window.blocks import Block
from windowpane.core.window.references import INDEXED_TYPES, ReferenceIndex, argument_values
from windowpane.exceptions import WindowError
from windowpane.manager.budget import ComponentBudgets, Ruling, check_claim
from windowpane.manager.levels import Levels
from windowpane.manager.listeners import Journal
from windowpane.manager.plans.checkpoint import goal_text
from windowpane.manager.plans.findings import is_failure
from windowpane.manager.plans.notes import NoteBook, NoteStore, note_lines
from windowpane.manager.plans.placeholders import handle_of
from windowpane.manager.plans.progressive_summarization import ShortenedBlocks
from windowpane.manager.readings import Readings
from windowpane.manager.settings import EngineSettings
from windowpane.manager.snapshot import Snapshot, items_of
from windowpane.manager.state import Payload, ReductionState, TaskState, ToolCalls
from windowpane.manager.status import Status, status_of

SUPERSEDED: Final = "superseded"
"""The policy by which an interim result is removed."""
NOT_OPENING: Final = STATIC_TYPES | {"memory_injection"}
"""Content that may precede what the conversation starts with; the user's first message follows that at once."""
IN_USE_TURNS: Final = 20
"""Turns for which a name counts as in use after the agent used it."""
PROGRESS_TOKENS: Final = 1_500
PROGRESS_RATIO: Final = 0.03
"""Of usable; the smaller of both bounds the task's record in a summary."""


DeferEvaluation = Callable[[Callable[[], FidelityEvaluated], int], bool]
"""Takes an evaluation to run later, off the agent's path, and the characters of the texts that it reads; returns
False if too much waits already."""


@dataclass(slots=True)
class Engine:
    """One managed session: its tracker, settings and state, and what changes them."""

    tracker: SessionTracker
    counter: TokenCounter
    digest: Digester
    settings: EngineSettings = field(default_factory=EngineSettings)
    task: TaskState = field(default_factory=TaskState)
    cost_of: Callable[[Usage], float | None] | None = None
    model_cost_of: Callable[[Usage], float | None] | None = None
    """The price of a call of the language model that compresses."""
    note_store: NoteStore | None = None
    timer: Callable[[], float] = float
    """Seconds of any monotonic clock; the default never moves, so durations are 0."""
    defer_evaluation: DeferEvaluation | None = None
    limits: WindowLimits | None = None
    levels: Levels | None = None
    budget: ComponentBudgets | None = None
    calls: ToolCalls = field(default_factory=ToolCalls)
    reduction: ReductionState = field(default_factory=ReductionState)
    notes: NoteBook = field(init=False)
    payloads: dict[str, Payload] = field(default_factory=dict)
    references: ReferenceIndex = field(default_factory=ReferenceIndex)
    shortened: ShortenedBlocks = field(default_factory=ShortenedBlocks)
    """Content that became shorter with its age."""
    readings: Readings = field(default_factory=Readings)
    journal: Journal = field(default_factory=Journal)
    measured: PressureMeasured | None = None
    last_usage: Usage | None = None
    _alarms: dict[Component, int] = field(default_factory=dict)
    _handles: int = 0

    def __post_init__(self) -> None:
        self.task.id = self.task.id or self.tracker.info.session_id
        self.task.goal_is_given = bool(self.task.goal)
        self.notes = NoteBook(self.counter, self.digest, record=self.tracker.record, store=self.note_store)
        self.set_limits(self.tracker.limits)

    # -- limits and measurements ------------------------------------------------------------------------------

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
            self.budget = ComponentBudgets(shares, limits.limit_tokens, soft_ratio=soft)
            self.budget.reserved.update(reserved)

    def follow_limits(self) -> None:
        """Adopt a window size that the tracker learned from the provider."""
        if self.tracker.limits is not self.limits:
            self.set_limits(self.tracker.limits)

    def used(self) -> int:
        """Return the tokens that the next call would send."""
        return self.tracker.gauge.account.used(self.tracker.window.tokens)

    def raw(self, used_tokens: int) -> int:
        """Convert the provider's token count into ours."""
        accounts = self.tracker.gauge.account
        return math.ceil(used_tokens / (accounts.calibration if accounts.anchored else 1.0))

    def static_tokens(self) -> int:
        """Return the tokens of system prompt and tools, which are sent with every call and never reduced."""
        window = self.tracker.window
        by_component = window.tokens_by_component
        raw = by_component["system_prompt"] + by_component["tool_definitions"] + by_component["unattributed"]
        return int(raw * (self.tracker.gauge.account.calibration if self.tracker.gauge.account.anchored else 1.0))

    def status(self) -> Status:
        """Return the window's status at the last measurement."""
        tracker = self.tracker
        return status_of(self.measured, turn=tracker.turn, window_id=tracker.window_id, used_tokens=self.used())

    def now(self) -> float | None:
        """Return the seconds since the epoch, UTC; None if events have no time."""
        return self.tracker.now()

    def progress(self) -> list[str]:
        """Return the task's record and notes as lines; their number is bounded however long the task is."""
        room = PROGRESS_RATIO * (self.limits.usable_tokens if self.limits else PROGRESS_TOKENS / PROGRESS_RATIO)
        room = min(PROGRESS_TOKENS, room)
        lines = []
        critical, others = note_lines(self.notes.notes)
        for line in (*critical, *self.task.record.lines(), *others):
            room -= self.counter.count(line) + 2
            if room < 0:
                break
            lines.append(line)
        return lines

    def task_text(self) -> str:
        """Return what a summary states of the task, whether or not the conversation does."""
        criteria = self.task.record.success_criteria
        return "\n".join((self.task.goal, *self.task.constraints, *criteria, *self.progress()))

    def snapshot(self, limits: WindowLimits) -> Snapshot:
        """Return the window as policies see it."""
        tracker = self.tracker
        return Snapshot(
            version=tracker.window.version,
            turn=tracker.turn,
            exchange=tracker.exchange,
            limits=limits,
            items=items_of(tracker.window.slots()),
            lifetimes=tracker.settings.lifetimes,
            goal_block=self.task.goal_block,
            open_calls=self.calls.groups,
            findings={
                block_id: payload.finding for block_id, payload in self.payloads.items() if payload.finding
            },
            in_use=self.references.in_use(tracker.turn - IN_USE_TURNS),
            protected_types=self.settings.protected_types,
            references_known=self.settings.references,
        )

    def forget(self, blocks: Sequence[Block]) -> None:
        """Discard what is stored for blocks that were removed."""
        for block in blocks:
            self.payloads.pop(block.id, None)
            self.references.discard(block.id)
            self.readings.discard(block)
        self.shortened.forget(blocks)
        self.reduction.refused.discard(blocks)

    def transfer(self, block: Block, shorter: Block) -> None:
        """Move what is stored for a removed block to the shorter one that replaces it.

        The provider's own form is discarded, since it has the full content, and so are images.
        """
        payload = self.payloads.get(block.id)
        self.reduction.refused.transfer(block, shorter)
        self.forget([block])
        if payload is not None:
            self.payloads[shorter.id] = replace(payload, raw=None, media=())
        if self.task.goal_block == block.id:
            self.task.goal_block = shorter.id
        for call_id, waiting in self.calls.interim.items():
            if waiting == block.id:
                self.calls.interim[call_id] = shorter.id

    def carry_finding(self, block: Block, placeholder: Block) -> None:
        """Keep the finding of a masked result, for the summary that replaces its placeholder."""
        payload = self.payloads.get(block.id)
        if payload is not None and payload.finding:
            self.payloads[placeholder.id] = Payload(finding=payload.finding)

    def failures(self, blocks: Iterable[Block]) -> list[str]:
        """Return the failures that tool results among *blocks* reported, in order."""
        payloads = (self.payloads.get(block.id) for block in blocks)
        return [payload.finding for payload in payloads if payload is not None and is_failure(payload.finding)]

    def record_fidelity(
        self,
        removed: Sequence[Block],
        visible: Sequence[Block],
        *,
        recoverable: bool,
        of: str,
    ) -> None:
        """Measure how much of what a compression removed is retained, if the settings have an evaluator.

        Recorded at once where nothing defers it, as in a replay.
        """
        if self.settings.evaluate is None:
            return
        measure = partial(
            self.settings.evaluate,
            tuple(removed),
            tuple(visible),
            digest=self.digest,
            recoverable=recoverable,
            task=self.task_text(),
            of=of,
        )
        if self.defer_evaluation is None:
            self.tracker.record(measure())
        elif not self.defer_evaluation(measure, sum(block.chars for block in (*removed, *visible))):
            reason = "too many evaluations wait"
            self.tracker.record(FidelityEvaluated("probe", None, 0.0, of=of, reason=reason))

    def next_handle(self) -> str:
        """Return a handle for an original that was never a block."""
        self._handles += 1
        return handle_of(f"k{self._handles}")

    # -- content ----------------------------------------------------------------------------------------------

    def add(
        self, content_type: ContentType, content: object, *, pinned: bool = False, tool_name: str | None = None
    ) -> Block:
        """Add a block of text; anything else is converted: lost content would harm the agent more."""
        if content_type not in NOT_OPENING:
            self.insert_opening()
        if pinned and (carried := self._carried_block(content_type, content)) is not None:
            return carried
        text = content if isinstance(content, str) else "" if content is None else str(content)
        source = self.counter.source
        tokens = self.counter.count(text)
        self.watch_budget(COMPONENT_OF[content_type], tokens)
        block = self.tracker.add(
            content_type, text, tokens, count_source=source, pinned=pinned, tool_name=tool_name
        )
        self.index(block)
        return block

    def insert_opening(self) -> None:
        """Insert once what the conversation starts with: the record of a resumed task, then the task as given.

        Before the first call, and never changed after it: the provider's cache retains what precedes it.
        """
        task = self.task
        if task.is_opened:
            return
        task.is_opened = True
        if task.opening:
            self.add("summary", task.opening)
        given = goal_text(
            task.goal if task.goal_is_given else "", task.constraints, task.record.success_criteria, heading=True
        )
        if given:
            task.stated_block = self.add("user_message", given, pinned=True).id
        present = {(block.content_type, block.text) for block in self.tracker.window if block.pinned}
        for content_type, text in task.carried:
            if (content_type, text) not in present:
                self.add(content_type, text, pinned=True)

    def _carried_block(self, content_type: ContentType, content: object) -> Block | None:
        """Return the block of a pinned text that a resumed task brought along, when its program adds it again."""
        if (content_type, content) not in self.task.carried:
            return None
        return next(
            (
                block
                for block in self.tracker.window
                if block.pinned and block.content_type == content_type and block.text == content
            ),
            None,
        )

    def reindex(self) -> None:
        """Track references to the blocks of a new window."""
        self.references.clear()
        for block in self.tracker.window:
            self._index_names(block)

    def index(self, block: Block) -> None:
        """Register the rare identifiers of a block, by which later content refers to it, and have it read."""
        self.readings.add(block)
        self._index_names(block)

    def _index_names(self, block: Block) -> None:
        if self.settings.references and block.text and block.content_type in INDEXED_TYPES:
            self.references.add(block.id, block.text)

    def refer(self, block: Block) -> None:
        """Mark the blocks that a reply mentions as in use, and have the reply read."""
        self.readings.add(block)
        if self.settings.references and block.text:
            text = argument_values(block.text) if block.content_type == "tool_call" else block.text
            self.tracker.mark_referenced(self.references.referenced(text, turn=block.turn), block.id)

    # -- tool calls that wait ---------------------------------------------------------------------------------

    def hold(self, call_id: str, reason: str) -> None:
        """Keep a tool call and its group in the window; raises `WindowError` for one that is not open."""
        if not self.calls.hold(call_id):
            raise WindowError(f"the call {call_id} is not open")
        self.show_interim(call_id, f"[pending: {reason}]")

    def show_interim(self, call_id: str, text: str) -> None:
        """Put *text* in place of the result of a held call."""
        self.remove_interim(call_id)
        tokens, source = self.counter.count(text), self.counter.source
        name = self.calls.held[call_id].name
        block = self.tracker.add(
            "tool_result", text, tokens, count_source=source, tool_call_id=call_id, tool_name=name
        )
        self.calls.interim[call_id] = block.id

    def remove_interim(self, call_id: str) -> None:
        """Remove the text in place of a call's result."""
        block_id = self.calls.interim.pop(call_id, None)
        window = self.tracker.window
        if block_id is None or block_id not in window:
            return
        block = window.slot(block_id).block
        removed = EvictedBlock(
            block.id, block.content_type, block.tokens, "drop", "the result came", turn_added=block.turn
        )
        self.tracker.evict(
            BlocksEvicted(
                policy=SUPERSEDED, blocks=(removed,), tokens_removed=block.tokens, tokens_freed=block.tokens
            )
        )
        self.forget([block])

    # -- budgets ----------------------------------------------------------------------------------------------

    def can_add(self, component: Component, tokens: int) -> Ruling:
        """Return whether *tokens* more of a component fit; record a block, and limits that would be exceeded."""
        check_claim(component, tokens)
        used = self.tracker.window.tokens_by_component
        if self.budget is None or self.limits is None:
            return Ruling("allowed", component, used[component], None)
        ruling = self.budget.check(component, tokens, used)
        room = self.limits.overflow_tokens - self.used() - sum(self.budget.reserved.values())
        if tokens > room:
            ceiling = self.limits.overflow_tokens
            ruling = Ruling("blocked", component, ceiling - room, ceiling, "make room in the window first")
        elif ruling.outcome == "blocked" and self.settings.enforce == "global":
            ruling = replace(ruling, outcome="warned")
        self.watch_budget(component, tokens)
        if ruling.outcome == "blocked" and ruling.budget_tokens is not None:
            self.tracker.record(
                BudgetBlocked(component, tokens, ruling.used_tokens, ruling.budget_tokens, ruling.action)
            )
        return ruling

    def watch_budget(self, component: Component, tokens: int) -> None:
        """Warn once when a component exceeds its soft limit, and once more when it exceeds its budget."""
        if self.budget is None:
            return
        ruling = self.budget.check(component, tokens, self.tracker.window.tokens_by_component)
        level = {"allowed": 0, "warned": 1, "blocked": 2}[ruling.outcome]
        if level > self._alarms.get(component, 0) and ruling.budget_tokens is not None:
            self.tracker.record(BudgetWarned(component, ruling.used_tokens + tokens, ruling.budget_tokens))
        self._alarms[component] = level
