"""Eviction policies: the scorers of blocks, named weights of them, and the groups a policy may drop whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from windowpane.core.choices import check_choice
from windowpane.core.vocabulary import ContentType
from windowpane.exceptions import ConfigurationError
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


@dataclass(frozen=True, slots=True)
class Policy:
    """The rating of eviction candidates and the limits of what may be evicted.

    Raises `ConfigurationError` for an unknown scorer, a negative weight, or weights that sum to zero.
    """

    name: str
    weights: Mapping[str, float]
    """Weight of each scorer, normalized over the scorers that can rate a block."""
    drops: Literal["repeated", "expired", "any"] = "expired"
    """Whole groups that may be dropped once no tool result remains to be masked: those that are repeated later,
    expired ones as well, or any group that is not protected. The rest stays until it is summarized."""
    masks: bool = True
    """Replace tool results by placeholders first."""
    only: frozenset[ContentType] | None = None
    """Types of content that may be evicted; None for any that is not protected."""
    merges: bool = False
    """Merge similar blocks into one before any is evicted."""

    def __post_init__(self) -> None:
        for name, weight in self.weights.items():
            path = f"eviction.weights.{name}"
            if name not in SCORERS:
                raise ConfigurationError(path, "unknown scorer", expected=f"one of {', '.join(SCORERS)}")
            if not weight >= 0:
                raise ConfigurationError(path, f"{weight}", expected="a number from 0")
        if not sum(self.weights.values()) > 0:
            raise ConfigurationError("eviction.weights", "all weights are 0", expected="at least one above 0")


HYBRID_WEIGHTS: Final[dict[str, float]] = {
    "recency": 0.30,
    "priority": 0.25,
    "type_ttl": 0.20,
    "reference_frequency": 0.15,
    "semantic_duplication": 0.10,
}

POLICIES: Final[dict[str, Policy]] = {
    policy.name: policy
    for policy in (
        Policy("fifo", {"recency": 1.0}, drops="any"),
        Policy("lru", {"idleness": 1.0}, drops="any"),
        Policy("priority", {"priority": 0.5, "reference_frequency": 0.3, "recency": 0.2}, drops="any"),
        Policy("type_based", {"type_ttl": 1.0}),
        Policy("semantic_merge", {"similarity": 0.7, "recency": 0.3}, merges=True),
        Policy("hybrid", HYBRID_WEIGHTS, drops="repeated"),
    )
}
"""The policies that can be chosen by name."""


def policy_named(name: str, *, weights: Mapping[str, float] | None = None) -> Policy:
    """Return the policy called *name*, with other *weights* if given. Raises `ConfigurationError`."""
    policy = POLICIES[check_choice("eviction.policy", name, POLICIES)]
    return policy if weights is None else replace(policy, weights=dict(weights))
