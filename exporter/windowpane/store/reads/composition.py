"""The content of sessions by name: of tools, their definitions, skills and memory files.

Prices and the calls that carried a block are as in `store.reads.tool_use`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from windowpane.core.names import repository_name
from windowpane.core.tracking.targets import SKILL_TOOL
from windowpane.store.database import Database
from windowpane.store.projections.session_drafts import PRICE_SCALE
from windowpane.store.reads.fleet import LISTED
from windowpane.store.reads.tool_use import CARRIED, PRICE
from windowpane.store.records import Composition, NamedContent
from windowpane.store.statements import Conditions, in_lists, placeholders

MAXIMUM_SESSIONS: Final = 5_000
"""Sessions of a range whose repositories are listed, the latest."""
READ_SESSIONS: Final = 1_000
"""Sessions whose content is read, the latest."""
_SESSIONS_PER_STATEMENT: Final = 200

_SESSIONS: Final = """
    SELECT key, repository, folder FROM sessions WHERE current = 1 AND same_as = '' AND {conditions}
    ORDER BY last_at DESC NULLS LAST LIMIT ?"""
_CONTENT: Final = f"""
    SELECT b.session, b.content_type, coalesce(b.tool, ''),
        CASE WHEN b.tool IS NULL OR b.tool = '{SKILL_TOOL}' THEN coalesce(b.target, '') ELSE '' END,
        count(*), sum(CAST(b.tokens AS DOUBLE PRECISION)), {CARRIED}, {PRICE}
    FROM sessions AS s JOIN blocks AS b ON b.session = s.key
    WHERE s.key IN ({{keys}}) AND (b.tool IS NOT NULL OR b.target IS NOT NULL)
    GROUP BY 1, 2, 3, 4"""  # noqa: S608  # our own parts


class _Session(NamedTuple):
    key: int
    repository: str


def of_session(connection: Database, session: int) -> Composition:
    """Return the composition of the session with this row number."""
    return _composition(connection, [_Session(session, "")], [session], ())


def of_range(
    connection: Database, *, since: float | None, repository: str | None, projects: Sequence[str] | None
) -> Composition:
    """Return the composition of the latest 1,000 sessions since *since*, of one *repository*."""
    conditions = Conditions([LISTED])
    if since is not None:
        conditions.add("last_at >= ?", since)
    conditions.among("project", projects)
    statement = _SESSIONS.format(conditions=conditions.clause)
    rows = connection.execute(statement, (*conditions.values, MAXIMUM_SESSIONS))
    sessions = [_Session(key, repository_name(stated, folder)) for key, stated, folder in rows]
    listed = tuple(sorted({session.repository for session in sessions if session.repository}))
    if repository is not None:
        sessions = [session for session in sessions if session.repository == repository]
    return _composition(connection, sessions[:READ_SESSIONS], [session.key for session in sessions], listed)


def _composition(
    connection: Database, sessions: Sequence[_Session], in_range: Sequence[int], repositories: tuple[str, ...]
) -> Composition:
    content = tuple(_content(connection, {session.key: session.repository for session in sessions}))
    return Composition(content, len(sessions), len(in_range), repositories, tuple(in_range))


def _content(connection: Database, repositories: dict[int, str]) -> Iterator[NamedContent]:
    for keys in in_lists(list(repositories), _SESSIONS_PER_STATEMENT):
        for row in connection.execute(_CONTENT.format(keys=placeholders(keys)), tuple(keys)):
            session, content_type, tool, target, blocks, tokens, carried, price = row
            yield NamedContent(
                session, repositories[session], content_type, tool, target, blocks, int(tokens), int(carried),
                price / PRICE_SCALE if price > 0 else None,
            )  # fmt: skip
