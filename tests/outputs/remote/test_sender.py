"""The sender: in order, until acknowledged, bounded, and never in the agent's way."""

from __future__ import annotations

import errno
import json
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr
from scripted_server import Reply, ScriptedServer, session, stored

from windowpane.config.outputs import IngestConfig
from windowpane.core.digests import KEY_BYTES, keyed_digester
from windowpane.core.events import BlockAdded, Event, TelemetryDropped
from windowpane.core.protocols import EventsSkippedError
from windowpane.core.window.blocks import Block
from windowpane.effects import worker
from windowpane.exceptions import StoreError
from windowpane.metrics.internal import InternalMetrics
from windowpane.outputs.remote import sender
from windowpane.outputs.remote.sink import RemoteSink, _digest_key
from windowpane.outputs.runtime.pipeline import Pipeline
from windowpane.store.keys import AuditKeys
from windowpane.store.writes.spool import Spool, waiting_files

UNAVAILABLE = Reply(503)
MakeSink = Callable[..., RemoteSink]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Send without waiting for more, and again after a moment."""
    monkeypatch.setattr(sender, "LINGER_SECONDS", 0.01)
    monkeypatch.setattr(worker, "FIRST_PAUSE_SECONDS", 0.02)
    monkeypatch.setattr(worker, "LONGEST_PAUSE_SECONDS", 0.1)


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    running = ScriptedServer()
    yield running
    running.close()


@pytest.fixture
def files(tmp_path: Path) -> Path:
    return tmp_path / "servers" / "store"


@pytest.fixture
def internal() -> InternalMetrics:
    return InternalMetrics(version="", clock=time.time)


@pytest.fixture
def make_sink(files: Path, internal: InternalMetrics) -> Iterator[MakeSink]:
    """Makes sinks that send to a URL, and closes them."""
    made: list[RemoteSink] = []

    def make(url: str, *, redact=None, project="", **settings) -> RemoteSink:
        sink = RemoteSink(
            url,
            IngestConfig(timeout_seconds=5, **settings),
            files=files,
            project=project,
            keys=AuditKeys(),
            redact=redact,
            internal=internal,
        )
        sink.start()
        made.append(sink)
        return sink

    yield make
    for sink in made:
        sink.close()


def settle(sink: RemoteSink, *, seconds: float = 10) -> None:
    """Flush until it is acknowledged."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            sink.flush()
        except StoreError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return


def problem_of_flush(sink: RemoteSink) -> str:
    """The reason for which a flush failed; empty if it did not."""
    try:
        sink.flush()
    except StoreError as error:
        return str(error)
    return ""


def test_a_flush_returns_when_the_server_has_acknowledged(server: ScriptedServer, make_sink: MakeSink) -> None:
    sink = make_sink(server.url)
    sink.write(session("s", range(2_500)))

    settle(sink)

    assert server.numbers() == list(range(2_500))
    assert max(map(len, server.requests)) <= sender.BATCH_EVENTS
    assert sink.available
    assert sink.unsent_events == 0


def test_a_flush_is_false_while_the_server_takes_nothing(server: ScriptedServer, make_sink: MakeSink) -> None:
    server.respond = lambda _: Reply(503, b"the store does not take events")
    sink = make_sink(server.url)
    sink.write(session("s", range(5)))

    with pytest.raises(StoreError, match="503: the store does not take events"):
        sink.flush()
    assert not sink.available
    server.respond, refused = stored, len(server.requests)
    settle(sink)

    assert sink.problem == ""
    assert [json.loads(line)["n"] for line in server.requests[-1]] == list(range(5))
    assert refused >= 1


def test_what_waits_moves_to_a_private_file_and_is_sent_first(
    server: ScriptedServer, make_sink: MakeSink, files: Path, wait_until, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "SPOOL_SECONDS", 0.0)
    server.respond = lambda _: UNAVAILABLE
    sink = make_sink(server.url)
    for start in range(0, 30, 10):
        sink.write(session("s", range(start, start + 10)))
        wait_until(lambda: sink.unsent_events == 0, what="the spool")
    waiting = waiting_files(files)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in waiting}
    with pytest.raises(StoreError):
        sink.flush()

    server.respond = stored
    server.requests.clear()
    settle(sink)
    sink.write(session("s", range(30, 35)))
    settle(sink)

    assert len(waiting) == 3
    assert modes == {0o600}
    assert server.numbers() == list(range(35))
    assert waiting_files(files) == []


