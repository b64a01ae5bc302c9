"""Costs by name: of MCP servers, tools with their definitions, skills and memory files."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final, Literal

from windowpane.core.names import mcp_server_of
from windowpane.core.tracking.targets import SKILL_TOOL
from windowpane.store.records import NamedContent

NameKind = Literal["mcp_server", "tool", "skill", "memory_file"]
"""The kinds of names that content is summed by."""
NAME_KINDS: Final[dict[NameKind, str]] = {
    "mcp_server": "MCP server", "tool": "tool", "skill": "skill", "memory_file": "memory file",
}  # fmt: skip
"""Their names in tables."""


@dataclass(frozen=True, slots=True)
class NamedCost:
    """The share of one MCP server, tool, skill or memory file in model calls."""

    name: str
    calls: int
    """Calls of the tool, of all tools of the server, or of the skill; those of a memory file are 0."""
    definition_tokens: int | None
    """Tokens of its definitions in one model call: the mean of sessions that record them; None without any."""
    offered: int
    """Tools whose definition is recorded."""
    unused: int
    """Those of them that no session called."""
    carried_tokens: int
    """Tokens of definitions, calls, results and injected content, times the model calls that sent them."""
    dollars: float | None
    """Their share, by tokens, of what these model calls cost; None if no cost is known."""
    sessions: int
    repositories: dict[str, float]
    """Dollars in each repository of these sessions, the most expensive first."""

    @property
    def dollars_per_call(self) -> float | None:
        """All of the cost over the calls of the tool; None without calls or without a known cost."""
        return self.dollars / self.calls if self.calls and self.dollars is not None else None


def costs_by_name(
    content: Iterable[NamedContent], kind: NameKind, *, server: str | None = None
) -> list[NamedCost]:
    """Return the names of *kind*, the most expensive first; *server* selects the tools of one MCP server."""
    by_name: defaultdict[str, list[NamedContent]] = defaultdict(list)
    for part in content:
        name = _name(part, kind)
        if name and (server is None or mcp_server_of(part.tool) == server):
            by_name[name].append(part)
    costs = [_cost(name, parts) for name, parts in by_name.items()]
    return sorted(costs, key=lambda cost: (-(cost.dollars or 0.0), -cost.carried_tokens, cost.name))


def servers_of(content: Iterable[NamedContent]) -> list[str]:
    """Return the MCP servers whose tools are in *content*, by name."""
    return sorted({server for part in content if (server := mcp_server_of(part.tool))})


def _name(part: NamedContent, kind: NameKind) -> str | None:
    if kind == "mcp_server":
        return mcp_server_of(part.tool)
    if kind == "tool":
        return part.tool if part.content_type != "memory_injection" else None
    if kind == "skill":
        return part.target if part.tool == SKILL_TOOL else None
    return part.target if not part.tool else None


def _cost(name: str, parts: Sequence[NamedContent]) -> NamedCost:
    paid = [part.dollars for part in parts if part.dollars is not None]
    called = {part.tool for part in parts if part.content_type == "tool_call"}
    sizes: defaultdict[str, list[float]] = defaultdict(list)
    by_repository: defaultdict[str, list[float]] = defaultdict(list)
    for part in parts:
        by_repository[part.repository].append(part.dollars or 0.0)
        if part.content_type == "tool_definition":
            sizes[part.tool].append(part.tokens / part.blocks)
    repositories = {name: math.fsum(dollars) for name, dollars in by_repository.items() if name}
    return NamedCost(
        name=name,
        calls=sum(part.blocks for part in parts if part.content_type == "tool_call"),
        definition_tokens=round(math.fsum(map(fmean, sizes.values()))) if sizes else None,
        offered=len(sizes),
        unused=len(sizes.keys() - called),
        carried_tokens=sum(part.carried_tokens for part in parts),
        dollars=math.fsum(paid) if paid else None,
        sessions=len({part.session for part in parts}),
        repositories=dict(sorted(repositories.items(), key=lambda one: one[1], reverse=True)),
    )
