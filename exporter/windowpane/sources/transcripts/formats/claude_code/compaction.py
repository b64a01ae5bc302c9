"""Claude Code's compactions.

A `compact_boundary` row opens a compaction, and a user row with `isCompactSummary` holds its summary; older
releases write the summary alone. The row may name the rows that it kept, each or only the first and the last.
The input of the next call states the tokens after the compaction; the row's `postTokens` is the size of
the summary alone. A `microcompact_boundary` row only clears old tool results.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any, Final

from windowpane.sources.transcripts.json_lines import count, duration_seconds, mapping, sequence, text, texts
from windowpane.sources.transcripts.records import Compacted, ContentAdded, ContentRemoved

MAXIMUM_KEYS: Final = 128
"""Rows back that a compaction may keep where it names only the first and the last of them."""


@dataclass(slots=True)
class Compaction:
    """A compaction whose summary and outcome are still to come."""

    at: float | None
    trigger: str = "unknown"
    tokens_before: int | None = None
    duration_seconds: float | None = None
    kept_keys: tuple[str, ...] = ()
    first_kept: str = ""
    last_kept: str = ""
    summary: str | None = None
    deferred: list[ContentAdded] = field(default_factory=list)
    """Content that came in after it."""

    @classmethod
    def from_row(cls, row: dict[str, Any], at: float | None) -> Compaction:
        """Return the compaction of a `compact_boundary` row, from its `compactMetadata`."""
        details = mapping(row.get("compactMetadata"))
        preserved = mapping(details.get("preservedMessages"))
        segment = mapping(details.get("preservedSegment"))
        return cls(
            at,
            trigger=text(details.get("trigger"))[:32] or "unknown",
            tokens_before=count(details.get("preTokens")) or None,
            duration_seconds=duration_seconds(details.get("durationMs")),
            kept_keys=texts(preserved.get("allUuids")) or texts(preserved.get("uuids")),
            first_kept=text(segment.get("headUuid")),
            last_kept=text(segment.get("tailUuid")),
        )

    def record(self, keys: RecentKeys, *, next_input_tokens: int | None) -> Compacted:
        """Return the compaction as one record.

        Where no user message came in since, the next call's input is what the compaction left.
        """
        continued = any(content.content_type == "user_message" for content in self.deferred)
        return Compacted(
            self.trigger,
            self.tokens_before,
            None if continued else next_input_tokens,
            self.summary,
            self.kept_keys or keys.between(self.first_kept, self.last_kept),
            duration_seconds=self.duration_seconds,
            at=self.at,
        )


class RecentKeys:
    """The keys of a session's latest content, in order."""

    def __init__(self) -> None:
        self._keys: deque[str] = deque(maxlen=MAXIMUM_KEYS)

    def add(self, key: str) -> None:
        """Add the key of the latest content."""
        self._keys.append(key)

    def between(self, first: str, last: str) -> tuple[str, ...]:
        """Return the keys from *first* to *last*, both included; empty where *first* is not among them."""
        keys = list(self._keys)
        if not first or first not in keys:
            return ()
        start = keys.index(first)
        end = len(keys) - 1 - keys[::-1].index(last) if last in keys else len(keys) - 1
        return tuple(dict.fromkeys(keys[start : end + 1]))


def cleared_results(row: dict[str, Any], at: float | None) -> ContentRemoved:
    """Return the tool results that a `microcompact_boundary` row cleared; its keys may be empty."""
    details = mapping(row.get("microcompactMetadata"))
    freed = count(details.get("tokensSaved")) or None
    return ContentRemoved(texts(details.get("compactedToolIds")), "microcompact", tokens_freed=freed, at=at)


def replaced_results(row: dict[str, Any]) -> dict[str, str]:
    """Return what is sent in place of large tool results, by the id of their call.

    The rows of the results hold their whole text, which the model was never sent.
    """
    stated = map(mapping, sequence(row.get("replacements")))
    return {text(one.get("toolUseId")): text(one.get("replacement")) for one in stated if one.get("toolUseId")}
