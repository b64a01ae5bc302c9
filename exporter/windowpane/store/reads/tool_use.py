"""The content that tools put into windows: tokens, the calls that carried them, and its share of their cost.

A block is carried by each call from its own turn to its removal. Its share of the cost of a call is its tokens
over the input of the call; `price` columns are sums of the cost of one token over the calls so far, in
trillionths of a dollar.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from windowpane.store.database import Database
from windowpane.store.projections.session_drafts import PRICE_SCALE
from windowpane.store.records import ToolUse
from windowpane.store.statements import Conditions

COMPARED_SESSIONS: Final = 200
"""Sessions of a leaderboard, the latest; more would cost more with every session stored."""

CARRIED: Final = """sum(CASE WHEN coalesce(b.calls_out, s.turns) > b.calls_in
        THEN CAST(b.tokens AS DOUBLE PRECISION) * (coalesce(b.calls_out, s.turns) - b.calls_in)
        ELSE 0 END)"""
"""Tokens of the blocks `b` of the sessions `s`, times the calls that sent them."""
PRICE: Final = "sum(b.tokens * CAST(coalesce(b.price_out, s.carried_price) - b.price_in AS DOUBLE PRECISION))"
"""Their share of what those calls cost, in trillionths of a dollar."""
_SUMS: Final = f"""count(*) - count(r.replaced_by),
    sum(CASE WHEN r.replaced_by IS NULL THEN CAST(b.tokens AS DOUBLE PRECISION) ELSE 0 END),
    {CARRIED} AS carried, {PRICE} AS price, count(DISTINCT b.session)"""
_OF_TOOLS: Final = "b.tool IS NOT NULL AND b.content_type NOT IN ('tool_definition', 'memory_injection')"
_FROM: Final = f"""
    r AS (
        SELECT DISTINCT b.session, b.replaced_by FROM s JOIN blocks AS b ON b.session = s.key
        WHERE {_OF_TOOLS} AND b.replaced_by IS NOT NULL
    )
    SELECT b.tool, coalesce(b.target, ''), {_SUMS}
    FROM s JOIN blocks AS b ON b.session = s.key
    LEFT JOIN r ON r.session = b.session AND r.replaced_by = b.block_id
    WHERE {_OF_TOOLS} GROUP BY 1, 2"""  # noqa: S608  # our own parts
"""The blocks of the sessions `s`. Those of `r` replaced others: carried by calls, but never added."""
_OF_SESSION: Final = f"""
    WITH s AS (SELECT key, turns, carried_price FROM sessions WHERE key = ?),
    {_FROM} ORDER BY carried DESC, 1, 2 LIMIT ?"""  # noqa: S608
_OF_ALL: Final = f"""
    WITH s AS (
        SELECT key, turns, carried_price FROM sessions WHERE current = 1 AND same_as = '' AND {{projects}}
        ORDER BY last_at DESC NULLS LAST LIMIT ?
    ),
    {_FROM} ORDER BY price DESC, carried DESC, 1, 2 LIMIT ?"""  # noqa: S608


def of_session(connection: Database, session: int, *, limit: int) -> list[ToolUse]:
    """Return the tools and targets of the session with this row number, those carried most first."""
    return [_row(row) for row in connection.execute(_OF_SESSION, (session, limit))]


def of_sessions(
    connection: Database,
    *,
    projects: Sequence[str] | None,
    since: float | None,
    sessions: Sequence[int] | None,
    limit: int,
) -> list[ToolUse]:
    """Return the tools with their files and commands that cost most in the latest sessions, or in *sessions*."""
    conditions = Conditions()
    conditions.among("key", sessions)
    if since is not None:
        conditions.add("last_at >= ?", since)
    conditions.among("project", projects)
    statement = _OF_ALL.format(projects=conditions.clause)
    return [_row(row) for row in connection.execute(statement, (*conditions.values, COMPARED_SESSIONS, limit))]


def _row(row: tuple[str, str, int, float, float, float, int]) -> ToolUse:
    tool, target, blocks, tokens, carried, price, sessions = row
    return ToolUse(
        tool, target, blocks, int(tokens), int(carried), price / PRICE_SCALE if price > 0 else None, sessions
    )
