"""A demo agent for a monitoring stack: it plays the packaged recordings forever, at the pace of real agents.

Each worker plays one recording again and again, turn by turn, through the outputs of a real process: the store,
the alert engine and `/metrics`. Some manage it in a window of another size, some only observe what was recorded,
with the provider's usage. So a Prometheus that scrapes it sees windows fill, evictions, compactions and alerts.
Run it with `python -m windowpane.cli.demonstration.live`.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple

import click

from windowpane.alerts.rules import configured
from windowpane.cli.demonstration.play import LONG_SESSION, DemoRecording, recorded_sessions
from windowpane.cli.options import StoreOption
from windowpane.core.events import Event, EventContext, TurnEnded
from windowpane.effects.stop_request import StopRequest
from windowpane.evaluation.replay.rerun import RerunOptions, managed_events
from windowpane.models.tokens import counter_for
from windowpane.outputs.http.authentication import read_token
from windowpane.outputs.http.http_server import DEFAULT_PORT, LOOPBACK
from windowpane.outputs.http.maintenance import StoreMaintenance
from windowpane.outputs.runtime.start import Runtime, start
from windowpane.sources.imports.pipeline import playback_settings
from windowpane.sources.transcripts.playback import session_events

PACE_SECONDS: Final = 2.0
UPKEEP_SECONDS: Final = 600.0
RETAINED_DAYS: Final = 1.0
RETAINED_BYTES: Final = 500_000_000
"""Size of the store of a demo that runs for weeks."""


class Worker(NamedTuple):
    """One agent, its recording, and the window it is managed in."""

    agent: str
    recorded: DemoRecording
    limit_tokens: int | None
    """None where the recording is observed without being managed."""


def workers() -> list[Worker]:
    """Return workers that manage the long recording in three sizes, and observe one recording of each format."""
    chosen: dict[str, DemoRecording] = {}
    for recorded in recorded_sessions(now=time.time()):
        chosen.setdefault(recorded.name, recorded)
    managed = [
        Worker(f"worker-{size // 1_024}k", chosen[LONG_SESSION], size) for size in (8_192, 32_768, 131_072)
    ]
    return managed + [Worker(one.source, one, None) for one in chosen.values()]


def turns(worker: Worker, runtime: Runtime, number: int) -> Iterator[list[Event]]:
    """Yield one session of *worker* as a list of events per turn, with the present as their time."""
    session_id = f"{worker.agent}-{time.time_ns() // 1_000_000}-{number}"
    events = _observed if worker.limit_tokens is None else _managed
    turn: list[Event] = []
    for event in events(worker, runtime, session_id):
        turn.append(event._replace(at=time.time()))
        if isinstance(event.data, TurnEnded):
            yield turn
            turn = []
    if turn:
        yield turn


def _managed(worker: Worker, runtime: Runtime, session_id: str) -> Iterator[Event]:
    assert worker.limit_tokens is not None
    rerun = RerunOptions(
        session_id=session_id,
        limit_tokens=worker.limit_tokens,
        counter=counter_for("gpt-4o", wait=True),
        digest=runtime.digest,
        agent=worker.agent,
        source="live",
    )
    yield from managed_events(worker.recorded.records, key=worker.recorded.key, options=rerun)


def _observed(worker: Worker, runtime: Runtime, session_id: str) -> Iterator[Event]:
    """Yield the recorded events under a new session id, so that every repetition is another session."""
    recorded = worker.recorded
    playback = playback_settings(runtime.digest, agent=worker.agent)
    before: EventContext | None = None
    context: EventContext | None = None
    for event in session_events(recorded.records, key=recorded.key, source=recorded.source, playback=playback):
        if event.context is not before or context is None:
            before = event.context
            stream = f"{session_id}:{before.stream_id}"
            context = replace(before, session_id=session_id, source="live", stream_id=stream)
        yield event._replace(context=context)


def work(worker: Worker, runtime: Runtime, stop: threading.Event, *, pace_seconds: float, sessions: int) -> None:
    """Play session after session until *stop* is set, or *sessions* of them where that is above zero."""
    for number in count():
        if sessions and number >= sessions:
            return
        for batch in turns(worker, runtime, number):
            runtime.emit(batch)
            if stop.wait(pace_seconds):
                return


def prune_store(runtime: Runtime) -> int:
    """Delete old sessions; returns their number."""
    store = runtime.store
    if store is None:
        return 0
    return StoreMaintenance(store, rules=configured(**runtime.config.alert_settings())).prune(
        days=RETAINED_DAYS, max_bytes=RETAINED_BYTES
    )


def token_of(file: Path) -> str:
    """Return the token in *file*, which is created first if it is missing.

    Any user may read a new file: it is in a volume of the demo's own, and Prometheus runs as another user.
    """
    if not file.exists():
        file.write_text(secrets.token_urlsafe(32), encoding="utf-8")
        file.chmod(0o444)
    return read_token(file)


@click.command()
@click.option("--address", default=LOOPBACK, show_default=True, help="Address /metrics listens on.")
@click.option("--port", type=click.IntRange(0, 65_535), default=DEFAULT_PORT, show_default=True)
@click.option("--store", type=StoreOption(), help="Where events are stored.")
@click.option(
    "--pace", type=click.FloatRange(min=0), default=PACE_SECONDS, show_default=True, help="Seconds per turn."
)
@click.option(
    "--sessions", type=click.IntRange(min=0), default=0, help="Sessions each agent plays; 0 for no limit."
)
@click.option("--session-label", type=click.IntRange(0, 1_000), default=20, show_default=True)
@click.option("--public-url", help="Address of the dashboard, for links in messages.")
@click.option(
    "--bearer-token-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File of the token that a scrape needs; created with a random one if it is missing.",
)
def main(
    *,
    address: str,
    port: int,
    store: Path | None,
    pace: float,
    sessions: int,
    session_label: int,
    public_url: str | None,
    bearer_token_file: Path | None,
) -> None:
    """Play recorded agents live until Ctrl-C."""
    requested, stop = StopRequest(), threading.Event()
    token = None if bearer_token_file is None else token_of(bearer_token_file)
    with start(
        address=address,
        port=port,
        store=store,
        session_label=session_label,
        public_url=public_url,
        settings={} if token is None else {"server": {"bearer_token": token}},
    ) as runtime:
        click.echo(f"metrics on {runtime.url}")
        running = [
            threading.Thread(
                target=work, args=(worker, runtime, stop), kwargs={"pace_seconds": pace, "sessions": sessions}
            )
            for worker in workers()
        ]
        for thread in running:
            thread.start()
        while not requested.wait(UPKEEP_SECONDS):
            prune_store(runtime)
        stop.set()
        for thread in running:
            thread.join()


if __name__ == "__main__":
    main()
