"""Documented behavior of known agents: how fast their windows grow, and the level at which they compact.

The growth is fitted to recorded sessions; bursts count as three times it at most. The levels are those of the
agents' own sources and release notes, checked against recorded compactions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from windowpane.core.limits import WindowLimits
from windowpane.core.protocols import ModelCatalog, ModelInfo
from windowpane.core.vocabulary import LimitSource

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
    CODEX: 1_600.0,
    CODEX_AGENT: 1_600.0,
}
"""Typical tokens per turn."""

CLAUDE_CODE_BUFFER_TOKENS: Final = 13_000
CLAUDE_CODE_RESERVE_TOKENS: Final = 20_000
CLAUDE_CODE_EARLIER_RESERVE_TOKENS: Final = 32_000
"""Output reserve before release 2.1.21, which compacted earlier."""
CLAUDE_CODE_LATER_RESERVE: Final = (2, 1, 21)
_RETAINS_LAST_REPLY: Final = (2, 1, 217)
"""The first release of Claude Code in recordings that keeps its last reply verbatim, as all later ones do."""
CLAUDE_CODE_SMALLEST_WINDOW: Final = 100_000

CLAUDE_CODE_SMALL_WINDOW: Final = 200_000
"""The smaller window of a Claude model that is sold with two. Hosts, plans and settings can enforce it; neither
the calls nor their replies name the size."""
CLAUDE_CODE_LARGE_WINDOW: Final = 1_000_000
CLAUDE_CODE_LARGE_SUFFIX: Final = "[1m]"
"""Suffix by which Claude Code marks a model that it runs with the larger window."""
_SMALL: Final = frozenset({"claude-sonnet-4-6"})
"""Models of two windows that Claude Code runs with the smaller one, unless their name ends in `[1m]`."""
_LARGE_BETWEEN: Final[Mapping[str, tuple[tuple[int, ...], tuple[int, ...] | None]]] = {
    "claude-opus-4-6": ((2, 1, 75), (2, 1, 260)),
    "claude-opus-4-7": ((2, 1, 117), None),
}
"""The first release of Claude Code that runs a model with the larger window, and the first that no longer does.

