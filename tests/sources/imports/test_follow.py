"""A growing transcript is followed: only what is new is read, and the events are those of an import."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from windowpane.core.codec import encode
from windowpane.core.digests import keyed_digester
from windowpane.core.events import Event
from windowpane.sources.imports.follow import FollowedFile, LineReader, Rewritten
from windowpane.sources.imports.importer import import_file
from windowpane.sources.imports.pipeline import playback_settings
from windowpane.sources.transcripts.discovery import all_readers, reader_for
from windowpane.sources.transcripts.formats.claude_code.reader import ClaudeCodeReader
from windowpane.sources.transcripts.playback import DeferredPlayer, session_events, session_keys
from windowpane.sources.transcripts.playback_settings import PlaybackSettings
from windowpane.sources.transcripts.reader import FileStats
from windowpane.store.embedded import SqliteStore

SESSION = "0a1b2c3d-0000-4000-8000-000000000001"
RECORDED = (
    "claude_code/compact_small_a6-e4c2a0fbd1-0.jsonl",
    "claude_code/daaain_session_b.jsonl",
    "codex/*.jsonl",
    "pi/*.jsonl",
)


@pytest.fixture(scope="module")
def playback() -> PlaybackSettings:
    return playback_settings(keyed_digester(b"tests"))


def rows(calls: int, *, start: int = 0) -> bytes:
    """Calls of a Claude Code session as it writes them."""
    lines = []
    for number in range(start, start + calls):
        common = {"sessionId": SESSION, "parentUuid": None, "timestamp": f"2026-01-01T10:{number % 60:02}:00Z"}
        request = {"role": "user", "content": f"Request {number} " + "text " * 20}
        lines.append({"type": "user", "uuid": f"u{number}", "message": request, **common})
        reply = {"role": "assistant", "id": f"m{number}", "model": "claude-of-tests",
                 "usage": {"input_tokens": 100 * number + 100, "output_tokens": 9},
                 "content": [{"type": "text", "text": f"Reply {number}"}]}  # fmt: skip
        lines.append({"type": "assistant", "uuid": f"a{number}", "message": reply, **common})
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def imported(path: Path, playback: PlaybackSettings) -> list[bytes]:
    """The events that an import of the present file would store, without alerts."""
    reader = reader_for(path, all_readers(complete=False))
    read: Callable[[], Any] = partial(reader.read, path, stats=FileStats(), problems=[])
    events: list[Event] = []
    for key in session_keys(read()):
        events += session_events(read(), key=key, source=reader.format, playback=playback)
    return sorted(encode(event) for event in events)


def follow(path: Path, playback: PlaybackSettings) -> FollowedFile:
    reader = reader_for(path, all_readers(complete=False))
    assert isinstance(reader, LineReader)
    return FollowedFile(path, reader, playback)


def read(followed: FollowedFile) -> list[Event]:
    return [event for piece in followed.pieces() for event in piece]


def test_only_appended_rows_are_read(tmp_path: Path, playback: PlaybackSettings) -> None:
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_bytes(rows(5))
    followed = follow(path, playback)
    events = read(followed)
    assert read(followed) == []

    before = followed.offset
    with path.open("ab") as file:
        file.write(rows(3, start=5))
    events += read(followed)

    assert followed.offset == path.stat().st_size > before
    assert sorted(encode(event) for event in events) == imported(path, playback)


def test_half_a_line_waits_for_its_end(tmp_path: Path, playback: PlaybackSettings) -> None:
    path = tmp_path / f"{SESSION}.jsonl"
    whole = rows(6)
    path.write_bytes(b"")
    followed = FollowedFile(path, ClaudeCodeReader(complete=False), playback)
    events: list[Event] = []
    for start in range(0, len(whole), 97):
        with path.open("ab") as file:
            file.write(whole[start : start + 97])
        events += read(followed)

    assert sorted(encode(event) for event in events) == imported(path, playback)
    assert followed.problems == []


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_session_followed_is_the_session_imported(
    sessions_dir: Path, tmp_path: Path, playback: PlaybackSettings, name: str
) -> None:
    source = min(sessions_dir.glob(name), key=lambda file: file.stat().st_size)
    whole = source.read_bytes().rstrip(b"\n") + b"\n"
    path = tmp_path / source.name
    lines = whole.splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:10]))
    followed = follow(path, playback)
    events = read(followed)
    for start in range(10, len(lines), 7):
        with path.open("ab") as file:
            file.write(b"".join(lines[start : start + 7]))
        events += read(followed)

    assert sorted(encode(event) for event in events) == imported(path, playback)


def tree(seed: int) -> bytes:
    """A session of pi whose user rewinds to random entries, with compactions and summaries of branches."""
    chance = random.Random(seed)  # test data
    header = {
        "type": "session",
        "version": 3,
        "id": f"tree-{seed}",
        "cwd": "/",
        "timestamp": "2026-01-01T00:00:00Z",
    }
    lines: list[Any] = [header]
    ids: list[str | None] = [None]
    for number in range(60):
        parent = ids[-1] if chance.random() < 0.8 else chance.choice(ids)
        entry = {"id": f"e{number}", "parentId": parent, "timestamp": f"2026-01-01T00:00:{number:02}Z"}
        kind = chance.choice(["user", "assistant", "assistant", "label", "compaction", "branch_summary"])
        if kind in ("user", "assistant"):
            message = {
                "role": kind,
                "content": [{"type": "text", "text": f"text {number} " * chance.randint(1, 40)}],
            }
            if kind == "assistant":
                message |= {"model": "m", "usage": {"input": chance.randint(1, 900), "output": 3}}
            lines.append(entry | {"type": "message", "message": message})
        else:
            lines.append(entry | {"type": kind, "summary": "so far", "firstKeptEntryId": chance.choice(ids)})
        ids.append(f"e{number}")
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


@pytest.mark.parametrize("seed", range(12))
def test_a_followed_tree_gives_the_events_of_an_import(
    tmp_path: Path, playback: PlaybackSettings, seed: int
) -> None:
    path = tmp_path / "tree.jsonl"
    whole = tree(seed)
    path.write_bytes(whole[:200])
    followed = follow(path, playback)
    events = read(followed)
    chance = random.Random(seed)  # test data
    start = 200
    while start < len(whole):
        end = start + chance.randint(1, 1_500)
        with path.open("ab") as file:
            file.write(whole[start:end])
        events += read(followed)
        start = end

    assert sorted(encode(event) for event in events) == imported(path, playback)
    assert any(event.type == "history.rewound" for event in events)


def test_a_stored_tree_has_the_window_of_its_live_branch(tmp_path: Path, playback: PlaybackSettings) -> None:
    with closing(SqliteStore(tmp_path / "store.db")) as store:
        for seed in range(6):
            path = tmp_path / f"tree-{seed}.jsonl"
            path.write_bytes(tree(seed))
            import_file(path, store, playback=playback, readers=all_readers(complete=True))
            player = DeferredPlayer(f"tree-{seed}", "pi", playback, [])
            for record in reader_for(path, all_readers(complete=True)).read(path, stats=FileStats(), problems=[]):
                player.play(record)
            assert player._player is not None
            window = [block.id for block in player._player.tracker.window]

            assert [row.block_id for row in store.blocks_at(f"pi:tree-{seed}", 10**6)] == window
        assert store.verify().intact


@pytest.mark.parametrize("change", ["shorter", "other", "replaced"])
def test_a_rewritten_file_is_noticed(tmp_path: Path, playback: PlaybackSettings, change: str) -> None:
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_bytes(rows(5))
    followed = follow(path, playback)
    read(followed)
    if change == "shorter":
        path.write_bytes(rows(3))
    elif change == "other":
        path.write_bytes(rows(5).replace(b"Reply 4", b"Reply 9") + rows(1, start=5))
    else:
        other = tmp_path / "other"
        other.write_bytes(rows(6))
        other.replace(path)

    with pytest.raises(Rewritten):
        read(followed)
