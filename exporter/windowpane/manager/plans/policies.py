"""Eviction policies: named weights of the scorers, and the groups a policy may drop whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

from windowpane.core.vocabulary import ContentType
from windowpane.exceptions import ConfigurationError
from windowpane.manager.plans.scorers import SCORERS


@dataclass(frozen=True, slots=True)
class Policy:
    """The rating of eviction candidates and the limits of what may be evicted.

    Raises `ConfigurationError` for an unknown scorer, a negative weight, or weights that sum to zero.
    """

    name: str
    weights: Mapping[str, float]
    """Weight of each scorer, normalized over the scorers that can rate a block."""
    drops: Literal["expired", "any"] = "expired"
    """Whole groups that may be dropped once no tool result remains to be masked: expired or repeated ones, or any
    group that is not protected. The rest stays until compaction."""
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
        Policy("hybrid", HYBRID_WEIGHTS),
    )
}
"""The policies that can be chosen by name."""


def policy_named(name: str, *, weights: Mapping[str, float] | None = None) -> Policy:
    """Return the policy called *name*, with other *weights* if given. Raises `ConfigurationError`."""
    policy = POLICIES.get(name)
    if policy is None:
        expected = f"one of {', '.join(POLICIES)}"
        raise ConfigurationError("eviction.policy", f"{name!r} is unknown", expected=expected)
    return policy if weights is None else replace(policy, weights=dict(weights))
