"""Regrowth: the turns from a compaction back to the level it happened at, and what filled the window again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from windowpane.core.vocabulary import REPLY_TYPES, Component
from windowpane.report.block_sizes import WindowBlock, window_blocks
from windowpane.report.calls import calls_after, sent_calls
from windowpane.store.reads.project_reader import EventReader
from windowpane.store.records import BlockRow, TurnRow
from windowpane.text.formats import count, tokens_short
from windowpane.text.labels import COMPONENT_LABELS, is_id

NEAR_LEVEL: Final = 0.9
"""Share of the level at which the last call before the next compaction counts as back at it."""
MAXIMUM_PARTS: Final = 3


@dataclass(frozen=True, slots=True)
class RefilledPart:
    """A part of what was added after a compaction."""

    name: str
    """A component, or a tool with its file or command."""
    tokens: int


@dataclass(frozen=True, slots=True)
class Regrowth:
    """The window after one compaction, up to the level before it or to the next compaction."""

    level_tokens: int
    """Size of the window at the last call before the compaction."""
    start_tokens: int
    """Size at the first call after it."""
    end_tokens: int
    turns: int
    """Calls from the first one after the compaction to the end."""
    is_back: bool
    """The end is at the level."""
    components: tuple[RefilledPart, ...]
    """Growth by component, the largest first."""
    largest: tuple[RefilledPart, ...]
    """The largest content that was added since and is in the window at the end."""

    @property
    def text(self) -> str:
        """The regrowth in one line."""
        level = tokens_short(self.level_tokens)
        after = f"after {count(self.turns, 'turn')}"
        reached = (
            f"back at {level} {after}"
            if self.is_back
            else f"refilled to {tokens_short(self.end_tokens)} of {level} {after}"
        )
        parts = (_listed(self.components), _listed(self.largest))
        return ": ".join([reached, "; most of it ".join(filter(None, parts))] if any(parts) else [reached])


def _listed(parts: Sequence[RefilledPart]) -> str:
    return ", ".join(f"{part.name} {tokens_short(part.tokens)}" for part in parts)


def read_regrowth(
    store: EventReader, session_id: str, turns: Sequence[TurnRow], *, compacted_turn: int, next_turn: int | None
) -> Regrowth | None:
    """Read the regrowth after a compaction in or after *compacted_turn*; None without calls around it.

    *next_turn* is that of the next compaction.
    """
    first_calls = calls_after(turns, [compacted_turn] if next_turn is None else [compacted_turn, next_turn])
    compacted_turn = first_calls[compacted_turn]
    next_turn = None if next_turn is None else first_calls[next_turn]
    calls = sent_calls(turns)
    before = [call for call in calls if call.turn < compacted_turn]
    after = [
        call for call in calls if call.turn >= compacted_turn and (next_turn is None or call.turn < next_turn)
    ]
    if not before or not after:
        return None
    level = before[-1].used_final or 0
    end = next((call for call in after if (call.used_final or 0) >= level), after[-1])
    is_last = next_turn is not None and end is after[-1]
    start, reached = after[0], end.used_final or 0
    window = window_blocks(store.blocks_at(session_id, end.turn), end.components)
    return Regrowth(
        level_tokens=level,
        start_tokens=start.used_final or 0,
        end_tokens=reached,
        turns=after.index(end),
        is_back=reached >= level or (is_last and reached >= NEAR_LEVEL * level),
        components=_components(start.components, end.components),
        largest=_largest([block for block in window if _is_added(block.block, start.turn)]),
    )


def _is_added(block: BlockRow, turn: int) -> bool:
    """Return whether a block was added after the call of *turn*, its reply included."""
    return block.turn_added > turn or (block.turn_added == turn and block.content_type in REPLY_TYPES)


def _components(start: dict[Component, int], end: dict[Component, int]) -> tuple[RefilledPart, ...]:
    grown = {component: tokens - start.get(component, 0) for component, tokens in end.items()}
    largest = sorted(grown.items(), key=lambda item: -item[1])[:MAXIMUM_PARTS]
    return tuple(RefilledPart(COMPONENT_LABELS[name].lower(), tokens) for name, tokens in largest if tokens > 0)


def _largest(added: Sequence[WindowBlock]) -> tuple[RefilledPart, ...]:
    by_name: Counter[str] = Counter()
    for one in added:
        if one.block.content_type == "tool_result":
            target = "" if one.block.target is None or is_id(one.block.target) else one.block.target
            by_name[f"{one.block.tool_name or 'a tool'} {target}".strip()] += one.tokens
    return tuple(RefilledPart(name, tokens) for name, tokens in by_name.most_common(MAXIMUM_PARTS))