@pytest.fixture
def sink_with_file(
    server: ScriptedServer, make_sink: MakeSink, files: Path, wait_until, monkeypatch: pytest.MonkeyPatch
) -> RemoteSink:
    """A sink of which five events wait in a file; it sends only for a flush."""
    monkeypatch.setattr(sender, "SPOOL_SECONDS", 0.0)
    monkeypatch.setattr(worker, "FIRST_PAUSE_SECONDS", 60.0)
    monkeypatch.setattr(worker, "LONGEST_PAUSE_SECONDS", 60.0)
    server.respond = lambda _: UNAVAILABLE
    sink = make_sink(server.url)
    sink.write(session("s", range(5)))
    wait_until(lambda: sink.unsent_events == 0 and waiting_files(files), what="the spool")
    server.requests.clear()
    return sink


def test_events_in_a_damaged_file_are_reported_as_lost_once(
    server: ScriptedServer, sink_with_file: RemoteSink, files: Path, internal: InternalMetrics
) -> None:
    for file in waiting_files(files):
        file.write_bytes(file.read_bytes()[:-20])
    server.respond = stored

    problems = [problem_of_flush(sink_with_file) for _ in range(20)]
    sink_with_file.write(session("t", range(5, 8)))
    settle(sink_with_file)

    assert server.numbers()[-3:] == [5, 6, 7]
    assert ["5 events are lost" in problem for problem in problems].count(True) == 1
    assert problems[-1] == ""
    assert internal.dropped_events() == 5


@pytest.mark.parametrize(
    "error", [OSError(errno.EMFILE, "Too many open files"), PermissionError(errno.EACCES, "Permission denied")]
)
def test_a_file_that_cannot_be_read_for_now_is_sent_later(
    server: ScriptedServer, sink_with_file: RemoteSink, files: Path, error: OSError
) -> None:
    def fail(_: Path) -> bytes:
        raise error

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Path, "read_bytes", fail)
        server.respond = stored
        with pytest.raises(StoreError, match="cannot be read"):
            settle(sink_with_file, seconds=0.5)
        assert waiting_files(files)

    settle(sink_with_file)
    assert server.numbers()[-5:] == list(range(5))


def test_the_next_process_sends_what_one_has_not_sent(
    server: ScriptedServer, make_sink: MakeSink, files: Path, wait_until
) -> None:
    server.respond = lambda _: UNAVAILABLE
    first = make_sink(server.url)
    first.write(session("s", range(20)))
    first.close()
    server.respond = stored
    server.requests.clear()

    make_sink(server.url)

    wait_until(lambda: waiting_files(files) == [], what="the file's end")
    assert server.numbers() == list(range(20))


def test_closing_does_not_wait_for_a_server_that_hangs(
    server: ScriptedServer, make_sink: MakeSink, files: Path, wait_until
) -> None:
    hanging = threading.Event()

    def hang(lines: list[bytes]) -> Reply:
        hanging.wait(10)
        return stored(lines)

    server.respond = hang
    sink = make_sink(server.url)
    sink.write(session("s", range(7)))
    wait_until(lambda: bool(server.requests), what="a request")

    senders = [thread for thread in threading.enumerate() if thread.name == "windowpane-sender"]
    started = time.monotonic()
    sink.close()
    took = time.monotonic() - started
    for thread in senders:
        thread.join(2)
    remaining = [thread for thread in senders if thread.is_alive()]
    hanging.set()

    assert took < 2
    assert senders
    assert not remaining, "the request in progress is ended"
    assert len(waiting_files(files)) == 1


def test_the_wait_that_the_server_requests_is_kept(server: ScriptedServer, make_sink: MakeSink) -> None:
    replies = iter([Reply(429, headers={"Retry-After": "1"})])
    server.respond = lambda lines: next(replies, stored(lines))
    sink = make_sink(server.url)
    sink.write(session("s", range(3)))
    with pytest.raises(StoreError, match="too much to do"):
        sink.flush()
    started = time.monotonic()
    with pytest.raises(StoreError):
        sink.flush()
    took = time.monotonic() - started
    settle(sink)

    assert took < 0.5
    assert server.arrived_at[1] - server.arrived_at[0] >= 1.0
    assert len(server.requests) == 2


def test_attempts_become_rarer(server: ScriptedServer, make_sink: MakeSink, monkeypatch, wait_until) -> None:
    monkeypatch.setattr(worker, "FIRST_PAUSE_SECONDS", 0.1)
    monkeypatch.setattr(worker, "LONGEST_PAUSE_SECONDS", 10.0)
    server.respond = lambda _: UNAVAILABLE
    make_sink(server.url).write(session("s", range(3)))

    wait_until(lambda: len(server.arrived_at) >= 4, what="four attempts")

    pauses = [after - before for before, after in zip(server.arrived_at, server.arrived_at[1:], strict=False)][:3]
    assert all(pause >= shortest for pause, shortest in zip(pauses, (0.05, 0.1, 0.2), strict=True))


