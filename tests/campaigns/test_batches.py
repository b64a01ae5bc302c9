"""Campaign: a session is stored in batches that start with any event; the store holds what one batch gives."""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from tests.campaigns.conftest import Campaign
from tests.servers.postgres import PostgresServer

from windowpane.alerts.engine import AlertEngine
from windowpane.core.digests import keyed_digester
from windowpane.core.events import BlockAdded, Event
from windowpane.core.redaction import redact
from windowpane.exceptions import UnknownFormatError
from windowpane.sources.imports.pipeline import playback_settings
from windowpane.sources.transcripts.discovery import all_readers, files_of, reader_for
from windowpane.sources.transcripts.playback import session_events, session_keys
from windowpane.sources.transcripts.reader import FileStats
from windowpane.store.filters import EventFilter
from windowpane.store.open import open_store
from windowpane.store.search.content import ContentFilter
from windowpane.store.store import Store

Contents = dict[str, Any]
Batches = Iterable[Sequence[Event]]

ORDERS = {
    "events": "seq", "sessions": "key", "turns": "session, turn", "blocks": "session, block_id",
    "alerts": "session, alert, crossing_turn", "late_events": "session, turn, seq", "call_ids": "session, call",
    "session_days": "session, day, agent, model, release", "contents": "digest",
}  # fmt: skip
SEARCHED = ("error", "the", "deployment")
SMALL = (
    "claude_code/tiny_c9*", "claude_code/compact_small*", "claude_code/compact_micro*", "codex/rollout_small*",
    "gemini_cli/session_small_12*", "openhands/v1_goal*", "copilot_cli/events_tiny*", "api_messages/openai*",
)  # fmt: skip
SMALL_EVENTS = 60
"""Up to this length a session is cut in two at each of its boundaries."""
CORPUS_VARIABLE = "WINDOWPANE_CORPUS_DIR"
"""A folder of further, long recordings for the long form."""


def test_batches_may_start_with_any_event(campaign: Campaign, sessions_dir: Path, tmp_path: Path) -> None:
    """Events, projections, captured texts and search are the same wherever the batches are cut.

    Batches of n events from each of the first n are all sequences of n events. In batches of one, each event
    meets only what is stored; of a session cut in two, the rest follows in one batch.
    """
    tried, failures, files = 0, list[str](), 0
    for path in _recordings(campaign, sessions_dir):
        files += 1
        for events in _sessions(path):
            whole = _stored(tmp_path, [events])
            for name, batches in _cuts(events, whole_campaign=campaign.whole):
                tried += 1
                failures += _differences(whole, partial(_stored, tmp_path, batches), f"{path.name} {name}")

    note = f"{files} recordings"
    campaign.record("batches that start with any event", tried=tried, held=tried - len(failures), note=note)
    assert not failures, failures[:10]


def test_recordings_imported_while_they_grow(campaign: Campaign, sessions_dir: Path, tmp_path: Path) -> None:
    chance, tried, failures = random.Random(3), 0, list[str]()
    for path in _recordings(campaign, sessions_dir):
        for events in _sessions(path):
            whole = _imported(tmp_path, [events])
            for _ in range(campaign.attempts(sample=1, whole=3)):
                ends = sorted(chance.sample(range(1, len(events)), min(len(events) - 1, 4)))
                grown = [events[:end] for end in [*ends, len(events)]]
                tried += 1
                failures += _differences(whole, partial(_imported, tmp_path, grown), f"{path.name} {ends}")

    campaign.record("recordings imported while they grow", tried=tried, held=tried - len(failures))
    assert not failures, failures[:10]


def test_built_session_in_any_three_batches(campaign: Campaign, sessions_dir: Path, tmp_path: Path) -> None:
    events = _built(sessions_dir)
    whole, imported = _stored(tmp_path, [events]), _imported(tmp_path, [events])
    pairs = list(combinations(range(1, len(events)), 2))
    if not campaign.whole:
        pairs = random.Random(5).sample(pairs, 8)
    failures = list[str]()
    for first, second in pairs:
        cut = [events[:first], events[first:second], events[second:]]
        grown = [events[:first], events[:second], events]
        failures += _differences(whole, partial(_stored, tmp_path, cut), f"cut at {first}, {second}")
        failures += _differences(imported, partial(_imported, tmp_path, grown), f"grown from {first}, {second}")

    tried = 2 * len(pairs)
    campaign.record("built session in any three batches", tried=tried, held=tried - len(failures))
    assert not failures, failures[:10]
    previews = {row[2] for row in whole["contents"]}
    assert {"the token is [redacted:github_token]", "of the deployment"} <= previews


@pytest.mark.server
def test_batches_in_postgresql(campaign: Campaign, sessions_dir: Path, postgres_server: PostgresServer) -> None:
    failures = list[str]()
    sessions = [_built(sessions_dir)]
    if campaign.whole:
        sessions += [events for pattern in SMALL for events in _sessions(next(sessions_dir.glob(pattern)))]
    cuts = ((1, 0), (2, 0), (2, 1))
    for number, events in enumerate(sessions):
        whole = _written(postgres_server.create_database(), [events])
        for size, offset in cuts:
            url, batches = postgres_server.create_database(), list(_pieces(events, size, offset))
            failures += _differences(whole, partial(_written, url, batches), f"session {number} by {size}")

    tried = len(cuts) * len(sessions)
    campaign.record("batches that start with any event, PostgreSQL", tried=tried, held=tried - len(failures))
    assert not failures, failures[:10]


