"""Budgets by component: how much of the window each may take, asked before content is added."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from windowpane.core.limits import DEFAULT_BUDGET
from windowpane.core.vocabulary import COMPONENTS, Component
from windowpane.exceptions import ConfigurationError

SOFT_RATIO: Final = 0.80
TOLERANCE: Final = 1e-9

PROFILES: Final[dict[str, dict[Component, float]]] = {
    "default": dict(DEFAULT_BUDGET),
    "code_review": {
        "system_prompt": 0.06,
        "tool_definitions": 0.05,
        "message_history": 0.60,
        "tool_results": 0.18,
        "memory_injection": 0.06,
    },
    "research": {
        "system_prompt": 0.05,
        "tool_definitions": 0.05,
        "message_history": 0.55,
        "tool_results": 0.15,
        "memory_injection": 0.15,
    },
    "customer_support": {
        "system_prompt": 0.08,
        "tool_definitions": 0.03,
        "message_history": 0.70,
        "tool_results": 0.08,
        "memory_injection": 0.06,
    },
}
"""Shares by kind of task, output's 5% aside. Only the default leaves another 5% as the safety margin: the others
rely on being warned at the soft limit."""

OVERFLOW_ACTION: Final[dict[Component, str]] = {
    "system_prompt": "trim at design time",
    "tool_definitions": "load tools on demand",
    "message_history": "compact",
    "tool_results": "summarise the oldest, then evict",
    "memory_injection": "raise the relevance threshold, evict stale ones",
}
"""What a component over its budget calls for."""


@dataclass(frozen=True, slots=True)
class Ruling:
    """What the budget says to an addition."""

    outcome: Literal["allowed", "warned", "blocked"]
    component: Component
    used_tokens: int
    """Before the addition, reservations included."""
    budget_tokens: int | None
    """None for a component without a budget."""
    action: str = ""

    @property
    def remaining_tokens(self) -> int | None:
        """What may still be added; None without a budget."""
        return None if self.budget_tokens is None else max(0, self.budget_tokens - self.used_tokens)


class Budget:
    """Shares of one window. What is in use is read from the window, so it falls when content leaves.

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
                raise ConfigurationError(f"budget.{component}", f"{share} is no share", expected="0 to 1")
        total = sum(shares.values())
        if total > 1 + TOLERANCE:
            raise ConfigurationError("budget", f"the shares sum to {total:g}", expected="at most 1")
        self._budgets = {component: int(share * limit_tokens) for component, share in shares.items()}
        self._soft_ratio = soft_ratio
        self.reserved: dict[Component, int] = {}
        """Tokens set aside for content that is on its way."""

    def budget_tokens(self, component: Component) -> int | None:
        """Hard limit of a component; None where it has none."""
        return self._budgets.get(component)

    def ask(self, component: Component, tokens: int, used: Mapping[Component, int]) -> Ruling:
        """Whether *tokens* more fit: warned above the soft limit, blocked above the budget. Changes nothing."""
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
        """Set *tokens* aside for content that is on its way; nothing is set aside when it is blocked."""
        ruling = self.ask(component, tokens, used)
        if ruling.outcome != "blocked":
            self.hold(component, tokens)
        return ruling

    def hold(self, component: Component, tokens: int) -> None:
        """Set *tokens* aside, whatever the budget says."""
        self.reserved[component] = self.reserved.get(component, 0) + max(0, tokens)

    def commit(self, component: Component, tokens: int) -> None:
        """The reserved content came, or will not: its reservation ends."""
        self.reserved[component] = max(0, self.reserved.get(component, 0) - max(0, tokens))

    def state(self, component: Component, used_tokens: int) -> Literal["normal", "soft", "hard"] | None:
        """Which limit of its budget a component has reached; None without one."""
        budget = self._budgets.get(component)
        if not budget:
            return None
        if used_tokens >= budget:
            return "hard"
        return "soft" if used_tokens >= self._soft_ratio * budget else "normal"


def check_claim(component: str, tokens: int) -> None:
    """Raises `ConfigurationError` where no component is named, or a number that is none of tokens."""
    if component not in COMPONENTS or tokens < 0:
        raise ConfigurationError(
            f"budget.{component}", f"{tokens} tokens", expected=f"0 or more of {', '.join(COMPONENTS)}"
        )


def shares_of(budget: Mapping[Component, float] | str) -> dict[Component, float]:
    """The shares of a profile by name, or as given. Raises `ConfigurationError` for a name that is none."""
    if not isinstance(budget, str):
        return dict(budget)
    if budget not in PROFILES:
        raise ConfigurationError("budget.profile", f"{budget!r} is no profile", expected=", ".join(PROFILES))
    return dict(PROFILES[budget])
