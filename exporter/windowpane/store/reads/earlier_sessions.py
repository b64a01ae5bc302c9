"""The evidence of earlier sessions: the level of compaction, the window, the tokens that no recording states."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import median_low
from typing import Any, Final

import msgspec

from windowpane.core.agents import EvidentWindow, SessionEvidence
from windowpane.core.vocabulary import EVIDENT_SOURCES
from windowpane.store.database import Database
from windowpane.store.statements import placeholders

COMPARED_SESSIONS: Final = 7
"""Sessions of the same agent and model whose first calls are compared."""
LAST_MOMENT: Final = 1e12
"""A time after all others."""
_components_decoder: Final = msgspec.json.Decoder(dict[str, int])
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


def last_compaction_tokens(
    connection: Database,
    agent: str,
    model: str,
    project: str,
    *,
    before: float = LAST_MOMENT,
    pending: Sequence[SessionEvidence] = (),
) -> int | None:
    """Return the level of the agent's last session with a recorded compaction, of those over at *before*.

    *pending* sessions count as if they were stored.
    """
    query = (agent, model, project, before, 1 + len(pending))
    stored = connection.execute(_LAST_COMPACTION, query).fetchall()

    def level(one: SessionEvidence) -> int | None:
        return one.compaction_tokens if (one.last_at or 0) <= before else None

    latest = _latest(stored, pending, level, 1, of=(agent, model, project))
    return int(latest[0]) if latest else None


def last_window(
    connection: Database,
    agent: str,
    model: str,
    project: str,
    folder: str,
    *,
    before: float = LAST_MOMENT,
    pending: Sequence[SessionEvidence] = (),
) -> EvidentWindow | None:
    """Return the window of the agent's last session in *folder* that showed its size, of those over at *before*.

    *pending* sessions count as if they were stored.
    """
    query = (agent, model, project, folder, *_EVIDENT, before, 1 + len(pending))
    rows = connection.execute(_LAST_WINDOW, query).fetchall()
    stored = [
        (session_id, at, EvidentWindow(tokens, version=version)) for session_id, at, tokens, version in rows
    ]

    def window(one: SessionEvidence) -> EvidentWindow | None:
        return one.window if one.folder == folder and (one.last_at or 0) <= before else None

    return next(iter(_latest(stored, pending, window, 1, of=(agent, model, project))), None)


def base_tokens(
    connection: Database,
    agent: str,
    model: str,
    project: str,
    *,
    before: float = LAST_MOMENT,
    pending: Sequence[SessionEvidence] = (),
) -> int | None:
    """Return the median of the unrecorded tokens in the first calls of the agent's last sessions at *before*.

    *pending* sessions count as if they were stored.
    """
    query = (agent, model, project, before, COMPARED_SESSIONS + len(pending))
    rows = connection.execute(_FIRST_CALLS, query).fetchall()
    stored = [(*row, _components_decoder.decode(components).get("unattributed", 0)) for *row, components in rows]

    def tokens(one: SessionEvidence) -> int | None:
        return one.base_tokens if (one.first_call_at or 0) <= before else None

    unrecorded = _latest(stored, pending, tokens, COMPARED_SESSIONS, of=(agent, model, project))
    return median_low(unrecorded) if unrecorded else None


def _latest(
    stored: Sequence[Any],
    pending: Sequence[SessionEvidence],
    value_of: Callable[[SessionEvidence], Any],
    number: int,
    *,
    of: tuple[str, str, str],
) -> list[Any]:
    """Return the values of the latest sessions: of *stored* ones, each with id and last time, and *pending* ones.

    A pending session replaces the stored one. It has a value where it is *of* an agent, model and project.
    """
    replaced = {one.session_id for one in pending}
    rows = [(at, value) for session_id, at, value in stored if session_id not in replaced]
    rows += [(one.last_at, value) for one in pending if one.is_of(*of) and (value := value_of(one)) is not None]
    rows.sort(key=lambda row: -math.inf if row[0] is None else row[0], reverse=True)
    return [value for _, value in rows[:number]]