# -- recordings and cuts --------------------------------------------------------------------------------------


def _recordings(campaign: Campaign, sessions_dir: Path) -> Iterator[Path]:
    if not campaign.whole:
        yield from (next(iter(sorted(sessions_dir.glob(pattern)))) for pattern in SMALL)
        return
    further = os.environ.get(CORPUS_VARIABLE)
    yield from files_of([sessions_dir, *([Path(further)] if further else [])])


def _sessions(path: Path) -> Iterator[list[Event]]:
    """Yield the events of each session of a recording, with its alerts; nothing of a file of another kind."""
    try:
        reader: Any = reader_for(path, all_readers(complete=True))
    except UnknownFormatError:
        return
    playback = playback_settings(keyed_digester(b"k" * 32), limit_tokens=60_000)
    records = list(reader.read(path, stats=FileStats(), problems=[]))
    for key in session_keys(records):
        played = session_events(records, key=key, source=reader.format, playback=playback)
        events = list(AlertEngine().interleave(played))
        if len(events) > 1:
            yield events


def _built(sessions_dir: Path) -> list[Event]:
    """Return a short session whose first message is empty, repeated, and holds a secret over two blocks."""
    events = next(_sessions(next(sessions_dir.glob(SMALL[0]))))
    number, first = next((n, e) for n, e in enumerate(events) if isinstance(e.data, BlockAdded))
    assert isinstance(first.data, BlockAdded)
    texts = (
        "", "the token is ghp_aB3dE6gH9jK2", "mN5pQ8sT1vW4yZ7bC0fG6hJ6kL9x of the deployment", "",
        "again and again", "again and again", "another message",
    )  # fmt: skip
    digest = keyed_digester(b"k" * 32)
    blocks = [
        replace(first.data.block, id=f"built-{n}", text=text, digest=digest(text)) for n, text in enumerate(texts)
    ]
    added = [first._replace(data=BlockAdded(block)) for block in blocks]
    numbers: Counter[str] = Counter()
    built = []
    for event in [*events[:number], *added, *events[number + 1 :]]:
        stream = event.context.stream_id
        built.append(event._replace(n=numbers[stream]))
        numbers[stream] += 1
    return built


def _cuts(events: Sequence[Event], *, whole_campaign: bool) -> Iterator[tuple[str, list[Sequence[Event]]]]:
    for size in (1, 2, 3, 7) if whole_campaign else (1, 2):
        for offset in range(size):
            yield f"by {size} from {offset}", list(_pieces(events, size, offset))
    boundaries: Sequence[int] = range(1, len(events))
    sample = 3 if not whole_campaign else 20 if len(events) > SMALL_EVENTS else len(boundaries)
    boundaries = random.Random(len(events)).sample(boundaries, min(sample, len(boundaries)))
    for boundary in boundaries:
        yield f"at {boundary}", [events[:boundary], events[boundary:]]


def _pieces(events: Sequence[Event], size: int, offset: int) -> Iterator[Sequence[Event]]:
    if offset:
        yield events[:offset]
    for start in range(offset, len(events), size):
        yield events[start : start + size]


# -- stores ---------------------------------------------------------------------------------------------------


def _differences(whole: Contents, store: Callable[[], Contents], name: str) -> list[str]:
    """Return what differs from the session that was stored at once, with the first row; empty if nothing does."""
    try:
        contents = store()
    except Exception as error:  # noqa: BLE001  # the campaign reports it
        return [f"{name}: {error!r:.200}"]
    for table, expected in whole.items():
        if contents[table] != expected:
            pairs = zip(contents[table], expected, strict=False)
            return [
                f"{name}: {table}: {next((str(pair) for pair in pairs if pair[0] != pair[1]), 'length'):.600}"
            ]
    return []


def _stored(folder: Path, batches: Batches) -> Contents:
    try:
        return _written(str(folder / "batches" / "s.db"), batches)
    finally:
        shutil.rmtree(folder / "batches", ignore_errors=True)


def _written(name: str, batches: Batches) -> Contents:
    with closing(_open(name)) as store:
        for batch in batches:
            store.append(batch)
        return _contents(store)


def _imported(folder: Path, recordings: Batches) -> Contents:
    """Import longer and longer recordings of a session, each with a store that was opened for it."""
    try:
        for recording in recordings:
            with closing(_open(str(folder / "grown" / "s.db"))) as store:
                outcome = store.import_session(partial(iter, recording))
                assert not outcome.revised
        with closing(_open(str(folder / "grown" / "s.db"))) as store:
            return _contents(store)
    finally:
        shutil.rmtree(folder / "grown", ignore_errors=True)


def _open(name: str) -> Store:
    return open_store(name, capture=True, redact=lambda text: redact(text).text)


def _contents(store: Store) -> Contents:
    while store.index_text():
        pass
    with store._engine.lend() as database:
        contents: Contents = {
            table: [tuple(row) for row in database.execute(f"SELECT * FROM {table} ORDER BY {order}").fetchall()]
            for table, order in ORDERS.items()
        }
    for word in SEARCHED:
        matches = store.find_content(ContentFilter(word, limit=100_000)).hits
        contents[f"texts with {word}"] = sorted(repr(match) for match in matches)
        found = store.events(EventFilter(text=word, limit=50))
        contents[f"events with {word}"] = [item.seq for item in found]
    contents["broken"] = list(store.verify().broken)
    assert not contents["broken"]
    return contents