For Opus 4.6 the plan decides in between, and transcripts do not name the variant; later ones do."""
_AT_THE_LIMIT: Final = ((2, 1, 219), (2, 1, 260))
"""Releases of Claude Code that filled a window of a million tokens before they compacted."""
_WHEN_REFUSED: Final = (2, 1, 332)
"""First release that was seen to compact some models only after the provider refused a call as too large."""
_REFUSED: Final = ("claude-haiku-4-5", "claude-sonnet-4-5", "claude-opus-4-5")
"""Starts of their names, and of those that are refused in the larger window, which only the suffix chooses."""
_REFUSED_WHEN_LARGE: Final = ("claude-opus-4-6", "claude-sonnet-4-6")

CODEX_STATED_SHARE: Final = 0.95
"""Share of the window that Codex states as its size."""
CODEX_WINDOW: Final = 258_400
"""Size that Codex states for the models of OpenAI that are sold with more."""
CODEX_COMPACTION_SHARE: Final = 0.90
"""Share of the whole window at which Codex compacts."""


class EvidentWindow(NamedTuple):
    """A window whose size a session showed, or with which a stored session started."""

    tokens: int
    source: LimitSource = "earlier"
    version: str = ""
    """Release of the agent that ran in it."""


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
    window: EvidentWindow | None = None
    """The window of the last session in the same folder that showed its size."""


NO_EARLIER_SESSIONS: Final = EarlierSessions()


class SessionEvidence(NamedTuple):
    """The evidence of one session for later sessions of its agent with the same model in the project."""

    session_id: str
    agent: str
    model: str
    project: str
    last_at: float | None
    first_call_at: float | None
    base_tokens: int | None
    """Tokens of the first call that are not recorded; None without a call whose input was reported."""
    compaction_tokens: int | None
    """The level at which the agent compacted; None if it did not."""
    folder: str = ""
    window: EvidentWindow | None = None
    """The window, if the session showed its size."""

    def is_of(self, agent: str, model: str, project: str) -> bool:
        """Return whether it is evidence for sessions of this agent and model in the project."""
        return (self.agent, self.model, self.project) == (agent, model, project)


@dataclass(frozen=True, slots=True)
class AgentProgram:
    """The program of an agent, as far as it is known when its session starts."""

    name: str
    version: str = ""
    """Its release; empty where it is unknown."""
    compaction_tokens: int | None = None
    """The level at which it compacts, by its settings or its statement; 0 if it never does so by itself."""
    earlier: EarlierSessions = NO_EARLIER_SESSIONS
    model: str = ""
    """The model that it calls."""


def documented_growth(agent: str) -> float | None:
    """Return the typical tokens per turn of a known agent."""
    return _GROWTH.get(agent)


def window_of(
    catalog: ModelCatalog, model: str, agent: str = "", version: str = ""
) -> tuple[int, LimitSource] | None:
    """Return the window in which a release of *agent* runs a model, by the catalog, and the source of its size.

    The size of an unknown model is that of its family, and is assumed; None where that is unknown too.
    """
    info = catalog.lookup(model)
    tokens = catalog.family_limit(model) if info is None else info.limit_tokens
    if tokens is None:
        return None
    if agent in (CODEX, CODEX_AGENT) and tokens > CODEX_WINDOW:
        return CODEX_WINDOW, "assumed"
    if info is None:
        return tokens, "assumed"
    return _assumed_limit(info, agent, version) or tokens, info.limit_source


def _assumed_limit(info: ModelInfo, agent: str, version: str) -> int | None:
    if info.smaller_tokens is None or agent not in (CLAUDE_CODE, CLAUDE_CODE_AGENT):
        return info.limit_tokens
    if info.name in _SMALL:
        return info.smaller_tokens
    if info.name in _LARGE_BETWEEN:
        first, end = _LARGE_BETWEEN[info.name]
        is_large = end is None
        if version:
            is_large = first <= _release(version) and (end is None or _release(version) < end)
        return info.limit_tokens if is_large else info.smaller_tokens
    return info.limit_tokens


def documented_compaction_tokens(program: AgentProgram, limits: WindowLimits) -> int | None:
    """Return the used tokens at which a known agent compacts by itself in a window of this size."""
    limit = limits.limit_tokens
    if program.name in (CLAUDE_CODE, CLAUDE_CODE_AGENT) and limit >= CLAUDE_CODE_SMALLEST_WINDOW:
        if _fills_window(program, limit):
            return limit
        earlier = bool(program.version) and _release(program.version) < CLAUDE_CODE_LATER_RESERVE
        reserve = CLAUDE_CODE_EARLIER_RESERVE_TOKENS if earlier else CLAUDE_CODE_RESERVE_TOKENS
        return limit - reserve - CLAUDE_CODE_BUFFER_TOKENS
    if program.name in (CODEX, CODEX_AGENT):
        is_stated = limits.source == "provider" or limit == CODEX_WINDOW
        whole = limit / CODEX_STATED_SHARE if is_stated else limit
        return round(CODEX_COMPACTION_SHARE * whole)
    return None


def retains_last_reply(agent: str, version: str) -> bool:
    """Return whether this release of an agent keeps its last reply verbatim when it compacts."""
    return agent == CLAUDE_CODE and _release(version) >= _RETAINS_LAST_REPLY


def _fills_window(program: AgentProgram, limit: int) -> bool:
    """Return whether this release of Claude Code fills the window of its model before it compacts."""
    is_large = limit >= CLAUDE_CODE_LARGE_WINDOW
    if not program.version:
        return False
    release, (first, end) = _release(program.version), _AT_THE_LIMIT
    refused = (*_REFUSED, *_REFUSED_WHEN_LARGE) if is_large else _REFUSED
    return (is_large and first <= release < end) or (
        release >= _WHEN_REFUSED and program.model.startswith(refused)
    )


def _release(version: str) -> tuple[int, ...]:
    """Return a dotted release as numbers; parts that are not numbers end it."""
    parts = []
    for part in version.split("."):
        if not part.isdecimal():
            break
        parts.append(int(part))
    return tuple(parts)
