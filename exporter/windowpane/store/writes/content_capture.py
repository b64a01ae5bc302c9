"""Collection of the texts of a batch, which are stored redacted.

Blocks of one type that follow each other in a session are a run: a secret can start in one text and continue in
the next. A batch may end anywhere in a run, so the last text of each session is retained until its next event.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from windowpane.core.events import BlockAdded, Event, FidelityEvaluated, RulesFollowed
from windowpane.core.redaction import join_split_secrets
from windowpane.store import captured_content
from windowpane.store.captured_content import CapturedText, Redactor
from windowpane.store.database import Database
from windowpane.store.search import content as content_search

MAXIMUM_RUNS: Final = 64
"""Sessions whose last text is retained; of more, those without an event for longest are discarded."""
MAXIMUM_RETAINED: Final = 16_000_000
"""Characters of all retained texts."""


class _Run(NamedTuple):
    """The last text of consecutive blocks of one type."""

    content_type: str
    digest: str
    text: str


class ContentCapture:
    """Collects the texts of a batch and stores them redacted."""

    def __init__(self, redact: Redactor) -> None:
        self._redact = redact
        self._texts: dict[str, str] = {}
        self._shortened: set[str] = set()
        """Digests of texts without a part of a secret, which replace those that were stored before."""
        self._runs: dict[str, _Run] = {}
        """By session, the latest last."""
        self._before: dict[str, _Run | None] = {}
        """The runs of the sessions in this batch, as they were before it."""

    def __len__(self) -> int:
        return len(self._texts)

    def empty_copy(self) -> ContentCapture:
        """Return another collector with the same redactor, for texts outside the current batch."""
        return ContentCapture(self._redact)

    def collect(self, events: Iterable[Event]) -> None:
        """Add the texts that events carry in memory only."""
        for event in events:
            self.collect_one(event)

    def collect_one(self, event: Event) -> None:
        """Add the texts that one event carries."""
        session_id, data = event.context.session_id, event.data
        if not isinstance(data, BlockAdded):
            self._set_run(session_id, None)
            if isinstance(data, FidelityEvaluated):
                self.add(CapturedText(fact.digest, fact.text) for fact in data.facts if fact.text and fact.digest)
            elif isinstance(data, RulesFollowed):
                self.add(CapturedText(rule.digest, rule.text) for rule in data.outcomes if rule.text)
            return
        block, run = data.block, self._runs.get(session_id)
        if run is not None and run.content_type != block.content_type:
            self._set_run(session_id, run := None)
        if not block.text or not block.digest:
            return
        text = block.text if run is None else self._continued(run, block.text)
        self._set_run(session_id, _Run(block.content_type, block.digest, text))
        if text == block.text:
            self._texts.setdefault(block.digest, text)
        else:
            self._shorten(block.digest, text)

    def add(self, texts: Iterable[CapturedText]) -> None:
        """Add texts that did not come with an event."""
        for captured in texts:
            self._texts.setdefault(captured.digest, captured.text)

    def absorb(self, other: ContentCapture) -> None:
        """Continue where *other* ends, and store its texts too: those of events before this batch."""
        for digest, text in other._texts.items():
            if digest in other._shortened:
                self._shorten(digest, text)
            else:
                self._texts.setdefault(digest, text)
        for session_id, run in other._runs.items():
            self._set_run(session_id, run)

    def start(self) -> None:
        """Start a batch, to whose start `discard` returns."""
        self._before.clear()

    def discard(self) -> None:
        """Drop what was collected: its batch was not stored."""
        self._clear()
        for session_id, run in self._before.items():
            self._runs.pop(session_id, None)
            if run is not None:
                self._runs[session_id] = run
        self._before.clear()

    def take_redacted(self) -> list[CapturedText]:
        """Remove and return the texts as the store would hold them, for a spool file."""
        texts = [CapturedText(digest, self._redact(text)) for digest, text in self._texts.items()]
        self._clear()
        return texts

    def save(self, connection: Database) -> None:
        """Store the new texts, inside the caller's transaction."""
        new = []
        for digest, text in self._texts.items():
            stored = captured_content.holds(connection, digest)
            if stored and digest not in self._shortened:
                continue
            clean = self._redact(text)
            if stored and captured_content.read(connection, digest) == clean:
                continue
            if stored:
                content_search.delete(connection, digest)
            new.append(CapturedText(digest, clean))
        captured_content.insert(connection, new)
        self._clear()

    # -- internals --------------------------------------------------------------------------------------------

    def _continued(self, run: _Run, text: str) -> str:
        """Return *text* without a secret that starts in the text before it, which loses it as well."""
        first, rest = join_split_secrets((run.text, text))
        if first != run.text:
            self._shorten(run.digest, first)
        return rest

    def _shorten(self, digest: str, text: str) -> None:
        self._texts[digest] = text
        self._shortened.add(digest)

    def _clear(self) -> None:
        self._texts.clear()
        self._shortened.clear()

    def _set_run(self, session_id: str, run: _Run | None) -> None:
        """Retain the last text of a session, or none, within the bounds."""
        before = self._runs.pop(session_id, None)
        if before is not None or run is not None:
            self._before.setdefault(session_id, before)
        if run is None:
            return
        self._runs[session_id] = run
        while len(self._runs) > MAXIMUM_RUNS or (len(self._runs) > 1 and self._retained() > MAXIMUM_RETAINED):
            del self._runs[next(iter(self._runs))]

    def _retained(self) -> int:
        return sum(len(run.text) for run in self._runs.values())
