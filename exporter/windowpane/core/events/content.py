"""Facts about content: blocks added, referenced and evicted, and the compressions that replaced them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from windowpane.core.fast_dataclass import fast_dataclass
from windowpane.core.vocabulary import Component, ContentType, Fate
from windowpane.core.window.blocks import Block


@fast_dataclass
class BlockAdded:
    """A block was added to the window. The event is stored without its text, which content capture stores."""

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
class ReplyDiscarded:
    """The agent did not send content of a reply back: it was in the window, but never in a call."""

    type: ClassVar[str] = "reply.discarded"
    block_ids: tuple[str, ...]
    tokens: int


@dataclass(frozen=True, slots=True)
class HistoryRewound:
    """The conversation went back to an earlier point and continues there; what followed it left the window.

    The `blocks.evicted` after it, of policy `rewound`, names the blocks of the abandoned branch.
    """

    type: ClassVar[str] = "history.rewound"
    last_kept: str | None
    """The block that the conversation continues after; None where it starts again."""
    turns: int
    """Turns with content in the abandoned branch."""
    blocks: int
    tokens: int


@dataclass(frozen=True, slots=True)
class EvictedBlock:
    """One block that a policy evicted, and the reason."""

    block_id: str
    content_type: ContentType
    tokens: int
    """Tokens of the block."""
    form: Literal["mask", "drop"]
    """`mask`: replaced by a placeholder; `drop`: removed without one."""
    reason: str
    score: float | None = None
    """0 is evicted first, 1 last; None when the agent evicted it."""
    terms: dict[str, float] = field(default_factory=dict)
    """Weighted terms of the score by name."""
    replacement: str | None = None
    """Id of the placeholder block, for a mask."""
    replacement_tokens: int = 0
    handle: str | None = None
    """Handle by which the original can be retrieved."""
    turn_added: int | None = None
    tool_name: str | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A block that could have been evicted but was not."""

    block_id: str
    content_type: ContentType
    tokens: int
    score: float


@dataclass(frozen=True, slots=True)
class BlocksEvicted:
    """A policy evicted blocks from the window."""

    type: ClassVar[str] = "blocks.evicted"
    policy: str
    blocks: tuple[EvictedBlock, ...]
    tokens_removed: int
    tokens_freed: int
    """Removed tokens minus those of placeholders."""
    target_tokens: int | None = None
    """Tokens that the eviction had to free."""
    shortfall_tokens: int = 0
    """Tokens that were missing to reach the target."""
    cache_cost_tokens: int | None = None
    """Tokens after the first edited position, which a prompt cache has to read again. None when the agent evicted
    the blocks itself, because their position is not recorded."""
    candidates: tuple[Candidate, ...] = ()
    """The next blocks in order of the score, at most 20."""


Strategy = Literal[
    "tool_result_summarization",
    "progressive_summarization",
    "compaction",
    "note_taking",
    "subagent_delegation",
    "truncation",
    "semantic_merge",
]
"""Method of replacing content by less content."""


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
    """`window` if a recording has only totals of the whole window: no ratio is derived from them."""
    removed: tuple[str, ...] = ()
    """Ids of the removed blocks."""
    results: tuple[str, ...] = ()
    """Ids of the blocks that replace them; each follows as `block.added`."""
    removed_by_component: dict[Component, int] = field(default_factory=dict)
    model_calls: int = 0
    cost_dollars: float | None = None
    duration_seconds: float | None = None
    method: str = ""
    """Author of the result, such as `extractive` or a model's name; `agent` when the agent compressed it."""
    reason: str = ""
    """Reason of a rejection or failure."""

    @property
    def ratio(self) -> float | None:
        """The compression ratio: original tokens / result tokens of the replaced content; None if unknown."""
        if self.scope != "content" or self.outcome != "accepted" or self.tokens_after <= 0:
            return None
        return self.tokens_before / self.tokens_after

    @property
    def is_own_compaction(self) -> bool:
        """True if the agent compacted by itself, and not at the request of its user."""
        return self.strategy == "compaction" and self.method == "agent" and self.trigger != "manual"


@dataclass(frozen=True, slots=True)
class FactOutcome:
    """One decision-critical fact after a compression: retained, recoverable, lost or contradicted."""

    kind: str
    outcome: Fate
    digest: str
    text: str | None = None
    """Never serialized; content capture stores it under the digest."""


@dataclass(frozen=True, slots=True)
class FidelityEvaluated:
    """The decision-critical information that is still visible after a compression was evaluated."""

    type: ClassVar[str] = "fidelity.evaluated"
    method: Literal["probe", "judge", "behavior"]
    score: float | None
    """0 to 1; None when the text of less than half of the removed tokens was seen, or without facts."""
    coverage: float
    """Share of the removed tokens whose text was seen, 0 to 1."""
    key_facts: float | None = None
    continuity: float | None = None
    decisions: float | None = None
    facts: tuple[FactOutcome, ...] = ()
    """Outcome of each fact, at most 200."""
    facts_total: int = 0
    facts_kept: int = 0
    facts_recoverable: int = 0
    facts_lost: int = 0
    facts_contradicted: int = 0
    of: str | None = None
    """Event id of the compression or eviction that was evaluated."""
    judge: str | None = None
    reason: str = ""
    """Reason of a missing score."""
