"""Budgets by component: shares of the window, checked before content is added."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from windowpane.core.limits import PROFILES
from windowpane.core.vocabulary import COMPONENTS, Component
from windowpane.exceptions import ConfigurationError

SOFT_RATIO: Final = 0.80
TOLERANCE: Final = 1e-9

OVERFLOW_ACTION: Final[dict[Component, str]] = {
    "system_prompt": "trim at design time",
    "tool_definitions": "load tools on demand",
    "message_history": "compact",
    "tool_results": "summarise the oldest, then evict",
    "memory_injection": "raise the relevance threshold, evict stale ones",
}
"""Recommended action by component that exceeds its budget."""


@dataclass(frozen=True, slots=True)
class Ruling:
    """The answer of the budget to an addition."""

    outcome: Literal["allowed", "warned", "blocked"]
    component: Component
    used_tokens: int
    """Before the addition, reservations included."""
    budget_tokens: int | None
    """None for a component without a budget."""
    action: str = ""

    @property
    def remaining_tokens(self) -> int | None:
        """Tokens that may still be added; None without a budget."""
        return None if self.budget_tokens is None else max(0, self.budget_tokens - self.used_tokens)


class ComponentBudgets:
    """Shares of one window. Used tokens are read from the window, so they fall when content is removed.

    Raises `ConfigurationError` for an unknown component, a negative share, or shares that sum to more than 1.
    """

    def __init__(
        self, shares: Mapping[Component, float], limit_tokens: int, *, soft_ratio: float = SOFT_RATIO
    ) -> None:
        for component, share in shares.items():
            if component not in COMPONENTS:
                raise ConfigurationError(
                    f"budget.{component}",
                    "there is no such component",
                    expected=f"one of {', '.join(COMPONENTS)}",
                )
            if not 0 <= share <= 1:
                raise ConfigurationError(f"budget.{component}", f"{share} is not a share", expected="0 to 1")
        total = sum(shares.values())
        if total > 1 + TOLERANCE:
            raise ConfigurationError("budget", f"the shares sum to {total:g}", expected="at most 1")
        self._budgets = {component: int(share * limit_tokens) for component, share in shares.items()}
        self._soft_ratio = soft_ratio
        self.reserved: dict[Component, int] = {}
        """Tokens reserved for content that is about to be added."""

    def budget_tokens(self, component: Component) -> int | None:
        """Return the hard limit of a component; None without one."""
        return self._budgets.get(component)

    def check(self, component: Component, tokens: int, used: Mapping[Component, int]) -> Ruling:
        """Return whether *tokens* more fit: warned above the soft limit, blocked above the budget."""
        budget = self._budgets.get(component)
        held = used.get(component, 0) + self.reserved.get(component, 0)
        if budget is None:
            return Ruling("allowed", component, held, None)
        if held + tokens > budget:
            return Ruling("blocked", component, held, budget, OVERFLOW_ACTION.get(component, "evict"))
        outcome: Literal["allowed", "warned"] = (
            "warned" if held + tokens > self._soft_ratio * budget else "allowed"
        )
        return Ruling(outcome, component, held, budget)

    def reserve(self, component: Component, tokens: int, used: Mapping[Component, int]) -> Ruling:
        """Reserve *tokens* for content that is about to be added, unless the addition is blocked."""
        ruling = self.check(component, tokens, used)
        if ruling.outcome != "blocked":
            self.hold(component, tokens)
        return ruling

    def hold(self, component: Component, tokens: int) -> None:
        """Reserve *tokens* even above the budget."""
        self.reserved[component] = self.reserved.get(component, 0) + max(0, tokens)

    def commit(self, component: Component, tokens: int) -> None:
        """End a reservation: the content was added, or will not be."""
        self.reserved[component] = max(0, self.reserved.get(component, 0) - max(0, tokens))

    def state(self, component: Component, used_tokens: int) -> Literal["normal", "soft", "hard"] | None:
        """Return the limit of its budget that a component has reached; None without a budget."""
        budget = self._budgets.get(component)
        if not budget:
            return None
        if used_tokens >= budget:
            return "hard"
        return "soft" if used_tokens >= self._soft_ratio * budget else "normal"


def check_claim(component: str, tokens: int) -> None:
    """Raise `ConfigurationError` for an unknown component or a negative number of tokens."""
    if component not in COMPONENTS or tokens < 0:
        raise ConfigurationError(
            f"budget.{component}", f"{tokens} tokens", expected=f"0 or more of {', '.join(COMPONENTS)}"
        )


def shares_of(budget: Mapping[Component, float] | str) -> dict[Component, float]:
    """Return the shares of a profile by name, or as given. Raises `ConfigurationError` for an unknown name."""
    if not isinstance(budget, str):
        return dict(budget)
    if budget not in PROFILES:
        raise ConfigurationError("budget.profile", f"{budget!r} is not a profile", expected=", ".join(PROFILES))
    return dict(PROFILES[budget])