def test_a_refused_record_is_set_aside_and_the_others_are_sent(
    server: ScriptedServer, make_sink: MakeSink, files: Path
) -> None:
    def refuse_third(lines: list[bytes]) -> Reply:
        refused = [
            {"record": number, "problem": "type: unknown"}
            for number, line in enumerate(lines, start=1)
            if b'"n":3,' in line and b"telemetry.dropped" not in line
        ]
        outcome = {"stored": len(lines) - len(refused), "repeated": 0, "refused": refused}
        return Reply(400 if len(refused) == len(lines) else 200, json.dumps(outcome).encode())

    server.respond = refuse_third
    drops: list[tuple[str, str, int]] = []
    sink = make_sink(server.url)
    pipeline = Pipeline({"store": sink}, count_drops=lambda *drop: drops.append(drop), linger_seconds=0.0)
    pipeline.put(session("s", range(6)))

    assert not pipeline.flush()
    pipeline.put(session("s", range(6, 8)))
    assert pipeline.flush()
    pipeline.close()

    (line,) = (files.parent / "refused.jsonl").read_text().splitlines()
    assert json.loads(line)["problem"] == "type: unknown"
    assert json.loads(line)["record"]["n"] == 3
    assert stat.S_IMODE((files.parent / "refused.jsonl").stat().st_mode) == 0o600
    (report,) = [json.loads(line) for lines in server.requests for line in lines if b"telemetry.dropped" in line]
    assert (report["n"], report["data"]["first_n"], report["data"]["last_n"]) == (3, 3, 3)
    assert drops == [("store", "error", 1)]


def test_an_acknowledgement_of_fewer_events_is_none(server: ScriptedServer, make_sink: MakeSink) -> None:
    server.respond = lambda lines: stored(lines[:-1] if len(server.requests) == 1 else lines)
    sink = make_sink(server.url)
    sink.write(session("s", range(3)))

    settle(sink)
    assert server.numbers() == [0, 1, 2, 0, 1, 2]


def test_a_batch_that_is_too_large_is_halved(server: ScriptedServer, make_sink: MakeSink, files: Path) -> None:
    def small(lines: list[bytes]) -> Reply:
        return Reply(413) if len(lines) > 2 or any(b'"n":5,' in line for line in lines) else stored(lines)

    server.respond = small
    sink = make_sink(server.url)
    sink.write(session("s", range(9)))
    with pytest.raises(EventsSkippedError) as refused:
        settle(sink)
    settle(sink)

    assert [event.n for event in refused.value.events] == [5]
    assert "too large" in (files.parent / "refused.jsonl").read_text()


@pytest.mark.parametrize(
    "senders",
    [
        ({"token": SecretStr("shop")}, {"token": SecretStr("bank")}, {"token": SecretStr("shop")}),
        ({"project": "shop"}, {"project": "bank"}, {"project": "shop", "token": SecretStr("replaced")}),
        ({"token": SecretStr("shop")}, {}, {"token": SecretStr("shop")}),
    ],
)
def test_what_waits_of_one_project_is_not_sent_for_another(
    senders, server: ScriptedServer, make_sink: MakeSink, files: Path, wait_until
) -> None:
    """The server would store it for the project of the token: it waits for its own, or for its named project."""
    earlier, other, same = senders
    server.respond = lambda _: UNAVAILABLE
    first = make_sink(server.url, **earlier)
    first.write(session("s", range(20)))
    first.close()
    server.respond = stored
    server.requests.clear()

    stranger = make_sink(server.url, **other)
    stranger.write(session("t", range(3)))
    settle(stranger)
    assert server.numbers() == [0, 1, 2]
    assert len(list(files.parent.glob("*.spool-*.jsonl"))) == 1

    server.requests.clear()
    make_sink(server.url, **same)
    wait_until(lambda: not list(files.parent.glob("*.spool-*.jsonl")), what="the file's end")
    assert server.numbers() == list(range(20))


def test_what_waits_from_before_a_token_was_configured_is_sent(
    server: ScriptedServer, make_sink: MakeSink, files: Path, wait_until
) -> None:
    Spool(files, keys=AuditKeys(), redact=None).write(session("s", range(20)))

    make_sink(server.url, token=SecretStr("shop"))

    wait_until(lambda: not list(files.parent.glob("*.spool-*.jsonl")), what="the file's end")
    assert server.numbers() == list(range(20))


