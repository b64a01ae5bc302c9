"""Regret: content that is fetched again after it was removed.

Only what a call reads can be fetched again. An edit returns a confirmation, and a command that builds, tests or
reports a state returns the state of its time. A file that was changed after its content was removed is read for
another reason, and an agent's program adds some content by itself after each compaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal, NamedTuple

from windowpane.core.events import ContentRegretted
from windowpane.core.limits import REGRET_MINIMUM_TOKENS, REGRET_TURNS, TrackerSettings
from windowpane.core.vocabulary import DERIVED_TYPES, REPLY_TYPES, ContentType
from windowpane.core.window.blocks import Block

Cause = Literal["eviction", "compression"]

RESTATED_TYPES: Final[frozenset[ContentType]] = frozenset({"memory_injection"})
"""Content that an agent's program adds by itself after each compaction."""


def changed_target(call: Block) -> str | None:
    """Return the file or command that a tool *call* changes, so that it is read again for another reason."""
    return call.target if "changes" in call.marks else None


def can_be_fetched(block: Block) -> bool:
    """Return whether *block* is content that may be fetched again."""
    if block.content_type in DERIVED_TYPES or block.content_type in REPLY_TYPES:
        return False
    return "reads" in block.marks if block.content_type == "tool_result" else "wrapped" not in block.marks


class RemovedBlock(NamedTuple):
    """A block that was removed, and the event that removed it."""

    block_id: str
    content_type: ContentType
    tool_name: str | None
    target: str | None
    """File or command that it was read from."""
    tokens: int
    turn: int
    cause: Cause
    cause_event_id: str
    digests: tuple[str, ...]
    """The block's digest and, for a tool result, the digest of the call that fetched it."""
    removal: int
    """Number of the removal, from 1."""

    def regretted(self, match: Literal["same_call", "same_digest"], *, by: str) -> ContentRegretted:
        """Return the event that block *by* fetched it again."""
        return ContentRegretted(
            self.cause, match, self.block_id, by, self.tokens, self.turn, self.cause_event_id,
            self.content_type, self.tool_name, self.target,
        )  # fmt: skip


class RemovedBlocks:
    """A bounded memory of removed blocks by digest; the oldest are discarded first."""

    def __init__(self, settings: TrackerSettings) -> None:
        self._capacity = settings.remembered_blocks
        self._removals = 0
        self._changed: dict[str, int] = {}
        """By the target of calls that changed it, the number of removals before the latest change."""
        self.by_digest: dict[str, RemovedBlock] = {}

    def watch(
        self,
        blocks: Iterable[Block],
        calls: Mapping[str, Block],
        *,
        turn: int,
        cause: Cause,
        cause_event_id: str,
        except_types: frozenset[ContentType] = frozenset(),
    ) -> None:
        """Watch for the return of removed *blocks*; *calls* are the tool calls in the window by id."""
        self._removals += 1
        for block in blocks:
            if block.tokens < REGRET_MINIMUM_TOKENS or block.content_type in except_types:
                continue
            if not can_be_fetched(block):
                continue
            call = calls.get(block.tool_call_id) if block.tool_call_id is not None else None
            digests = [block.digest] if block.digest else []
            if block.content_type == "tool_result" and call is not None and call.digest:
                digests.append(call.digest)
            self._remember(
                RemovedBlock(
                    block.id, block.content_type, block.tool_name, block.target, block.tokens,
                    turn, cause, cause_event_id, tuple(digests), self._removals,
                )
            )  # fmt: skip

    def record_call(self, call: Block) -> None:
        """Record a tool call: what it changes has to be read again for another reason."""
        target = changed_target(call)
        if target is not None:
            self._changed.pop(target, None)
            self._changed[target] = self._removals
            if len(self._changed) > self._capacity:
                del self._changed[next(iter(self._changed))]

    def take(self, digest: str, turn: int) -> RemovedBlock | None:
        """Return the block that *digest* fetches again, once; None for none within the regret window."""
        removed = self.by_digest.get(digest)
        if removed is None:
            return None
        for other in removed.digests:
            if self.by_digest.get(other) is removed:
                del self.by_digest[other]
        is_changed = removed.target is not None and self._changed.get(removed.target, 0) >= removed.removal
        return None if is_changed or turn - removed.turn > REGRET_TURNS else removed

    def _remember(self, removed: RemovedBlock) -> None:
        """Watch for the return of a block; it replaces an earlier one of the same digest."""
        for digest in removed.digests:
            self.by_digest.pop(digest, None)
            self.by_digest[digest] = removed
        while len(self.by_digest) > self._capacity:
            self.by_digest.pop(next(iter(self.by_digest)))
