"""The captured text of a block in parts that a browser can show, and the texts that contain a word."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import Final, NamedTuple

from windowpane.store.search.content import ContentHits, Occurrence, Snippet, phrase_of, snippet_of, terms_of
from windowpane_dashboard.style.sanitize import escape_markdown

EXCERPT: Final = 3_000
"""Characters of a text that are shown before all of it is requested."""
BEFORE_MATCH: Final = 300
PART: Final = 100_000
"""Characters of a long text that are shown at once."""
_ESCAPE: Final = re.compile(r'\\+(["\\/nrt])')
_UNESCAPED: Final = {'"': '"', "\\": "\\", "/": "/"}
_NOT_OF_JSON: Final = re.compile(r'\\[^"\\/bfnrtu]')


@dataclass(frozen=True, slots=True)
class TextPart:
    """A part of a text."""

    text: str
    start: int
    end: int
    total: int

    @property
    def is_whole(self) -> bool:
        """Return whether the part is the whole text."""
        return self.end - self.start == self.total


def excerpt(text: str, query: str = "") -> TextPart:
    """Return the start of a text, or what surrounds the first match of *query*."""
    start = 0
    if query and len(text) > EXCERPT:
        snippet = snippet_of(text, [*filter(None, [phrase_of(query)]), *terms_of(query)])
        at = text.find(snippet.match) if snippet.match else 0
        start = max(0, min(at - BEFORE_MATCH, len(text) - EXCERPT))
    end = min(len(text), start + EXCERPT)
    return TextPart(text[start:end], start, end, len(text))


def parts(text: str) -> int:
    """Return the number of parts that show the whole text."""
    return max(1, -(-len(text) // PART))


def part_of(text: str, number: int) -> TextPart:
    """Return one part of the whole text, from 1."""
    start = PART * (number - 1)
    end = min(len(text), start + PART)
    return TextPart(text[start:end], start, end, len(text))


class HitRow(NamedTuple):
    """A block that held a text which matches, and the passage that matched."""

    occurrence: Occurrence
    snippet: Snippet


def rows_by_session(result: ContentHits, query: str) -> list[list[HitRow]]:
    """Return the rows of each session, each passage once, most matches of the phrase first."""
    phrase, sessions = phrase_of(query), defaultdict[str, list[HitRow]](list)
    passages: dict[tuple[str, Snippet], HitRow] = {}
    for hit in result.hits:
        for one in hit.occurrences:
            passages.setdefault((one.session_id, hit.snippet), HitRow(one, hit.snippet))
    for (session_id, _), row in passages.items():
        sessions[session_id].append(row)

    def matches(rows: list[HitRow]) -> tuple[int, int]:
        return sum(row.snippet.match.lower() == phrase for row in rows), len(rows)

    return sorted(sessions.values(), key=matches, reverse=True)


def marked(snippet: Snippet) -> str:
    """Return the passage as Markdown in which only the match is marked, and which has no escapes of JSON."""
    if not _NOT_OF_JSON.search("".join(snippet)):
        snippet = Snippet(*(_ESCAPE.sub(lambda one: _UNESCAPED.get(one[1], " "), part) for part in snippet))
    before, match, after = map(escape_markdown, snippet)
    if not match:
        return after
    spaces = (" " if part != part.strip() else "" for part in (f".{snippet.before}", f"{snippet.after}."))
    return f"{before}{next(spaces)}:orange-background[**{match}**]{next(spaces)}{after}"
