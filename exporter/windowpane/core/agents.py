"""Documented behavior of known agents: how fast their windows grow, and the level at which they compact.

The growth is fitted to recorded sessions; bursts count as three times it at most. The levels are those of the
agents' own sources and release notes, checked against recorded compactions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from windowpane.core.limits import WindowLimits

CLAUDE_CODE: Final = "claude-code"
CLAUDE_CODE_AGENT: Final = "claude-code-agent"
"""A sub-agent of Claude Code; likewise of Codex."""
STATED_BY_PROXY: Final = "proxy:"
"""Start of the id of a session of the proxy; the rest is the id that the agent's own recording has."""
CODEX: Final = "codex"
CODEX_AGENT: Final = "codex-agent"

_GROWTH: Final = {
    CLAUDE_CODE: 1_000.0,
    CLAUDE_CODE_AGENT: 1_000.0,
    CODEX: 3_000.0,
    CODEX_AGENT: 3_000.0,
}
"""Typical tokens per turn."""

CLAUDE_CODE_BUFFER_TOKENS: Final = 13_000
CLAUDE_CODE_RESERVE_TOKENS: Final = 20_000
CLAUDE_CODE_EARLIER_RESERVE_TOKENS: Final = 32_000
"""Output reserve before release 2.1.21, which compacted earlier."""
CLAUDE_CODE_LATER_RESERVE: Final = (2, 1, 21)
CLAUDE_CODE_SMALLEST_WINDOW: Final = 100_000

CODEX_STATED_SHARE: Final = 0.95
"""Share of the window that Codex states as its size."""
CODEX_COMPACTION_SHARE: Final = 0.90
"""Share of the whole window at which Codex compacts."""


class EarlierSessions(NamedTuple):
    """Evidence from earlier sessions of an agent with the same model; None without a record."""

    compaction_tokens: int | None = None
    """The level at which the agent compacted."""
    base_tokens: int | None = None
    """Tokens of the first call that are not recorded, such as the system prompt and the tools."""
    is_stored: bool = False
    """True if the session itself is stored: it keeps what it started with."""
    stated_tokens: int | None = None
    """The level that the agent's settings stated when a stored session was first read."""


NO_EARLIER_SESSIONS: Final = EarlierSessions()


@dataclass(frozen=True, slots=True)
class AgentProgram:
    """The program of an agent, as far as it is known when its session starts."""

    name: str
    version: str = ""
    """Its release; empty where it is unknown."""
    compaction_tokens: int | None = None
    """The level at which it compacts, by its settings or its statement; 0 if it never does so by itself."""
    earlier: EarlierSessions = NO_EARLIER_SESSIONS


def documented_growth(agent: str) -> float | None:
    """Return the typical tokens per turn of a known agent."""
    return _GROWTH.get(agent)


def documented_compaction_tokens(program: AgentProgram, limits: WindowLimits) -> int | None:
    """Return the used tokens at which a known agent compacts by itself in a window of this size."""
    limit = limits.limit_tokens
    if program.name in (CLAUDE_CODE, CLAUDE_CODE_AGENT) and limit >= CLAUDE_CODE_SMALLEST_WINDOW:
        earlier = bool(program.version) and _release(program.version) < CLAUDE_CODE_LATER_RESERVE
        reserve = CLAUDE_CODE_EARLIER_RESERVE_TOKENS if earlier else CLAUDE_CODE_RESERVE_TOKENS
        return limit - reserve - CLAUDE_CODE_BUFFER_TOKENS
    if program.name in (CODEX, CODEX_AGENT):
        whole = limit / CODEX_STATED_SHARE if limits.source == "provider" else limit
        return round(CODEX_COMPACTION_SHARE * whole)
    return None


def _release(version: str) -> tuple[int, ...]:
    """Return a dotted release as numbers; parts that are not numbers end it."""
    parts = []
    for part in version.split("."):
        if not part.isdecimal():
            break
        parts.append(int(part))
    return tuple(parts)
