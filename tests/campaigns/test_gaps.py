"""Campaign: streams with thousands of gaps, whose events come late, in any order; each is stored once."""

from __future__ import annotations

import random
from contextlib import closing

import pytest
from tests.campaigns.conftest import Campaign

from windowpane.core.events import Event, EventContext, SessionStarted, TurnStarted
from windowpane.store.open import open_store
from windowpane.store.writes.received import ReceivedBatch


def events_of(session_id: str, count: int) -> list[Event]:
    """Return a stream of one turn."""
    context = EventContext(session_id, "agent", "gpt-4o", 1, 1, "live", f"{session_id}/stream")
    return [Event(context, n, 1.0 + n, TurnStarted() if n else SessionStarted()) for n in range(count)]


@pytest.mark.timeout(0)
@pytest.mark.parametrize("database", ["sqlite", pytest.param("postgresql", marks=pytest.mark.server)])
def test_what_comes_late_for_thousands_of_gaps_is_stored_once(
    campaign: Campaign, database: str, tmp_path, request: pytest.FixtureRequest
) -> None:
    name = tmp_path / "w.db" if database == "sqlite" else request.getfixturevalue("postgres_url")
    attempts, size = campaign.attempts(sample=2, whole=40), campaign.attempts(sample=4_000, whole=10_000)
    lost = held = 0
    with closing(open_store(name)) as store:
        for seed in range(attempts):
            chance = random.Random(seed)
            events = events_of(f"s{seed}", size)
            order = [event for event in events if not event.n or chance.random() < 0.5]
            late = [*set(range(size)) - {event.n for event in order}]
            chance.shuffle(late)
            order += [events[n] for n in late]
            acknowledged = 0
            while acknowledged < size:
                count = chance.randrange(1, 1_000)
                repeated = chance.sample(order[: acknowledged + 1], min(20, acknowledged + 1))
                store.receive([ReceivedBatch([*repeated, *order[acknowledged : acknowledged + count]])])
                acknowledged += count
            stored = [one.event.n for batch in store.scan() for one in batch
                      if one.event.context.session_id == f"s{seed}"]  # fmt: skip
            lost += size - len(set(stored))
            held += sorted(stored) == list(range(size))
    campaign.record(
        f"streams with thousands of gaps ({database})", tried=attempts, held=held, lost=lost,
        note=f"{size:,} events each, half of them late, in random order, some repeated",
    )  # fmt: skip
    assert (held, lost) == (attempts, 0)
