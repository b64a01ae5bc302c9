"""Eviction policies: named weights over the scorers, and what a policy may drop whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from windowpane.core.vocabulary import ContentType
from windowpane.exceptions import ConfigurationError
from windowpane.manager.plans.duplication import duplication, similarity_to_later
from windowpane.manager.plans.lifetime import lifetime
from windowpane.manager.plans.priority import priority
from windowpane.manager.plans.recency import idleness, recency
from windowpane.manager.plans.references import references
from windowpane.manager.plans.terms import Term

TERMS: Final[dict[str, Term]] = {
    "recency": recency,
    "idleness": idleness,
    "priority": priority,
    "lifetime": lifetime,
    "references": references,
    "duplication": duplication,
    "similarity": similarity_to_later,
}
"""Every scorer by name; register one here to use it in a policy."""


@dataclass(frozen=True, slots=True)
class Policy:
    """How candidates are rated and what may go.

    Raises `ConfigurationError` for a term that does not exist, a negative weight, or weights that sum to zero.
    """

    name: str
    weights: Mapping[str, float]
    """Weight of each term; normalised over the terms that can rate a block."""
    drops: Literal["expired", "any"] = "expired"
    """Whole groups it may drop once nothing is left to mask: only those past their lifetime or standing again
    later, or any that is not protected. What is not dropped is left to compaction."""
    masks: bool = field(default=True)
    """Whether it replaces tool results by placeholders first."""
    only: frozenset[ContentType] | None = None
    """Content it may take out; None for any that is not protected."""
    merges: bool = False
    """Whether blocks that are alike are merged into one before any is evicted."""

    def __post_init__(self) -> None:
        for term, weight in self.weights.items():
            path = f"eviction.weights.{term}"
            if term not in TERMS:
                raise ConfigurationError(path, "there is no such term", expected=f"one of {', '.join(TERMS)}")
            if not weight >= 0:
                raise ConfigurationError(path, f"{weight} is no weight", expected="a number from 0")
        if not sum(self.weights.values()) > 0:
            raise ConfigurationError("eviction.weights", "all weights are 0", expected="at least one above 0")


HYBRID_WEIGHTS: Final[dict[str, float]] = {
    "recency": 0.30,
    "priority": 0.25,
    "lifetime": 0.20,
    "references": 0.15,
    "duplication": 0.10,
}

POLICIES: Final[dict[str, Policy]] = {
    policy.name: policy
    for policy in (
        Policy("fifo", {"recency": 1.0}, drops="any"),
        Policy("lru", {"idleness": 1.0}, drops="any"),
        Policy("priority", {"priority": 0.5, "references": 0.3, "recency": 0.2}, drops="any"),
        Policy("type_based", {"lifetime": 1.0}),
        Policy("semantic_merge", {"similarity": 0.7, "recency": 0.3}, merges=True),
        Policy("hybrid", HYBRID_WEIGHTS),
    )
}
"""The policies that can be named at run time."""


def policy_named(name: str, *, weights: Mapping[str, float] | None = None) -> Policy:
    """The policy called *name*, with other *weights* where given. Raises `ConfigurationError`."""
    policy = POLICIES.get(name)
    if policy is None:
        raise ConfigurationError(
            "eviction.policy", f"{name!r} is no policy", expected=f"one of {', '.join(POLICIES)}"
        )
    return policy if weights is None else replace(policy, weights=dict(weights))