def test_memory_and_spool_are_bounded_and_the_rest_is_counted_as_dropped(
    server: ScriptedServer, make_sink: MakeSink, files: Path, monkeypatch: pytest.MonkeyPatch, wait_until
) -> None:
    monkeypatch.setattr(sender, "MEMORY_EVENTS", 100)
    monkeypatch.setattr(sender, "SPOOL_SECONDS", 0.0)
    server.respond = lambda _: UNAVAILABLE
    sink = make_sink(server.url, spool_bytes=20_000)
    drops: list[tuple[str, str, int]] = []
    pipeline = Pipeline({"store": sink}, count_drops=lambda *drop: drops.append(drop), linger_seconds=0.0)
    for start in range(0, 1_000, 20):
        pipeline.put(session("s", range(start, start + 20)))
        pipeline.flush(0.02)
    size = sum(path.stat().st_size for path in waiting_files(files))
    server.respond = stored
    server.requests.clear()
    pipeline.flush(10)
    pipeline.put(session("s", range(1_000, 1_001)))
    assert pipeline.flush(10)
    pipeline.close()

    documents = [json.loads(line) for lines in server.requests for line in lines]
    reports = [document["data"] for document in documents if document["type"] == TelemetryDropped.type]
    reported = {n for report in reports for n in range(report["first_n"], report["last_n"] + 1)}
    sent = [document["n"] for document in documents if document["type"] != TelemetryDropped.type]
    assert size <= 21_000
    assert sent == sorted(set(sent))
    assert set(sent) | reported == set(range(1_001))
    assert not set(sent) & reported
    assert sum(events for _, _, events in drops) == len(reported) > 0


def test_writing_never_waits_for_the_server(server: ScriptedServer, make_sink: MakeSink) -> None:
    hanging = threading.Event()
    server.respond = lambda lines: (hanging.wait(5), stored(lines))[1]
    sink = make_sink(server.url)
    slowest = 0.0
    for start in range(0, 2_000, 20):
        batch = session("s", range(start, start + 20))
        started = time.perf_counter()
        sink.write(batch)
        slowest = max(slowest, time.perf_counter() - started)
    hanging.set()
    settle(sink)

    assert slowest < 0.5
    assert server.numbers() == list(range(2_000))


def test_texts_are_sent_redacted_and_only_where_they_are_captured(
    server: ScriptedServer, make_sink: MakeSink
) -> None:
    def with_text(number: int) -> Event:
        block = Block(
            f"b{number}", "user_message", 3, 19, "estimate", "d" * 32, 1, "g", 1, text="my password is hush"
        )
        return session("s", range(number, number + 1))[0]._replace(data=BlockAdded(block))

    for number, redact in enumerate((None, lambda text: text.replace("hush", "[redacted]"))):
        sink = make_sink(server.url, redact=redact)
        sink.write([with_text(number)])
        settle(sink)

    without, with_texts = server.requests
    assert [b"password" in line for line in without] == [False]
    assert [json.loads(line).get("text") for line in with_texts] == ["my password is [redacted]", None]


def test_a_wrong_token_loses_nothing(server: ScriptedServer, make_sink: MakeSink) -> None:
    server.respond = lambda _: Reply(401)
    settings = IngestConfig(token=SecretStr("a wrong token"))
    sink = make_sink(server.url, token=settings.token)
    sink.write(session("s", range(3)))
    with pytest.raises(StoreError, match="401: it does not accept the token; set WINDOWPANE_INGEST_TOKEN"):
        sink.flush()
    server.respond = stored
    settle(sink)

    assert set(server.tokens) == {"Bearer a wrong token"}
    assert server.numbers()[-3:] == [0, 1, 2]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks on this system")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_sends_its_own_events_only(server: ScriptedServer, make_sink: MakeSink) -> None:
    gate = threading.Event()
    server.respond = lambda lines: (gate.wait(5), stored(lines))[1]
    sink = make_sink(server.url)
    sink.write(session("parent", range(5)))
    child = os.fork()
    if child == 0:
        try:
            sink.after_fork()
            sink.write(session("child", range(3)))
            settle(sink)
        finally:
            os._exit(0)
    gate.set()
    _, status = os.waitpid(child, 0)
    settle(sink)

    assert status == 0
    sent = [json.loads(line) for lines in server.requests for line in lines]
    assert sorted((one["session_id"], one["n"]) for one in sent) == [
        *(("child", n) for n in range(3)), *(("parent", n) for n in range(5)),
    ]  # fmt: skip


def test_processes_that_start_together_have_one_digest_key(
    tmp_path: Path,
) -> None:
    for number in range(20):
        files = tmp_path / str(number) / "store"
        together = threading.Barrier(4)
        digests: list[str] = []

        def read_key(
            files: Path = files, together: threading.Barrier = together, digests: list[str] = digests
        ) -> None:
            together.wait(10)
            digests.append(keyed_digester(_digest_key(files.with_name("digest-key")))("text"))

        threads = [threading.Thread(target=read_key) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert len(digests) == 4
        assert len(set(digests)) == 1
        assert [file.name for file in files.parent.iterdir()] == ["digest-key"]


def test_a_digest_key_that_was_cut_short_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "digest-key"
    file.write_bytes(b"short")

    key = _digest_key(file)

    assert len(key) == KEY_BYTES
    assert _digest_key(file) == key
