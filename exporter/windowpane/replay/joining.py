"""Recorded sessions joined end to end: a long conversation where no single recording is long enough."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from windowpane.core.vocabulary import STANDING_TYPES
from windowpane.replay.recordings import Recording, RecordingSource, model_of
from windowpane.sources.records import ContentAdded, ModelCalled, Record, SessionOpened


@dataclass(frozen=True, slots=True)
class JoinedSource:
    """Several sessions as one, in order; its name should say that it is joined."""

    name: str
    parts: tuple[RecordingSource, ...]

    def load(self) -> Recording:
        """The first session's system prompt and tools stand for all; call ids are kept apart."""
        records: list[Record] = []
        for number, part in enumerate(self.parts):
            records += _continued(part.load(), number, self.name)
        return Recording(self.name, self.name, records, model_of(records))


def _continued(recording: Recording, number: int, key: str) -> Iterator[Record]:
    for record in recording.records:
        if isinstance(record, SessionOpened):
            if number == 0:
                yield SessionOpened(key, record.agent, record.model)
        elif isinstance(record, ContentAdded):
            if number and record.content_type in STANDING_TYPES:
                continue
            call_id = record.tool_call_id
            yield replace(record, tool_call_id=None if call_id is None else f"{number}-{call_id}", at=None)
        elif isinstance(record, ModelCalled):
            yield replace(record, at=None)
