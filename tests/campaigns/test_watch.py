"""Campaign: `windowpane watch` is killed and started again while agents write their transcripts."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from tests.campaigns.conftest import Campaign

from windowpane.store.embedded import SqliteStore

RECORDINGS = ("claude_code/compact_small_a6", "codex/rollout_compact2_spark", "pi/large-session")
ROUNDS = 80
"""Pieces in which the transcripts grow, ten a second: sessions of many minutes, fifty times faster or more."""
PATIENCE_SECONDS = 30.0
"""The last pieces may hold nothing that is stored."""


def test_killed_watchers(campaign: Campaign, sessions_dir: Path, tmp_path: Path) -> None:
    """The store holds each session as an import of the finished transcript gives it, and the chains verify.

    An import compares all events with those that are stored: where one was lost or stored twice, it starts a new
    revision of the session.
    """
    chance = random.Random(29)
    tried, held, lost, kills = campaign.attempts(sample=1, whole=20), 0, 0, 0
    for number in range(tried):
        folder = tmp_path / str(number)
        kills += _watch_while_written(folder, sessions_dir, chance)
        assert _watch(folder, "--once").wait(120) == 0
        with closing(SqliteStore(folder / "watched.db")) as store:
            sessions = {row.session_id: row for row in store.sessions()}
            revised = sum(row.revision > 1 for row in sessions.values())
            assert {row.source for row in sessions.values()} == {"claude_code", "codex", "pi"}
            held += not revised and store.verify().intact
            lost += revised

    campaign.record("kill -9 of watch", tried=tried, held=held, lost=lost, note=f"{kills} kills; lost: sessions")
    assert held == tried


def _watch_while_written(folder: Path, recordings: Path, chance: random.Random) -> int:
    """Let transcripts grow while watchers are killed once they have stored something; return how many."""
    transcripts = folder / "transcripts"
    transcripts.mkdir(parents=True)
    growth = _growth(transcripts, recordings, chance)
    kills = 0
    while next(growth, False):
        stored, watcher = _stored_events(folder), _watch(folder)
        patience = time.monotonic() + PATIENCE_SECONDS
        while _stored_events(folder) == stored and time.monotonic() < patience:
            time.sleep(0.1)
            next(growth, None)
        kills += _stored_events(folder) > stored
        for _ in range(chance.randrange(20)):
            time.sleep(0.1)
            next(growth, None)
        watcher.send_signal(signal.SIGKILL)
        watcher.wait(30)
    assert kills, "no watcher stored anything before it was killed"
    return kills


def _stored_events(folder: Path) -> int:
    path = folder / "watched.db"
    if not path.exists():
        return 0
    with closing(SqliteStore(path)) as store:
        return store.size().events


def _watch(folder: Path, *options: str) -> subprocess.Popen[bytes]:
    command = ["-m", "windowpane", "watch", "--port", "0", "--store", str(folder / "watched.db"), *options]
    return subprocess.Popen([sys.executable, *command, str(folder / "transcripts")], stdout=subprocess.DEVNULL)


def _growth(folder: Path, recordings: Path, chance: random.Random) -> Iterator[bool]:
    """Append to every transcript each time, pieces that end anywhere in a line."""
    sources = [next(iter(sorted(recordings.glob(f"{name}*")))) for name in RECORDINGS]
    pieces = [list(_pieces(source.read_bytes(), chance)) for source in sources]
    for at in range(ROUNDS):
        for source, own in zip(sources, pieces, strict=True):
            with (folder / source.name).open("ab") as file:
                file.write(b"".join(own[at * len(own) // ROUNDS : (at + 1) * len(own) // ROUNDS]))
        yield True


def _pieces(whole: bytes, chance: random.Random) -> Iterator[bytes]:
    start = 0
    while start < len(whole):
        end = start + chance.randrange(1, max(2, len(whole) // 60))
        yield whole[start:end]
        start = end
