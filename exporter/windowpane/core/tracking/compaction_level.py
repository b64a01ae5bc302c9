"""The level at which a session's agent compacts by itself, on the best evidence so far."""

from __future__ import annotations

from typing import Final, NamedTuple

from windowpane.core.agents import AgentProgram, documented_compaction_tokens
from windowpane.core.limits import WindowLimits
from windowpane.core.vocabulary import CompactionEvidence

CONFIRMED_RANGE: Final = (0.85, 1.15)
"""A compaction within this ratio to the documented level confirms it: the last turn ends above a level, and
content that arrives after it is not in the total."""
REFUTING_CALLS: Final = 2
"""Calls in a row at or above a level after which the agent evidently does not compact there."""


class CompactionLevel(NamedTuple):
    """Used tokens at which the agent compacts by itself, and the evidence for it."""

    tokens: int
    evidence: CompactionEvidence


class CompactionLevels:
    """The evidence of one session: stated by the agent, recorded in this session or earlier ones, documented."""

    def __init__(self, program: AgentProgram) -> None:
        self.program = program
        self._recorded = 0
        """Used tokens before the last automatic compaction; 0 before the first."""
        self._refuted_tokens = 0
        self._calls_above = 0

    def level(self, limits: WindowLimits | None) -> CompactionLevel | None:
        """Return the level on the best evidence that no call refutes; None without any."""
        documented = None
        if limits is not None:
            documented = documented_compaction_tokens(self.program, limits)
        stated, earlier = self.program.compaction_tokens, self.program.earlier.compaction_tokens
        if stated == 0 and not self._recorded:
            return None
        candidates = (
            CompactionLevel(stated or 0, "stated"),
            CompactionLevel(_adjusted(self._recorded, documented), "recorded"),
            CompactionLevel(_adjusted(earlier or 0, documented), "earlier"),
            CompactionLevel(documented or 0, "documented"),
        )
        return next((level for level in candidates if level.tokens > self._refuted_tokens), None)

    def record_call(self, used_tokens: int, level: CompactionLevel | None) -> bool:
        """Record a call; return whether it refutes the present *level*.

        One above it after another does, and one far above the level of another session.
        """
        if level is None or used_tokens < level.tokens:
            self._calls_above = 0
            return False
        is_far = level.evidence == "earlier" and used_tokens > CONFIRMED_RANGE[1] * level.tokens
        self._calls_above = REFUTING_CALLS if is_far else self._calls_above + 1
        if self._calls_above < REFUTING_CALLS:
            return False
        self._refuted_tokens = level.tokens
        self._calls_above = 0
        return True

    def record_compaction(self, used_tokens: int) -> None:
        """Record an automatic compaction of a window of *used_tokens*."""
        self._recorded = used_tokens
        self._refuted_tokens = self._calls_above = 0


def _adjusted(tokens: int, documented: int | None) -> int:
    """Return the documented level where a recorded one confirms it."""
    if not documented or not tokens:
        return tokens
    low, high = CONFIRMED_RANGE
    return documented if low * documented <= tokens <= high * documented else tokens
