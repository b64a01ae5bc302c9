"""Causes of a session's cost: parts that do not overlap and add up to it.

A cache break takes what it added to the price of its call. Of the rest, replies take the share of the output at
published prices, and what the window held takes the remainder, each component its share of the call's tokens.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from windowpane.core.events import CacheBroken
from windowpane.core.vocabulary import Component
from windowpane.models.catalog import packaged_catalog
from windowpane.report.calls import PriceOf, usage_of
from windowpane.report.findings import Finding, FindingKind
from windowpane.store.records import TurnRow
from windowpane.text.formats import dollars

CARRIED: Final[dict[Component, str]] = {
    "tool_results": "sending tool results",
    "message_history": "sending the conversation",
    "tool_definitions": "sending tool definitions",
    "system_prompt": "sending the system prompt",
    "memory_injection": "sending memory and skills",
    "unattributed": "sending content not in the recording",
}
REPLIES, BREAKS, OTHER = "writing replies", "cache breaks", "calls outside of the turns"
UNSPLIT: Final = "calls without a published price"
ADVICE: Final[dict[str, str]] = {
    CARRIED["unattributed"]: (
        "usually the agent's system prompt and tool definitions, sent with each call and not recorded. "
        "Fewer MCP servers may lower it."
    ),
    CARRIED["tool_results"]: (
        "each is sent again with every later call until it is removed. Reading large files in part lowers it."
    ),
    CARRIED["message_history"]: "it is sent again with every call. A new session for a new task lowers it.",
}
"""Advice on large causes, where no finding has more."""
LISTED_TURNS: Final = 3
SMALLEST_DOLLARS: Final = 0.00005
NAMED_SHARE: Final = 0.15
"""Causes with a smaller share are the rest of a sentence."""
_FOUND: Final[dict[str, tuple[FindingKind, ...]]] = {
    BREAKS: ("cache_breaks",),
    CARRIED["tool_results"]: ("stale", "tool_flood", "duplicates"),
    CARRIED["tool_definitions"]: ("unused_tools",),
}
"""Findings about each cause; the first of them that there is counts."""


@dataclass(frozen=True, slots=True)
class CostCause:
    """One part of the cost."""

    name: str
    dollars: float
    share: float
    """Of the session's cost, 0 to 1."""
    turns: tuple[int, ...]
    """The turns in which it cost most, the most expensive first; none for calls outside of the turns."""
    finding: Finding | None = None
    """A finding about it, with advice that lowers it."""

    @property
    def advice(self) -> str:
        """The finding with its advice, else what is known of any large cause like it."""
        if self.finding is not None:
            return f"{self.finding.text}. {self.finding.advice}"
        return ADVICE.get(self.name, "") if self.share >= NAMED_SHARE else ""


def cost_causes(
    turns: Sequence[TurnRow],
    breaks: Iterable[tuple[int, CacheBroken]],
    *,
    total: float | None,
    findings: Iterable[Finding] = (),
    price_of: PriceOf | None = None,
) -> tuple[CostCause, ...]:
    """Return the causes of *total* dollars, most expensive first; none without a cost.

    *breaks* are the cache breaks with their turns.
    """
    price_of = price_of or packaged_catalog().cost_dollars
    broken: Counter[int] = Counter()
    for turn, data in breaks:
        broken[turn] += data.dollars or 0.0  # type: ignore[assignment]  # dollars
    parts: defaultdict[str, dict[int, float]] = defaultdict(dict)
    for row in turns:
        for name, part in _parts(row, broken[row.turn], price_of):
            parts[name][row.turn] = parts[name].get(row.turn, 0.0) + part
    costs = {name: math.fsum(by_turn.values()) for name, by_turn in parts.items()}
    other = (total or 0.0) - math.fsum(costs.values())
    if other > SMALLEST_DOLLARS:
        costs[OTHER] = other
    whole = math.fsum(costs.values())
    by_kind = {finding.kind: finding for finding in findings}
    return tuple(
        CostCause(
            name,
            cost,
            cost / whole,
            tuple(sorted(parts[name], key=lambda turn: -parts[name][turn])[:LISTED_TURNS]),
            next((by_kind[kind] for kind in _FOUND.get(name, ()) if kind in by_kind), None),
        )
        for name, cost in sorted(costs.items(), key=lambda item: -item[1])
        if cost >= SMALLEST_DOLLARS
    )


def causes_sentence(causes: Sequence[CostCause], *, estimated: bool = False) -> str:
    """Return the cost with its large causes: `$17.28: $11.90 sending tool results, …, $0.50 the rest.`"""
    if not causes:
        return ""
    cost = math.fsum(cause.dollars for cause in causes)
    large = [cause for cause in causes if cause.share >= NAMED_SHARE]
    parts = [f"{dollars(cause.dollars)} {cause.name}" for cause in large]
    rest = cost - math.fsum(cause.dollars for cause in large)
    if rest >= SMALLEST_DOLLARS:
        parts.append(f"{dollars(rest)} {'the rest' if large else 'in small parts'}")
    return f"{dollars(cost, estimated=estimated)}: {', '.join(parts)}."


def _parts(row: TurnRow, broken: float, price_of: PriceOf) -> Iterable[tuple[str, float]]:
    """Return the parts of one call's cost."""
    if not row.cost_dollars:
        return []
    extra = min(broken, row.cost_dollars)
    share = _reply_share(row, price_of)
    remaining = row.cost_dollars - extra
    parts = [(BREAKS, extra)] if extra else []
    if share is None:
        return [*parts, (UNSPLIT, remaining)]
    replies = min(remaining, share * row.cost_dollars)
    held = {component: count for component, count in row.components.items() if count > 0}
    tokens = sum(held.values())
    carried = remaining - replies
    if not tokens:
        held, tokens = {"unattributed": 1}, 1
    return [
        *parts,
        (REPLIES, replies),
        *((CARRIED[component], carried * count / tokens) for component, count in held.items()),
    ]


def _reply_share(row: TurnRow, price_of: PriceOf) -> float | None:
    """Return the share of the output in the price of a call; None where its model has no published price."""
    usage = usage_of(row)
    whole = price_of(row.model, usage, row.at)
    if not whole:
        return None
    input_price = price_of(row.model, replace(usage, output_tokens=0), row.at)
    return None if input_price is None else max(0.0, 1.0 - input_price / whole)
