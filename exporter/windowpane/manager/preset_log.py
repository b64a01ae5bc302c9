"""What a preset tells in its source's own words: event and log names and fields, beside our events.

Nothing is derived from these records; they are for readers who know the source's logs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

MAXIMUM_RECORDS: Final = 1_000
"""Held back at most until a driver hands them out; later ones are dropped."""


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """One event or log line as the source of a preset writes it."""

    name: str
    """The event's name, or the log line's prefix."""
    fields: Mapping[str, object]
    text: str
    """The line as a person reads it."""


class Journal:
    """The records of one session that have not been handed out yet."""

    def __init__(self) -> None:
        self._records: list[SourceRecord] = []

    def __bool__(self) -> bool:
        """Whether any wait."""
        return bool(self._records)

    def note(self, name: str, text: str, **fields: object) -> None:
        """Add a record, unless too many wait already."""
        if len(self._records) < MAXIMUM_RECORDS:
            self._records.append(SourceRecord(name, fields, text))

    def take(self) -> list[SourceRecord]:
        """The records since the last call."""
        records, self._records = self._records, []
        return records
