"""Regret: content that is fetched again after it was removed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from windowpane.core.events import ContentRegretted
from windowpane.core.limits import TrackerSettings
from windowpane.core.vocabulary import DERIVED_TYPES
from windowpane.core.window.blocks import Block

Cause = Literal["eviction", "compression"]


class RemovedBlock(NamedTuple):
    """A block that was removed, and the event that removed it."""

    block_id: str
    tokens: int
    turn: int
    cause: Cause
    cause_event_id: str
    digests: tuple[str, ...]
    """The block's digest and, for a tool result, the digest of the call that fetched it."""

    @classmethod
    def of(
        cls, block: Block, call: Block | None, *, turn: int, cause: Cause, cause_event_id: str
    ) -> RemovedBlock:
        """Describe the removal of *block*; *call* is the tool call that fetched it."""
        digests = [block.digest] if block.digest else []
        if block.content_type == "tool_result" and call is not None and call.digest:
            digests.append(call.digest)
        return cls(block.id, block.tokens, turn, cause, cause_event_id, tuple(digests))

    def regretted(self, match: Literal["same_call", "same_digest"], *, by: str) -> ContentRegretted:
        """Return the event that block *by* fetched it again."""
        return ContentRegretted(self.cause, match, self.block_id, by, self.tokens, self.turn, self.cause_event_id)


class RemovedBlocks:
    """A bounded memory of removed blocks by digest; the oldest are discarded first."""

    def __init__(self, settings: TrackerSettings) -> None:
        self._capacity = settings.remembered_blocks
        self._turns = settings.regret_turns
        self._minimum_tokens = settings.regret_minimum_tokens
        self.by_digest: dict[str, RemovedBlock] = {}

    def watch(
        self, blocks: Iterable[Block], calls: Mapping[str, Block], *, turn: int, cause: Cause, cause_event_id: str
    ) -> None:
        """Watch for the return of removed *blocks*; *calls* are the tool calls in the window by id."""
        for block in blocks:
            if block.tokens >= self._minimum_tokens and block.content_type not in DERIVED_TYPES:
                call = calls.get(block.tool_call_id) if block.tool_call_id is not None else None
                self.remember(RemovedBlock.of(block, call, turn=turn, cause=cause, cause_event_id=cause_event_id))

    def remember(self, removed: RemovedBlock) -> None:
        """Watch for the return of a block; it replaces an earlier one of the same digest."""
        for digest in removed.digests:
            self.by_digest.pop(digest, None)
            self.by_digest[digest] = removed
        while len(self.by_digest) > self._capacity:
            self.by_digest.pop(next(iter(self.by_digest)))

    def take(self, digest: str, turn: int) -> RemovedBlock | None:
        """Return the block that *digest* fetches again, once; None for none within the regret window."""
        removed = self.by_digest.get(digest)
        if removed is None:
            return None
        for other in removed.digests:
            if self.by_digest.get(other) is removed:
                del self.by_digest[other]
        return removed if turn - removed.turn <= self._turns else None
