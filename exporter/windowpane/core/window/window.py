"""The context window: ordered blocks with running totals, every edit in constant time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from msgspec.structs import replace

from windowpane.core.vocabulary import COMPONENT_OF, COMPONENTS, Component, ContentType
from windowpane.core.window.blocks import Block
from windowpane.exceptions import WindowError


class Slot(msgspec.Struct, gc=False):  # made for every block on the agent's thread, and never part of a cycle
    """A block's position in the window, its references and its staleness."""

    block: Block
    position: int
    """Order in the window; a replacement takes the position of the replaced block."""
    expires: int | None
    """Turn after which it is stale unless referenced; None if it never expires."""
    referenced_turn: int | None = None
    references: int = 0
    stale: bool = False
    duplicate: bool = False
    """True if an earlier block has the same digest."""


class Window:
    """The blocks that the model can see, with totals by component, duplicates and staleness.

    Totals are updated with every edit and never recomputed, so the cost of an edit does not depend on the number
    of blocks. Not thread-safe.
    """

    def __init__(self, lifetimes: dict[ContentType, int]) -> None:
        self._lifetimes = lifetimes
        self._slots: dict[str, Slot] = {}
        self._groups: dict[str, list[str]] = {}
        """Groups of more than one block; a single block is its own group and needs no entry."""
        self._by_digest: dict[str, str | dict[str, None]] = {}
        """The only block of a digest, or all of its blocks in order; most digests occur once."""
        self._expiring: dict[int, list[str]] = {}
        self.next_position = 0
        """Position behind the last block: that of the next one added."""
        self._ordered = True
        self.blocks = 0
        """Number of blocks."""
        self.tokens = 0
        """Sum of the blocks' tokens."""
        self.tokens_by_component: dict[Component, int] = dict.fromkeys(COMPONENTS, 0)
        self.duplicate_tokens = 0
        self.stale_tokens = 0
        """Stale and not duplicate."""
        self.version = 0
        """Increases with every edit; a plan for another version is out of date."""

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, block_id: object) -> bool:
        return block_id in self._slots

    def __iter__(self) -> Iterator[Block]:
        """Iterate over the blocks in the order the model sees them."""
        return (slot.block for slot in self.slots())

    def slots(self) -> Iterable[Slot]:
        """Return the slots in the order the model sees them; sorts once after a replacement."""
        if not self._ordered:
            self._slots = dict(sorted(self._slots.items(), key=lambda item: item[1].position))
            self._ordered = True
        return self._slots.values()

    def tokens_between(self, start: int, end: int) -> int:
        """Return the tokens of the blocks from position *start* up to before *end*; reads every block."""
        return sum(slot.block.tokens for slot in self._slots.values() if start <= slot.position < end)

    def slot(self, block_id: str) -> Slot:
        """Return the slot of a block. Raises `WindowError` if it is not in the window."""
        try:
            return self._slots[block_id]
        except KeyError:
            raise WindowError(f"block {block_id} is not in the window") from None

    def group(self, group_id: str) -> tuple[str, ...]:
        """Return the ids of the blocks of a group in the order of first addition; empty for an unknown group."""
        if group_id in self._groups:
            return tuple(self._groups[group_id])
        single = self._slots.get(group_id)
        return (group_id,) if single is not None and single.block.group == group_id else ()

    def add(self, block: Block, position: int | None = None) -> None:
        """Add a block, by default behind the last. Raises `WindowError` for an id that is in the window."""
        block_id, tokens, group, digest = block.id, block.tokens, block.group, block.digest
        slots, content_type = self._slots, block.content_type
        if block_id in slots:
            raise WindowError(f"block {block_id} is already in the window")
        if position is None:
            position = self.next_position
            self.next_position = position + 1
        lifetime = None if block.pinned else self._lifetimes.get(content_type)
        expires = None if lifetime is None else block.turn + lifetime
        slots[block_id] = slot = Slot(block, position, expires)
        if group != block_id:
            self._join_group(group, block_id)
        self.blocks += 1
        self.tokens += tokens
        self.tokens_by_component[COMPONENT_OF[content_type]] += tokens
        if expires is not None:
            try:
                self._expiring[expires].append(block_id)
            except KeyError:  # the first of its turn
                self._expiring[expires] = [block_id]
        if digest and self._by_digest.setdefault(digest, block_id) is not block_id:
            self._note_duplicate(slot)
        self.version += 1

    def discard_text(self, block_id: str) -> Block:
        """Discard the text of a block, whose digest and size remain. Raises `WindowError`; returns the block."""
        slot = self.slot(block_id)
        slot.block = replace(slot.block, text=None)
        return slot.block

    def replace(self, removed: Iterable[str], results: Iterable[Block]) -> list[Block]:
        """Replace *removed* by *results* at the position of the first; return the removed blocks.

        Ids that are not in the window are skipped, because a recording may remove blocks that it never showed. If
        none is in the window, the results are appended. Raises `WindowError`, without any change, for a result
        whose id is already in the window.
        """
        slots = {block_id: self._slots[block_id] for block_id in removed if block_id in self._slots}
        results = tuple(results)
        ids = [block.id for block in results]
        for index, block_id in enumerate(ids):
            if (block_id in self._slots and block_id not in slots) or block_id in ids[:index]:
                raise WindowError(f"block {block_id} is already in the window")
        position = self._make_room(slots.values(), len(results))
        for slot in slots.values():
            self._remove(slot)
        for offset, block in enumerate(results):
            self.add(block, position + offset)
        self._ordered = self._ordered and not results
        return [slot.block for slot in slots.values()]

    def _make_room(self, removed: Iterable[Slot], count: int) -> int:
        """Return the position of the first of *count* results; the slots behind them move to make room."""
        position = min((slot.position for slot in removed), default=None)
        if position is None:
            position, self.next_position = self.next_position, self.next_position + count
        elif count > 1:
            for slot in self._slots.values():
                if slot.position > position:
                    slot.position += count - 1
            self.next_position += count - 1
        return position

    def mark_referenced(self, block_id: str, turn: int) -> bool:
        """Renew the lifetime of a block that *turn* used; return False if it is not in the window."""
        slot = self._slots.get(block_id)
        if slot is None:
            return False
        slot.referenced_turn = turn
        slot.references += 1
        lifetime = self._lifetimes.get(slot.block.content_type)
        if lifetime is not None and not slot.block.pinned:
            slot.expires = turn + lifetime
            if slot.stale:
                slot.stale = False
                if not slot.duplicate:
                    self.stale_tokens -= slot.block.tokens
                self._expiring.setdefault(slot.expires, []).append(block_id)
        return True

    def enter_turn(self, turn: int) -> None:
        """Mark the blocks stale whose lifetime ended before *turn*; to be called once for every turn."""
        slots, stale_tokens = self._slots, 0
        for block_id in self._expiring.pop(turn - 1, ()):
            slot = slots.get(block_id)
            if slot is None or slot.stale or (expires := slot.expires) is None:
                continue
            if expires >= turn:
                self._expiring.setdefault(expires, []).append(block_id)
                continue
            slot.stale = True
            if not slot.duplicate:
                stale_tokens += slot.block.tokens
        self.stale_tokens += stale_tokens

    def clear(self) -> None:
        """Remove all blocks; positions and version continue."""
        for slot in list(self._slots.values()):
            self._remove(slot)
        self._expiring.clear()

    def _join_group(self, group: str, block_id: str) -> None:
        members = self._groups.get(group)
        if members is not None:
            members.append(block_id)
        else:  # most groups have two: made at once, a list has no room for more
            self._groups[group] = [group, block_id] if group in self._slots else [block_id]

    def _note_duplicate(self, slot: Slot) -> None:
        digest = slot.block.digest
        same = self._by_digest[digest]
        if isinstance(same, str):
            self._by_digest[digest] = same = {same: None}
        same[slot.block.id] = None
        slot.duplicate = True
        self.duplicate_tokens += slot.block.tokens

    def _remove(self, slot: Slot) -> None:
        block = slot.block
        del self._slots[block.id]
        group = self._groups.get(block.group)
        if group is not None:
            group.remove(block.id)
            if not group:
                del self._groups[block.group]
        self.blocks -= 1
        self.tokens -= block.tokens
        self.tokens_by_component[COMPONENT_OF[block.content_type]] -= block.tokens
        if slot.duplicate:
            self.duplicate_tokens -= block.tokens
        elif slot.stale:
            self.stale_tokens -= block.tokens
        self._discard_digest(slot)
        self.version += 1

    def _discard_digest(self, slot: Slot) -> None:
        """If the first of equal blocks is removed, the next one is no longer a duplicate."""
        digest = slot.block.digest
        same = self._by_digest.get(digest)
        if same is None:
            return
        if isinstance(same, str) or len(same) == 1:
            del self._by_digest[digest]
            return
        del same[slot.block.id]
        if not slot.duplicate:
            first = self._slots[next(iter(same))]
            if first.duplicate:
                first.duplicate = False
                self.duplicate_tokens -= first.block.tokens
                if first.stale:
                    self.stale_tokens += first.block.tokens
