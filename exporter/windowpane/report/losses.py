"""Losses of sessions: facts of compactions, and removed content that was needed again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from windowpane.core.events import FidelityEvaluated
from windowpane.report.headline import FactTotals
from windowpane.store.filters import EventFilter
from windowpane.store.reads.project_reader import EventReader
from windowpane.store.records import SessionRow, intact_events

EVALUATIONS: Final = 1_000
"""Evaluated compactions that are read, the latest."""


class Losses(NamedTuple):
    """Losses of a session, the worst kind first."""

    contradicted: int
    lost: int
    """Facts, likewise the contradicted ones."""
    again: int
    """Removed blocks that were needed again."""

    @property
    def text(self) -> str:
        """The losses that occurred: `1 contradicted, 2 lost, 1 needed again`; 0 without any."""
        counts = ((self.contradicted, "contradicted"), (self.lost, "lost"), (self.again, "needed again"))
        return ", ".join(f"{number:,} {text}" for number, text in counts if number) or "0"

    @property
    def short(self) -> str:
        """The same for a narrow column, lost and contradicted facts as one number: `3, 1 needed again`."""
        facts, again = f"{self.contradicted + self.lost:,}", f"{self.again:,} needed again"
        return facts if not self.again else again if facts == "0" else f"{facts}, {again}"

    @property
    def rank(self) -> float:
        """A number that is lower for worse losses: a table that is sorted by it starts with the worst."""
        return -((self.contradicted * 1e6 + self.lost) * 1e6 + self.again)


def losses_of(reader: EventReader, rows: Sequence[SessionRow]) -> dict[str, Losses]:
    """Return the losses of those sessions of which they are known.

    They are unknown where no compaction was evaluated, or some of the evaluations were not read.
    """
    evaluations = _evaluations(reader, rows)
    losses = {}
    for row in rows:
        read = evaluations.get(row.session_id)
        facts = FactTotals.of(read or ())
        if facts is not None:
            losses[row.session_id] = Losses(facts.contradicted, facts.lost, row.regrets)
        elif not _removed_content(row) or (row.regrets and read is not None):
            losses[row.session_id] = Losses(0, 0, row.regrets)
    return losses


def _removed_content(row: SessionRow) -> bool:
    return bool(row.compressions or row.evicted_tokens)


def _evaluations(reader: EventReader, rows: Sequence[SessionRow]) -> dict[str, list[FidelityEvaluated]]:
    """Return the evaluations of each session that removed content, if all of them were read."""
    removing = {row.session_id: row for row in rows if _removed_content(row)}
    if not removing:
        return {}
    query = EventFilter(types=("fidelity.evaluated",), newest_first=True, limit=EVALUATIONS)
    events = reader.events_or_damage(query)
    by_session: dict[str, list[FidelityEvaluated]] = {name: [] for name in removing}
    for stored in intact_events(events):
        row = removing.get(stored.event.context.session_id)
        if row and stored.revision == row.revision and isinstance(data := stored.event.data, FidelityEvaluated):
            by_session[row.session_id].append(data)
    if len(events) < EVALUATIONS:
        return by_session
    older = replace(query, limit=1, before_seq=min(one.seq for one in events))
    return {
        name: read
        for name, read in by_session.items()
        if read and not reader.events_or_damage(replace(older, session_id=name))
    }
