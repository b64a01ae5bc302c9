"""The evidence of earlier sessions: the level of compaction, the window, the tokens that no recording states."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median_low
from typing import Any, Final

from windowpane.core.agents import EvidentWindow, SessionEvidence
from windowpane.core.decoders import json_decoder
from windowpane.core.vocabulary import EVIDENT_SOURCES
from windowpane.store.database import Database
from windowpane.store.statements import placeholders

COMPARED_SESSIONS: Final = 7
"""Sessions of the same agent and model whose first calls are compared."""
LAST_MOMENT: Final = 1e12
"""A time after all others."""
_components_decoder: Final = json_decoder(dict[str, int])
_LAST_COMPACTION: Final = (
    "SELECT session_id, last_at, compaction_tokens FROM sessions WHERE compaction_evidence = 'recorded' "
    "AND current = 1 AND agent = ? AND model = ? AND project = ? AND same_as = '' AND coalesce(last_at, 0) <= ? "
    "ORDER BY last_at DESC NULLS LAST LIMIT ?"
)
_EVIDENT: Final = tuple(sorted(EVIDENT_SOURCES))
_LAST_WINDOW: Final = (
    "SELECT session_id, last_at, limit_tokens, agent_version FROM sessions WHERE current = 1 AND agent = ? "  # noqa: S608
    f"AND model = ? AND project = ? AND folder = ? AND limit_source IN ({placeholders(_EVIDENT)}) "
    "AND same_as = '' AND coalesce(last_at, 0) <= ? ORDER BY last_at DESC NULLS LAST LIMIT ?"
)
_FIRST_CALLS: Final = (
    "SELECT sessions.session_id, sessions.last_at, turns.components FROM sessions "
    "JOIN turns ON turns.session = sessions.key AND turns.turn = 1 "
    "WHERE sessions.current = 1 AND sessions.same_as = '' "
    "AND sessions.agent = ? AND sessions.model = ? AND sessions.project = ? "
    "AND turns.input_tokens IS NOT NULL AND coalesce(turns.at, 0) <= ? "
    "ORDER BY sessions.last_at DESC NULLS LAST LIMIT ?"
)


@dataclass(frozen=True, slots=True)
class AgentHistory:
    """The sessions of an agent with a model in a project that were over at *before*."""

    connection: Database
    agent: str
    model: str
    project: str
    before: float = LAST_MOMENT
    pending: Sequence[SessionEvidence] = ()
    """Sessions that count as if they were stored."""

    def compaction_tokens(self) -> int | None:
        """Return the level of the last session with a recorded compaction."""
        latest = self._latest(
            self._rows(_LAST_COMPACTION),
            lambda one: one.compaction_tokens if self._is_over(one.last_at) else None,
        )
        return int(latest[0]) if latest else None

    def window(self, folder: str) -> EvidentWindow | None:
        """Return the window of the last session in *folder* that showed its size."""
        stored = [
            (session_id, at, EvidentWindow(tokens, version=version))
            for session_id, at, tokens, version in self._rows(_LAST_WINDOW, folder, *_EVIDENT)
        ]
        latest = self._latest(
            stored, lambda one: one.window if one.folder == folder and self._is_over(one.last_at) else None
        )
        return latest[0] if latest else None

    def base_tokens(self) -> int | None:
        """Return the median of the unrecorded tokens in the first calls of the last sessions."""
        stored = [
            (session_id, at, _components_decoder.decode(components).get("unattributed", 0))
            for session_id, at, components in self._rows(_FIRST_CALLS, number=COMPARED_SESSIONS)
        ]
        unrecorded = self._latest(
            stored, lambda one: one.base_tokens if self._is_over(one.first_call_at) else None, COMPARED_SESSIONS
        )
        return median_low(unrecorded) if unrecorded else None

    def _rows(self, query: str, *parameters: str, number: int = 1) -> Sequence[Any]:
        """Return the latest *number* of rows, and one more for each that a pending session may replace."""
        of = (self.agent, self.model, self.project)
        values = (*of, *parameters, self.before, number + len(self.pending))
        return self.connection.execute(query, values).fetchall()

    def _is_over(self, at: float | None) -> bool:
        return (at or 0) <= self.before

    def _latest(
        self, stored: Sequence[Any], value_of: Callable[[SessionEvidence], Any], number: int = 1
    ) -> list[Any]:
        """Return the values of the latest of the *stored* sessions, each with id and last time, and pending ones.

        A pending session replaces the stored one.
        """
        replaced = {one.session_id for one in self.pending}
        rows = [(at, value) for session_id, at, value in stored if session_id not in replaced]
        rows += [
            (one.last_at, value)
            for one in self.pending
            if one.is_of(self.agent, self.model, self.project) and (value := value_of(one)) is not None
        ]
        rows.sort(key=lambda row: -math.inf if row[0] is None else row[0], reverse=True)
        return [value for _, value in rows[:number]]
