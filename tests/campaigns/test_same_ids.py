"""Campaign: recordings of every format that state the ids of each other's sessions keep every file's calls."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest
from built_recordings import BUILT
from test_fuzz import FORMATS, excerpts

from windowpane.core.events import BlockAdded
from windowpane.sources.imports.importer import import_paths
from windowpane.sources.imports.pipeline import AlertingStore, playback_settings
from windowpane.sources.transcripts.discovery import all_readers, reader_for
from windowpane.sources.transcripts.playback import session_events, session_keys
from windowpane.sources.transcripts.playback_settings import PlaybackSettings
from windowpane.sources.transcripts.reader import FileStats
from windowpane.store.embedded import SqliteStore
from windowpane.store.filters import EventFilter

TEXTS = frozenset(
    {
        "arguments", "city", "cmd", "command", "content", "message", "name", "observation", "output", "path",
        "reasoning", "text", "thinking", "thought",
    }
)  # fmt: skip
REPLIES = frozenset({"assistant_response", "thinking", "tool_call"})
SHARED_CALLS = frozenset({"api_messages", "langfuse", "litellm_logs", "litellm proxy"})
"""Formats whose copies have a call in common: one without content, or the one whose reply names the session."""
LONG_ID = 20
"""Shorter ids are counted up by each session, so they may be the same in others."""
COPIES = 4


def altered(value: Any, number: int, kept: frozenset[str], key: str = "") -> Any:
    """Return a copy with other texts and other unique ids, but those of the sessions."""
    if isinstance(value, dict):
        return {name: altered(item, number, kept, name) for name, item in value.items()}
    if isinstance(value, list):
        return [altered(item, number, kept, key) for item in value]
    if not isinstance(value, str) or not value or any(value in one or one in value for one in kept):
        return value
    if key in TEXTS and value[0] not in "{[":
        return f"{value} (copy {number})"
    is_id = key.lower().endswith("id") and len(value) >= LONG_ID and " " not in value
    return f"{value}{number}" if is_id else value


def copy_of(content: bytes, number: int, kept: frozenset[str], random: Random) -> bytes:
    """Return another recording of the same ids, often shorter."""
    try:
        return json.dumps(altered(json.loads(content), number, kept)).encode()
    except ValueError:
        lines = content.splitlines()
    lines = lines[: random.choice((len(lines), random.randint(len(lines) // 2, len(lines))))]
    return b"".join(_line(line, number, kept) + b"\n" for line in lines)


def _line(line: bytes, number: int, kept: frozenset[str]) -> bytes:
    try:
        return json.dumps(altered(json.loads(line), number, kept)).encode()
    except ValueError:  # Markdown
        return line if line.startswith((b"#", b">")) or not line.strip() else line + b" %d" % number


def calls_in(path: Path, playback: PlaybackSettings) -> tuple[tuple[str, ...], set[str]]:
    """Return the keys of a file's sessions, and the digests of the replies in them."""
    reader = reader_for(path, all_readers(complete=True))
    records = list(reader.read(path, stats=FileStats(), problems=[]))
    keys = session_keys(records)
    events = (
        event
        for key in keys
        for event in session_events(records, key=key, source=reader.format, playback=playback)
    )
    return keys, set(_replies(event.data for event in events))


def _replies(payloads: Iterator[Any]) -> Iterator[str]:
    for data in payloads:
        if isinstance(data, BlockAdded) and data.block.content_type in REPLIES and data.block.digest:
            yield data.block.digest


def originals(sessions: Path) -> dict[str, list[tuple[str, bytes]]]:
    files = {name: excerpts(sessions / name) for name in FORMATS}
    files |= {name: [file] for name, file in BUILT.items() if file[0] not in (".sqlite", ".eval")}
    return {name: originals for name, originals in files.items() if name not in SHARED_CALLS}


@pytest.mark.timeout(0)
def test_no_file_loses_a_call_to_another_one(campaign, sessions_dir: Path, tmp_path: Path) -> None:
    tried = held = lost = collisions = 0
    for name, files in originals(sessions_dir).items():
        for seed in range(campaign.attempts(sample=1, whole=40)):
            random = Random(seed)
            suffix, content = random.choice(files)
            folder = tmp_path / f"{tried}"
            missing, collided = _import_copies(folder, name, suffix, content, random)
            tried, held, lost = tried + 1, held + (not missing), lost + missing
            collisions += collided
    campaign.record(
        "recordings that state the same ids", tried=tried, held=held, lost=lost,
        note=f"{collisions:,} files with the ids of another; lost: replies of a file that are not stored",
    )  # fmt: skip

    assert (held, lost) == (tried, 0)
    assert collisions > tried


def _import_copies(folder: Path, name: str, suffix: str, content: bytes, random: Random) -> tuple[int, int]:
    """Import copies; return how many of their replies are not stored, and how many files have another's ids."""
    folder.mkdir()
    path = folder / f"original{suffix}"
    path.write_bytes(content)
    with closing(SqliteStore(folder / "windowpane.db")) as store:
        playback = playback_settings(store.digester(), with_fidelity=False)
        kept = frozenset(part for key in calls_in(path, playback)[0] for part in key.split("/") if len(part) > 3)
        path.unlink()
        paths = []
        for number in range(COPIES):
            paths.append(folder / str(number) / f"{name.replace(' ', '_')}{suffix}")
            paths[-1].parent.mkdir()
            paths[-1].write_bytes(copy_of(content, number, kept, random))
            os.utime(paths[-1], (1_770_000_000, 1_770_000_000))
        read = [calls_in(one, playback) for one in paths]
        random.shuffle(paths)
        for _ in range(2):  # the second import changes nothing
            reports = import_paths(paths, AlertingStore(store), playback=playback, readers=all_readers())
            assert [report.error for report in reports] == [""] * COPIES
        assert sum(outcome.appended for report in reports for outcome in report.outcomes) == 0
        assert store.verify().intact
        stored: set[str] = set()
        for row in store.sessions():
            events = store.events(EventFilter(session_id=row.session_id, limit=1_000_000))
            stored.update(_replies(one.event.data for one in events))
    keys = [set(one) for one, _ in read]
    collided = sum(any(keys[n] & other for other in keys[:n]) for n in range(COPIES))
    return sum(len(replies - stored) for _, replies in read), collided
