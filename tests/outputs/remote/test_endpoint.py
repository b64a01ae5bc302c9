"""The endpoint: what it stores, what it refuses with which reason, and how it holds back."""

from __future__ import annotations

import gzip
import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from windowpane.core.codec import encode
from windowpane.core.events import Event, EventContext, SessionStarted, TurnStarted
from windowpane.exceptions import StoreError
from windowpane.outputs.http import request_bodies
from windowpane.outputs.http.asgi_server import AsgiServer, start_asgi_server
from windowpane.outputs.http.routes import Routes
from windowpane.outputs.remote import batches, endpoint
from windowpane.outputs.remote.batches import CONTENT_TYPE, PATH
from windowpane.outputs.remote.endpoint import IngestEndpoint
from windowpane.outputs.remote.group_commit import GroupCommit
from windowpane.store.embedded import SqliteStore
from windowpane.store.writes.received import Receipt, ReceivedBatch, RefusedEvent

PLAIN = {"Content-Type": CONTENT_TYPE}


def lines(session_id: str, numbers: range) -> list[bytes]:
    context = EventContext(session_id, "agent", "gpt-4o", 1, 1, "live", f"{session_id}/stream")
    return [encode(Event(context, n, 1.0 + n, TurnStarted() if n else SessionStarted())) for n in numbers]


class Answer:
    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status, self.headers, self.body = response.status, response.headers, response.read()

    @property
    def document(self) -> dict:
        return json.loads(self.body)


def post(server: AsgiServer, body: bytes, headers: dict[str, str] = PLAIN, *, method: str = "POST") -> Answer:
    with closing(http.client.HTTPConnection(server.host, server.port, timeout=10)) as connection:
        connection.request(method, PATH, body=body, headers=headers)
        return Answer(connection.getresponse())


class Serve:
    """Starts endpoints over a store, or something that receives like one; a token is the name of its project."""

    def __init__(self) -> None:
        self._started: list[tuple[AsgiServer, GroupCommit]] = []

    def __call__(self, store, **options) -> AsgiServer:
        commits = GroupCommit(store, **options)
        commits.start()
        posts = IngestEndpoint(commits).posts
        routes = Routes(posts=posts, project_of=lambda authorization: authorization.removeprefix("Bearer "))
        self._started.append((start_asgi_server(routes, port=0), commits))
        return self._started[-1][0]

    @property
    def waiting_events(self) -> int:
        return self._started[-1][1].waiting_events

    def close(self) -> None:
        for server, commits in self._started:
            server.close()
            commits.close()


@pytest.fixture
def serve() -> Iterator[Serve]:
    with closing(Serve()) as started:
        yield started


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(tmp_path / "windowpane.db")) as opened:
        yield opened


def test_a_batch_is_stored_and_a_repeated_one_changes_nothing(serve: Serve, store: SqliteStore) -> None:
    server, body = serve(store), b"\n".join(lines("s", range(20)))

    first = post(server, gzip.compress(body), PLAIN | {"Content-Encoding": "gzip"})
    second = post(server, body)

    assert (first.status, first.document) == (200, {"stored": 20, "repeated": 0, "refused": []})
    assert (second.status, second.document) == (200, {"stored": 0, "repeated": 20, "refused": []})
    assert store.verify().intact


def test_one_bad_record_never_stops_the_others(serve: Serve, store: SqliteStore) -> None:
    good = lines("s", range(6))
    newer = good[1].replace(b'"turn.started"', b'"turn.paused"')
    nameless = good[2].replace(b'"session_id":"s"', b'"session_id":""')
    negative = good[3].replace(b'"n":3', b'"n":-3')
    wrong_type = good[4].replace(b'"turn":1', b'"turn":"one"')
    text = b'{"digest":"d","text":5}'
    body = b"\n".join([good[0], b'{"half', newer, nameless, negative, wrong_type, text, b"[1]", good[5]])

    answer = post(serve(store), body)

    assert answer.status == 200
    assert answer.document["stored"] == 2
    problems = {one["record"]: one["problem"] for one in answer.document["refused"]}
    assert sorted(problems) == [2, 3, 4, 5, 6, 7, 8]
    assert "not a JSON object" in problems[2]
    assert problems[3].startswith("type: expected one of the")
    assert problems[4] == "session_id: expected a name, got ''"
    assert problems[5] == "n: expected a whole number from 0, got -3"
    assert "turn" in problems[6]
    assert problems[7] == "not a captured text: Expected `str`, got `int` - at `$.text`"


def test_a_batch_of_which_nothing_can_be_stored_is_a_bad_request(serve: Serve, store: SqliteStore) -> None:
    answer = post(serve(store), b'{"schema":9}\nnull\n')

    assert answer.status == 400
    assert [one["record"] for one in answer.document["refused"]] == [1, 2]


