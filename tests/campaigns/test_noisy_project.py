"""Campaign: one project sends large batches without a pause; the small batches of another come next in turn."""

from __future__ import annotations

import gzip
import http.client
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from tests.campaigns.conftest import Campaign

from windowpane.core.codec import encode
from windowpane.core.events import Event, EventContext, SessionStarted, TurnStarted
from windowpane.outputs.http.asgi_server import AsgiServer, start_asgi_server
from windowpane.outputs.http.routes import Routes
from windowpane.outputs.remote.batches import CONTENT_TYPE, PATH
from windowpane.outputs.remote.endpoint import IngestEndpoint
from windowpane.outputs.remote.group_commit import CAPACITY_EVENTS, GroupCommit
from windowpane.store.embedded import SqliteStore
from windowpane.store.writes.received import Receipt, ReceivedBatch

NOISY, SMALL = "noisy", "small"


class Observed(GroupCommit):
    """A group commit that records how many transactions started before the one with a small batch."""

    def __init__(self, store: SqliteStore) -> None:
        super().__init__(self)
        self._stored = store
        self.transactions = 0
        self.skipped: list[int] = []
        self.most_waiting = 0
        self._arrived = 0

    async def put(self, batch: ReceivedBatch, *, size: int = 0) -> Receipt:
        if batch.project == SMALL:
            self._arrived = self.transactions
        self.most_waiting = max(self.most_waiting, self.waiting_events)
        return await super().put(batch, size=size)

    def receive(self, batches: Sequence[ReceivedBatch]) -> list[Receipt]:
        if any(batch.project == SMALL for batch in batches):
            self.skipped.append(self.transactions - self._arrived)
        self.transactions += 1
        return self._stored.receive(batches)


def body(session_id: str, events: int) -> bytes:
    context = EventContext(session_id, "agent", "gpt-4o", 1, 1, "live", session_id)
    made = (Event(context, n, 1.0 + n, TurnStarted() if n else SessionStarted()) for n in range(events))
    return gzip.compress(b"\n".join(map(encode, made)), 1)


def post(server: AsgiServer, content: bytes, project: str) -> int:
    headers = {"Content-Type": CONTENT_TYPE, "Content-Encoding": "gzip", "Authorization": f"Bearer {project}"}
    with closing(http.client.HTTPConnection(server.host, server.port, timeout=120)) as connection:
        connection.request("POST", PATH, body=content, headers=headers)
        response = connection.getresponse()
        response.read()
        return response.status


def test_a_small_project_comes_next_in_turn_beside_a_noisy_one(campaign: Campaign, tmp_path: Path) -> None:
    tried, senders = campaign.attempts(sample=3, whole=100), campaign.attempts(sample=4, whole=16)
    events = campaign.attempts(sample=1_500, whole=10_000)
    stop, statuses, waits = threading.Event(), list[int](), list[float]()
    with closing(SqliteStore(tmp_path / "w.db")) as store:
        commits = Observed(store)
        commits.start()
        posts = IngestEndpoint(commits).posts
        routes = Routes(posts=posts, project_of=lambda authorization: authorization.removeprefix("Bearer "))
        with start_asgi_server(routes, port=0) as server:

            def send(number: int) -> None:
                round_ = 0
                while not stop.is_set():
                    post(server, body(f"noisy-{number}-{round_}", events), NOISY)
                    round_ += 1

            threads = [threading.Thread(target=send, args=(number,)) for number in range(senders)]
            for thread in threads:
                thread.start()
            for number in range(tried):
                content, started = body(f"small-{number}", 3), time.monotonic()
                statuses.append(post(server, content, SMALL))
                waits.append(time.monotonic() - started)
            stop.set()
            for thread in threads:
                thread.join()
        commits.close()
        intact = store.verify(projections=False).intact
    held = sum(skipped <= 1 for skipped in commits.skipped)

    campaign.record(
        "a small project beside one that sends large batches", tried=tried, held=held,
        lost=tried - statuses.count(200),
        note=f"{senders} senders of {events:,} events a batch; a small batch waits for at most one transaction, "
        f"{max(waits):.1f} s in this run; at most {commits.most_waiting:,} events wait",
    )  # fmt: skip
    assert statuses == [200] * tried
    assert held == tried, commits.skipped
    assert commits.most_waiting <= CAPACITY_EVENTS
    assert intact
