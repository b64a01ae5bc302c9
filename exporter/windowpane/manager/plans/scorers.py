"""Scorers: each rates every eviction candidate from 0 (evict first) to 1 (keep); a policy weights them.

Recent content, high-priority types, content within its type's lifetime, content that later content referred to,
and content that is not repeated later in the window score high.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from windowpane.core.vocabulary import ContentType
from windowpane.manager.plans.merging import MINIMUM_TOKENS, SIMILARITY, Sketch, similarity, sketch_of
from windowpane.manager.snapshot import Item, Snapshot

Scorer = Callable[[Sequence[Item], Snapshot], Sequence[float | None]]
"""Rates all candidates at once; None for one it cannot rate; the other scorers then share the weight."""

HALF_LIFE_TURNS: Final = 10
SATURATION: Final = 5
"""References from which a block counts as fully referenced."""
COMPARED_LATER: Final = 20
"""Later blocks of the same tool or type that a block is compared with, the nearest ones."""
ERROR_BONUS: Final = 0.2
"""Added for a tool result that reports a failure: it shows what not to try again."""
TYPE_PRIORITY: Final[dict[ContentType, float]] = {
    "system_prompt": 1.0,
    "user_message": 1.0,
    "tool_definition": 0.9,
    "summary": 0.9,
    "memory_injection": 0.7,
    "media": 0.6,
    "assistant_response": 0.5,
    "tool_call": 0.4,
    "tool_result": 0.3,
    "thinking": 0.2,
    "placeholder": 0.1,
}
"""Priority of a type of content, 0 to 1."""


def recency(items: Sequence[Item], snapshot: Snapshot) -> Sequence[float | None]:
    """Return 2^(-age / half-life), age in turns since a block was added; 1 for the current turn."""
    decay = _decay(snapshot.turn)
    return [decay[max(0, snapshot.turn - item.block.turn)] for item in items]


def idleness(items: Sequence[Item], snapshot: Snapshot) -> Sequence[float | None]:
    """Return 2^(-idle / half-life), idle turns since a block was last referred to or added; for LRU."""
    decay = _decay(snapshot.turn)
    return [decay[max(0, snapshot.turn - _last_used(item))] for item in items]


def priority(items: Sequence[Item], snapshot: Snapshot) -> Sequence[float | None]:
    """Return the priority of a block's type; tool results that report a failure get a bonus."""
    failed = {block_id for block_id, finding in snapshot.findings.items() if _is_failure(finding)}
    return [
        TYPE_PRIORITY.get(item.block.content_type, 0.5) + (ERROR_BONUS if item.block.id in failed else 0.0)
        for item in items
    ]


def type_ttl(items: Sequence[Item], snapshot: Snapshot) -> Sequence[float | None]:
    """Return the remaining share of the lifetime of a block's type; 1 for types that never expire."""
    turn, lifetimes = snapshot.turn, snapshot.lifetimes
    scores: list[float | None] = []
    for item in items:
        turns = lifetimes.get(item.block.content_type)
        scores.append(min(1.0, max(0.0, 1.0 - (turn - _last_used(item)) / turns)) if turns else 1.0)
    return scores


def reference_frequency(items: Sequence[Item], snapshot: Snapshot) -> Sequence[float | None]:
    """Return the references to a block out of five; None for all where references are not tracked."""
    if not snapshot.references_known:
        return [None] * len(items)
    return [min(1.0, item.references / SATURATION) for item in items]


def semantic_duplication(items: Sequence[Item], snapshot: Snapshot) -> Sequence[float | None]:
    """Return 0 where the same content is repeated later in the window, else 1; None without a digest."""
    last = {item.block.digest: item.block.id for item in snapshot.items if item.block.digest}
    return [
        (1.0 if last[item.block.digest] == item.block.id else 0.0) if item.block.digest else None
        for item in items
    ]


def similarity_to_later(items: Sequence[Item], snapshot: Snapshot) -> Sequence[float | None]:
    """Return 1 − the greatest similarity to a later block of the same tool or type; None without text.

    Blocks less than 0.85 similar count as different.
    """
    later: dict[tuple[str, str | None], list[Sketch]] = {}
    scores: dict[str, float] = {}
    wanted = {item.block.id for item in items}
    for item in reversed(snapshot.items):
        block = item.block
        if not block.text or block.tokens < MINIMUM_TOKENS:
            continue
        sketch = sketch_of(block.text)
        comparable = later.setdefault((block.content_type, block.tool_name), [])
        if block.id in wanted:
            nearest = max((similarity(sketch, other) for other in comparable[-COMPARED_LATER:]), default=0.0)
            scores[block.id] = 1.0 - nearest if nearest >= SIMILARITY else 1.0
        comparable.append(sketch)
    return [scores.get(item.block.id) for item in items]


SCORERS: Final[dict[str, Scorer]] = {
    "recency": recency,
    "idleness": idleness,
    "priority": priority,
    "type_ttl": type_ttl,
    "reference_frequency": reference_frequency,
    "semantic_duplication": semantic_duplication,
    "similarity": similarity_to_later,
}
"""Every scorer by name; register one here to use it in a policy."""
STORED_TERMS: Final[dict[str, str]] = {
    "type_ttl": "lifetime",
    "reference_frequency": "references",
    "semantic_duplication": "duplication",
}
"""Scorers whose terms have another key in stored events."""


def _decay(turn: int) -> list[float]:
    """Return the score of each age from 0 to *turn*."""
    return [2.0 ** (-age / HALF_LIFE_TURNS) for age in range(turn + 1)]


def _last_used(item: Item) -> int:
    return item.block.turn if item.referenced_turn is None else item.referenced_turn


def _is_failure(finding: str) -> bool:
    lowered = finding.lower()
    return "error" in lowered or "failed" in lowered or "exception" in lowered