def test_requests_that_are_not_batches_are_refused(
    serve: Serve, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve(store)
    zipped = PLAIN | {"Content-Encoding": "gzip"}
    monkeypatch.setattr(request_bodies, "MAXIMUM_DECODED_BYTES", 100_000)
    monkeypatch.setattr(endpoint, "MAXIMUM_RECORDS", 50)

    assert post(server, b"{}", {"Content-Type": "application/json"}).status == 415
    assert post(server, b"{}", PLAIN | {"Content-Encoding": "br"}).status == 415
    assert post(server, b"no gzip", zipped).status == 400
    assert post(server, gzip.compress(bytes(1_000_000)), zipped).status == 413
    assert post(server, gzip.compress(b"") * 1_000, zipped).status == 400
    assert post(server, b"\n" * 60).status == 413
    assert post(server, b"", method="GET").status == 405
    assert post(server, b"").document == {"stored": 0, "repeated": 0, "refused": []}


class SlowStore:
    """Receives when it is allowed to."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.entered = threading.Event()
        self.batches: list[int] = []
        self.projects: list[list[str]] = []

    def receive(self, received: list[ReceivedBatch]) -> list[Receipt]:
        self.entered.set()
        self.go.wait(10)
        self.batches.append(len(received))
        self.projects.append([batch.project for batch in received])
        return [Receipt(len(batch.events)) for batch in received]


def test_the_queue_is_bounded_and_what_waits_shares_a_transaction(serve: Serve, wait_until) -> None:
    """Beyond it a request is answered with 429 and when to come again."""
    store = SlowStore()
    server = serve(store, capacity_events=60)
    answers: list[Answer] = []

    def send() -> None:
        answers.append(post(server, b"\n".join(lines("s", range(10)))))

    first = threading.Thread(target=send)
    first.start()
    store.entered.wait(10)
    threads = [threading.Thread(target=send) for _ in range(5)]
    for thread in threads:
        thread.start()
    wait_until(lambda: sum(answer.status == 429 for answer in answers) == 3, what="three refusals")
    store.go.set()
    for thread in (first, *threads):
        thread.join()

    assert sorted(answer.status for answer in answers) == [200, 200, 200, 429, 429, 429]
    assert all(answer.headers["Retry-After"] == "1" for answer in answers if answer.status == 429)
    assert sum(store.batches) == 3


def of_project(name: str) -> dict[str, str]:
    return PLAIN | {"Authorization": f"Bearer {name}"}


def test_a_project_waits_for_one_batch_of_another_however_many_wait(serve: Serve, wait_until) -> None:
    store = SlowStore()
    server, large = serve(store), b"\n".join(lines("s", range(2_000)))
    threads = [threading.Thread(target=post, args=(server, large, of_project("noisy"))) for _ in range(5)]
    small = threading.Thread(target=post, args=(server, b"\n".join(lines("t", range(3))), of_project("small")))
    threads[0].start()
    store.entered.wait(10)
    for thread in threads[1:]:
        thread.start()
    wait_until(lambda: serve.waiting_events == 10_000, what="the batches of the noisy project")
    small.start()
    wait_until(lambda: serve.waiting_events == 10_003, what="the batch of the small project")
    store.go.set()
    for thread in (*threads, small):
        thread.join()

    assert store.projects == [["noisy"], ["small"], *[["noisy"]] * 4]


def test_a_project_that_fills_its_share_does_not_fill_that_of_others(serve: Serve, wait_until) -> None:
    store = SlowStore()
    server, body = serve(store, capacity_events=40), b"\n".join(lines("s", range(10)))
    threads = [threading.Thread(target=post, args=(server, body, of_project("noisy"))) for _ in range(2)]
    threads.append(threading.Thread(target=post, args=(server, body, of_project("small"))))
    for number, thread in enumerate(threads, start=1):
        thread.start()
        wait_until(lambda number=number: serve.waiting_events == 10 * number, what="a batch that waits")

    refused = post(server, body, of_project("noisy"))
    store.go.set()
    for thread in threads:
        thread.join()

    assert refused.status == 429
    assert sum(store.batches) == 3


def test_a_batch_of_which_the_store_takes_nothing_is_refused(serve: Serve) -> None:
    class Refusing:
        def receive(self, received: list[ReceivedBatch]) -> list[Receipt]:
            refused = tuple(RefusedEvent(n, "is too late") for n in range(len(received[0].events)))
            return [Receipt(0, refused)]

    answer = post(serve(Refusing()), b"\n".join(lines("s", range(2))))

    assert answer.status == 400
    assert [one["problem"] for one in answer.document["refused"]] == ["is too late"] * 2


def test_a_store_that_fails_acknowledges_nothing(serve: Serve) -> None:
    """503 with when to come again; the text of the error stays in the log."""

    class FullDisk:
        def receive(self, _: list[ReceivedBatch]) -> list[Receipt]:
            raise StoreError("/data/windowpane.db: the disk is full")

    answer = post(serve(FullDisk()), b"\n".join(lines("s", range(2))))

    assert answer.status == 503
    assert answer.headers["Retry-After"] == "5"
    assert b"/data" not in answer.body

    """So that the store writes them faster."""
    read = batches.read_batch(b"\n".join(lines("s", range(3))))

    assert read.events[0].context is read.events[2].context
