"""The captured text of a block in parts that a browser can show, and the texts that contain a word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pandas as pd

from windowpane.core.characters import plain
from windowpane.store.search.content import ContentHits, Occurrence, Snippet, snippet_of, terms_of
from windowpane.text.labels import CONTENT_LABELS
from windowpane_dashboard.queries.events import moments

EXCERPT: Final = 3_000
"""Characters of a text that are shown before all of it is requested."""
BEFORE_MATCH: Final = 300
LED_BY: Final = 16
"""Characters before the match in a row of hits."""
PART: Final = 100_000
"""Characters of a long text that are shown at once."""


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
        snippet = snippet_of(text, terms_of(query))
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


@dataclass(frozen=True, slots=True)
class HitRow:
    """A block that held a text which matches."""

    occurrence: Occurrence
    line: str


def hit_rows(result: ContentHits) -> list[HitRow]:
    """Return one row per block that held a matching text, the latest text first."""
    return [HitRow(one, _line(hit.snippet)) for hit in result.hits for one in hit.occurrences]


def _line(snippet: Snippet) -> str:
    """Return the snippet with its match near the start, so that a narrow column shows it."""
    before = snippet.before if len(snippet.before) <= LED_BY else f"…{snippet.before[-LED_BY:]}"
    return snippet._replace(before=before).line


def hits_frame(rows: Sequence[HitRow], titles: dict[str, str]) -> pd.DataFrame:
    """Return the rows as a table; *titles* are the names of the sessions."""
    blocks = [row.occurrence for row in rows]
    return pd.DataFrame(
        {
            "text": [plain(row.line) for row in rows],
            "turn": pd.array([block.turn for block in blocks], dtype="int64"),
            "session": [plain(titles.get(block.session_id) or block.session_id) for block in blocks],
            "what": [plain(occurrence_name(block)) for block in blocks],
            "tokens": pd.array([block.tokens for block in blocks], dtype="int64"),
            "time": moments(pd.Series([block.at for block in blocks], dtype="float64")),
        }
    )


def occurrence_name(block: Occurrence) -> str:
    """Return the type of a block and its tool: `tool result of read`."""
    label = CONTENT_LABELS[block.content_type]
    return f"{label} of {block.tool_name}" if block.tool_name else label
