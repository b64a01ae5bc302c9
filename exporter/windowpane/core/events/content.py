"""Facts about blocks: added, referenced, evicted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from windowpane.core.fast_dataclass import FastDataclass
from windowpane.core.vocabulary import ContentType
from windowpane.core.window.blocks import Block


class BlockAdded(FastDataclass, frozen=True):
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
class StaticContentRemoved:
    """The agent no longer sends a system prompt or tool definitions, as where two roles take turns.

    It is not an eviction: nothing of the conversation left the window.
    """

    type: ClassVar[str] = "static_content.removed"
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
