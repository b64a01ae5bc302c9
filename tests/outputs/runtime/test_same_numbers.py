"""One session scraped live, replayed from the store and pushed over OTLP has the same numbers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from otlp_receiver import Receiver, expected, received, record_attributes
from prometheus_client import generate_latest

from windowpane.core.events import Event, SessionEnded
from windowpane.outputs.http.store_exporter import StoreExporter
from windowpane.outputs.otlp.sink import genai_provider
from windowpane.outputs.runtime.start import Runtime, stop
from windowpane.sources.imports.pipeline import playback_settings
from windowpane.sources.transcripts.discovery import all_readers, reader_for
from windowpane.sources.transcripts.playback import session_events, session_keys
from windowpane.sources.transcripts.reader import FileStats
from windowpane.store.embedded import SqliteStore
from windowpane.store.filters import EventFilter

RECORDINGS = (
    "claude_code/compact_micro_76-62d755ef9f-2.jsonl",
    "claude_code/compact_small_a6-e4c2a0fbd1-0.jsonl",
    "claude_code/small_progress_96-6462b9a8e7-0.jsonl",
    "codex/rollout_compact2_spark_00-34f597b72d-1.jsonl",
    "codex/rollout_small_a3-92ff332928-0.jsonl",
    "mini_swe_agent/v0_github_issue.traj.json",
    "pi/large-session.jsonl",
)


def sessions_of(path: Path, digest: Callable[[str], str]) -> Iterator[list[Event]]:
    """The event sequences of a recording's sessions, as a live agent would emit them."""
    playback = playback_settings(digest)
    reader = reader_for(path, all_readers(complete=True))
    records = list(reader.read(path, stats=FileStats(), problems=[]))
    for key in session_keys(records):
        yield list(session_events(records, key=key, source=reader.format, playback=playback))


def rebased(events: list[Event], *, end: float) -> list[Event]:
    """The same events, the last of them at *end*; those without a time get that."""
    times = [event.at for event in events if event.at is not None]
    shift = end - times[-1] if times else 0.0
    return [event._replace(at=end if event.at is None else min(end, event.at + shift)) for event in events]


def by_turn(events: Iterable[Event]) -> Iterator[list[Event]]:
    """Batches as the tracker hands them over."""
    batch: list[Event] = []
    for event in events:
        batch.append(event)
        if event.type in ("turn.ended", "session.ended"):
            yield batch
            batch = []
    if batch:
        yield batch


def play(running: Runtime, sessions_dir: Path, recordings: Sequence[str] = RECORDINGS) -> Counter[str]:
    """Emit the recordings; only some sessions end, so that gauges remain. Returns the emitted events."""
    emitted: Counter[str] = Counter()
    number = 0
    for name in recordings:
        for events in sessions_of(sessions_dir / name, running.digest):
            number += 1
            live = rebased(events, end=time.time() - 5)
            if number % 3:
                live = [event for event in live if not isinstance(event.data, SessionEnded)]
            for batch in by_turn(live):
                running.emit(list(batch))
            emitted.update(event.type for event in live)
    assert running.flush(60)
    return emitted


def scraped(url: str) -> list[str]:
    with urllib.request.urlopen(url, timeout=10) as answer:
        text = answer.read().decode()
    return ours(text)


def ours(text: str) -> list[str]:
    """The samples of session metrics, in order of name and labels."""
    return sorted(line for line in text.splitlines() if line.startswith("context_window_"))


def test_scraped_stored_and_pushed_metrics_are_equal_and_every_record_names_its_conversation(
    sessions_dir: Path,
    tmp_path: Path,
    receiver: Receiver,
    start_outputs: Callable[..., Runtime],
    wait_until: Callable[..., None],
) -> None:
    running = start_outputs(otlp_endpoint=receiver.url, settings={"otlp": {"interval_seconds": 86_400}})
    emitted = play(running, sessions_dir)
    assert running.url is not None
    live = scraped(running.url)
    # Stopping gives the queue a few seconds, which are not enough on a busy machine.
    wait_until(lambda: len(receiver.records()) >= emitted.total(), what="every event is sent")
    stop()
    pushed = received(receiver.metrics())
    with closing(SqliteStore(tmp_path / "windowpane.db")) as store:
        server = StoreExporter(store)
        server.catch_up()
        replayed = ours(generate_latest(server.routes().registry).decode())
        source = server._sources[0]
        wanted = expected(source, lambda model: genai_provider(model) or "_OTHER")
        stored = store.count_events(EventFilter())

    assert live == replayed
    assert {key: value for key, value in pushed.items() if not key[0].startswith("windowpane.")} == wanted
    assert len(live) > 500
    assert any(line.startswith("context_window_utilization_ratio{") for line in live)
    names = Counter(record.event_name.removeprefix("context_window.") for record in receiver.records())
    assert sum(names.values()) == stored
    assert {name: count for name, count in names.items() if not name.startswith("alert.")} == dict(emitted)
    records = [record_attributes(record) for record in receiver.records()]
    assert len({record["context_window.event.id"] for record in records}) == len(records)
    assert all(record["gen_ai.conversation.id"] and record["gen_ai.agent.name"] for record in records)


def test_serve_pushes_the_metrics_it_serves(  # noqa: PLR0917  # fixtures
    sessions_dir: Path,
    tmp_path: Path,
    receiver: Receiver,
    start_outputs: Callable[..., Runtime],
    wait_until: Callable[..., None],
    free_port: Callable[[], int],
) -> None:
    running = start_outputs()
    play(running, sessions_dir, RECORDINGS[:-1])
    assert running.url is not None
    live = scraped(running.url)
    port = free_port()
    environment = {"PYTHONPATH": os.pathsep.join(sys.path), "PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    serve = subprocess.Popen(
        [
            sys.executable, "-m", "windowpane", "serve", "--store", str(tmp_path / "windowpane.db"),
            "--port", str(port), "--otlp-endpoint", receiver.url,
        ],
        env=environment, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        wait_until(lambda: _answers(f"http://127.0.0.1:{port}/metrics"), what="its metrics")
        assert scraped(f"http://127.0.0.1:{port}/metrics") == live
        before = len(receiver.records())
        (late, *_) = sessions_of(sessions_dir / RECORDINGS[0], running.digest)
        context = late[0].context
        running.emit([Event(_renamed(context), event.n, time.time(), event.data) for event in late[:3]])
        assert running.flush(20)
        wait_until(lambda: len(receiver.records()) >= 3, what="new events as log records")
    finally:
        serve.send_signal(signal.SIGTERM)
        serve.wait(timeout=30)
    pushed = received(receiver.metrics())

    assert before == 0
    assert {record_attributes(record)["gen_ai.conversation.id"] for record in receiver.records()} == {"late"}
    turns = sum(value for (name, _), value in pushed.items() if name == "context_window.turns")  # type: ignore[misc]
    assert turns == sum(float(line.split()[-1]) for line in live if line.startswith("context_window_turns_total"))


def _renamed(context: Any) -> Any:
    return type(context)("late", context.agent, context.model, 1, 1, "live", "late")


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return int(answer.status) == 200
    except OSError:
        return False
