"""Money of a day: what budgets have spent, in one sentence each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from windowpane.text.formats import dollars, percent

if TYPE_CHECKING:
    from windowpane.config.schema import CostBudget
    from windowpane.store.records import Spending


def spent_dollars(budget: CostBudget, costs: Sequence[Spending]) -> float:
    """Return the part of *costs*, those of a day, that counts for a budget."""
    return sum(
        cost.dollars
        for cost in costs
        if budget.agent in ("", cost.agent) and budget.project in ("", cost.project)
    )


def budget_text(budget: CostBudget, costs: Sequence[Spending]) -> str:
    """Return the state of a budget: `claude-code in web $8.20 of $10.00 today (82%)`."""
    spent = spent_dollars(budget, costs)
    return (
        f"{budget.scope} {dollars(spent)} of {dollars(budget.dollars)} today ({percent(spent / budget.dollars)})"
    )
