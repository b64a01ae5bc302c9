"""Facts about content: what came into a window, what left it, and what stands for what left."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from windowpane.core.fast_dataclass import fast_dataclass
from windowpane.core.vocabulary import Component, ContentType, Fate
from windowpane.core.window.blocks import Block


@fast_dataclass
class BlockAdded:
    """A block entered the window. Its text never travels in the event; content capture stores it apart."""

    type: ClassVar[str] = "block.added"
    block: Block


@dataclass(frozen=True, slots=True)
class BlocksReferenced:
    """Later content used something that only these blocks hold."""

    type: ClassVar[str] = "blocks.referenced"
    block_ids: tuple[str, ...]
    by: str
    """The block that refers to them."""


@dataclass(frozen=True, slots=True)
class EvictedBlock:
    """One block that a policy took out, and why."""

    block_id: str
    content_type: ContentType
    tokens: int
    """Tokens it held."""
    form: Literal["mask", "drop"]
    reason: str
    score: float | None = None
    """0 evict first, 1 keep; None when the agent did it itself."""
    terms: dict[str, float] = field(default_factory=dict)
    """The weighted terms the score is made of."""
    replacement: str | None = None
    """The placeholder's block id, for a mask."""
    replacement_tokens: int = 0
    handle: str | None = None
    """Where the original can be retrieved."""
    turn_added: int | None = None
    tool_name: str | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A block that could have been evicted and was not."""

    block_id: str
    content_type: ContentType
    tokens: int
    score: float


@dataclass(frozen=True, slots=True)
class BlocksEvicted:
    """A policy took blocks out of the window."""

    type: ClassVar[str] = "blocks.evicted"
    policy: str
    blocks: tuple[EvictedBlock, ...]
    tokens_removed: int
    tokens_freed: int
    """Removed, net of placeholders."""
    target_tokens: int | None = None
    shortfall_tokens: int = 0
    cache_cost_tokens: int | None = None
    """Tokens after the first edited position: what a prompt cache, where there is one, has to take in again. None
    for what the agent itself took out, whose place is not recorded."""
    candidates: tuple[Candidate, ...] = ()
    """The next at most 20 not taken."""


Strategy = Literal[
    "tool_result_summarization",
    "progressive_summarization",
    "compaction",
    "note_taking",
    "subagent_delegation",
    "truncation",
    "semantic_merge",
]
"""How content was replaced by less content."""


@dataclass(frozen=True, slots=True)
class ContentCompressed:
    """Content was replaced by less content, or an attempt to do so failed."""

    type: ClassVar[str] = "content.compressed"
    strategy: Strategy
    trigger: str
    outcome: Literal["accepted", "rejected", "failed"]
    tokens_before: int
    tokens_after: int
    scope: Literal["content", "window"] = "content"
    """`window` where a recording gives only totals of the whole window: no ratio is derived from it."""
    removed: tuple[str, ...] = ()
    """Ids of the blocks that left."""
    results: tuple[str, ...] = ()
    """Ids of the blocks that stand for them; each follows as `block.added`."""
    removed_by_component: dict[Component, int] = field(default_factory=dict)
    model_calls: int = 0
    cost_dollars: float | None = None
    duration_seconds: float | None = None
    method: str = ""
    """What wrote the result, such as `extractive` or a model's name; `agent` when the agent did it itself."""
    reason: str = ""
    """Why it was rejected or failed."""

    @property
    def ratio(self) -> float | None:
        """Original over result tokens of the replaced content; None where that is not known."""
        if self.scope != "content" or self.outcome != "accepted" or self.tokens_after <= 0:
            return None
        return self.tokens_before / self.tokens_after


@dataclass(frozen=True, slots=True)
class FactOutcome:
    """What became of one decision-critical fact in a compression."""

    kind: str
    outcome: Fate
    digest: str
    text: str | None = None
    """Never serialised; content capture stores it under the digest."""


@dataclass(frozen=True, slots=True)
class FidelityEvaluated:
    """How much decision-critical information is still visible after a compression."""

    type: ClassVar[str] = "fidelity.evaluated"
    method: Literal["probe", "judge", "behavior"]
    score: float | None
    """0 to 1; None when less than half of the removed tokens' text was seen, or there were no facts."""
    coverage: float
    """Share of the removed tokens whose text was seen, 0 to 1."""
    key_facts: float | None = None
    continuity: float | None = None
    decisions: float | None = None
    facts: tuple[FactOutcome, ...] = ()
    """At most 200."""
    facts_total: int = 0
    facts_kept: int = 0
    facts_recoverable: int = 0
    facts_lost: int = 0
    facts_contradicted: int = 0
    of: str | None = None
    """Event id of the compression or eviction that was evaluated."""
    judge: str | None = None
    reason: str = ""
    """Why the score is absent."""
