"""Damaged recordings of every format are read to the end and stored, without an exception and without a stall."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from copy import deepcopy
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from built_recordings import BUILT

from windowpane.core.events import Event
from windowpane.exceptions import OtherSessionError, SourceError
from windowpane.sources.transcripts.discovery import all_readers, reader_for
from windowpane.sources.transcripts.playback import session_events, session_keys
from windowpane.sources.transcripts.playback_settings import PlaybackSettings
from windowpane.sources.transcripts.reader import MAXIMUM_PROBLEMS, FileStats, Problem
from windowpane.store.embedded import SqliteStore
from windowpane.testing import CharacterCounter

FORMATS = (
    "aider",
    "api_messages",
    "claude_code",
    "codex",
    "copilot_cli",
    "gemini_cli",
    "inspect_ai",
    "litellm_logs",
    "mini_swe_agent",
    "opencode",
    "openhands",
    "otel_otlp",
    "pi",
    "swe_agent",
    "tau2_bench",
    "tau_bench",
)
EXCERPT_BYTES = 12_000
EXCERPT_ITEMS = 6
EXCERPT_CHARACTERS = 400
SLOWEST_SECONDS = 5.0
"""Processor time for an excerpt; reading one takes a few milliseconds."""
IMPORTS_PER_STORE = 20
MAXIMUM_IMPORTS = 10_000
"""Damaged recordings of one format that are stored: verifying takes three times as long as reading."""
ODD = (
    b"", b"\x00", b"\xff\xfe", b"\xed\xa0\x80", b'"', b"{", b"}" * 40, b"[" * 3_000, b"null", b"NaN", b"-1",
    b"true", b"9" * 400, b"1e999", b'"\\ud800"', b'{"type":', b"\r\n\r\n", b" " * 2_000,
    b'"2026-13-45T99:99:99Z"', b"[[],{}]",
)  # fmt: skip
ODD_VALUES: tuple[Any, ...] = (
    None, True, -1, 2**63, 2**70, 10**400, 1.5, float("nan"), float("inf"), 1e308, "", "\0", "x" * 300,
    [], {}, [1], [[]], {"type": "text"}, "2026-13-45", "\ud800", {"content": {"content": []}},
)  # fmt: skip
PLAYBACK = PlaybackSettings(digest=str, counter_for=lambda _: CharacterCounter())


def mutated(content: bytes, random: Random) -> bytes:
    """Return *content* with up to eight spans changed, doubled, deleted, moved or replaced by odd values."""
    changed = bytearray(content)
    for _ in range(random.randint(1, 8)):
        at = random.randrange(len(changed) + 1)
        end = min(len(changed), at + random.choice((1, 4, 40, 400)))
        match random.randrange(6):
            case 0:
                changed[at:end] = b""
            case 1:
                changed[at:at] = changed[at:end]
            case 2:
                changed[at:end] = random.choice(ODD)
            case 3 if at < len(changed):
                changed[at] ^= 1 << random.randrange(8)
            case 4:
                cut = random.randrange(len(changed) + 1)
                changed = changed[cut:] + changed[:cut]
            case _:
                changed[at:at] = random.choice(ODD)
    return bytes(changed)


def disturbed(content: bytes, random: Random) -> bytes:
    """Return a JSON document with up to five values, at any path, deleted or replaced by odd ones."""
    try:
        document = json.loads(content)
    except ValueError:
        return mutated(content, random)
    for _ in range(random.randint(1, 5)):
        value: Any = document
        while isinstance(value, dict | list) and value:
            key = random.choice(list(value) if isinstance(value, dict) else range(len(value)))
            if isinstance(value[key], dict | list) and value[key] and random.random() < 0.75:
                value = value[key]
                continue
            if random.random() < 0.3:
                del value[key]
            else:
                value[key] = deepcopy(random.choice(ODD_VALUES))  # later ones write into it
            break
    return json.dumps(document).encode()


def damaged(content: bytes, random: Random) -> bytes:
    """Return *content* damaged in its bytes or in its values."""
    return (disturbed if random.random() < 0.5 else mutated)(content, random)


def excerpts(folder: Path) -> list[tuple[str, bytes]]:
    """Return the start of each recording by lines, and the three shortest documents, with suffixes."""
    paths = [path for path in sorted(folder.iterdir()) if path.suffix in (".json", ".jsonl", ".md", ".traj")]
    lines = [path.read_bytes() for path in paths if path.suffix == ".jsonl"]
    documents = [(path.suffix, path.read_bytes()) for path in paths if path.suffix != ".jsonl"]
    return [(".json", content[: content.find(b"\n", EXCERPT_BYTES) + 1] or content) for content in lines] + [
        (suffix, shortened(content)) for suffix, content in sorted(documents, key=lambda one: len(one[1]))[:3]
    ]


def shortened(document: bytes) -> bytes:
    """Return a JSON document with the start of each list and text; another document as it is."""

    def start(value: Any) -> Any:
        match value:
            case dict():
                return {key: start(item) for key, item in value.items()}
            case list():
                return [start(item) for item in value[:EXCERPT_ITEMS]]
            case str():
                return value[:EXCERPT_CHARACTERS]
            case _:
                return value

    try:
        return json.dumps(start(json.loads(document))).encode()
    except ValueError:
        return document


def read_all(path: Path) -> list[list[Event]]:
    """Read a file as an import does, and return the events of each session; none if it is refused."""
    problems: list[Problem] = []
    try:
        reader = reader_for(path, all_readers(complete=True))
        records = list(reader.read(path, stats=FileStats(), problems=problems))
    except SourceError:
        return []
    sessions = [
        list(session_events(records, key=key, source=reader.format, playback=PLAYBACK))
        for key in session_keys(records)
    ]

    assert len(problems) <= MAXIMUM_PROBLEMS
    return sessions


class VerifiedStore:
    """A store into which damaged recordings are imported; it is verified after each, and replaced after some."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._number = 0
        self._store: SqliteStore | None = None

    def store(self, sessions: Iterable[list[Event]]) -> None:
        """Import the sessions of a file and verify the whole store."""
        if self._number % IMPORTS_PER_STORE == 0:
            self.close()
            self._store = SqliteStore(self._folder / f"{self._number}.db")
        assert self._store is not None
        self._number += 1
        for session in sessions:
            with suppress(OtherSessionError):  # an import stores it under a distinct id
                self._store.import_session(partial(iter, session))
        broken = self._store.verify().broken
        assert not broken, broken

    def close(self) -> None:
        """Delete the store."""
        if self._store is not None:
            self._store.close()
            self._store.path.unlink()


def survives(campaign, folder: Path, fault: str, write: Callable[[Random], Path], attempts: int) -> None:
    """Read and store what *write* makes with each seed, and record how much was read or refused."""
    failures: list[tuple[int, str]] = []
    slowest, events = 0.0, 0
    with closing(VerifiedStore(folder)) as verified:
        for seed in range(attempts):
            path = write(Random(seed))
            started = time.process_time()
            try:
                sessions = read_all(path)
                slowest = max(slowest, time.process_time() - started)
                events += sum(map(len, sessions))
                if seed < MAXIMUM_IMPORTS:
                    verified.store(sessions)
            except Exception as error:  # noqa: BLE001  the campaign counts what no reader may raise
                failures.append((seed, repr(error)[:200]))
    campaign.record(
        fault,
        tried=attempts,
        held=attempts - len(failures),
        note=f"slowest {slowest:.2f} s of processor time; {min(attempts, MAXIMUM_IMPORTS):,} stored and verified",
    )

    assert not failures
    assert slowest < SLOWEST_SECONDS
    assert events, "every file was refused or empty: nothing of what is undamaged was read"


def damaged_copies(folder: Path, originals: list[tuple[str, bytes]]) -> Callable[[Random], Path]:
    """Return a function that writes a damaged copy of one of *originals*, which are given with their suffixes."""

    def write(random: Random) -> Path:
        suffix, original = random.choice(originals)
        path = folder / f"damaged{suffix}"
        path.write_bytes(damaged(original, random))
        return path

    return write


@pytest.mark.timeout(0)
@pytest.mark.parametrize("source", FORMATS)
def test_damaged_recordings_are_read_or_refused(
    campaign, sessions_dir: Path, tmp_path: Path, source: str
) -> None:
    write = damaged_copies(tmp_path, excerpts(sessions_dir / source))
    survives(
        campaign, tmp_path, f"damaged recordings: {source}", write, campaign.attempts(sample=20, whole=100_000)
    )


@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", BUILT)
def test_damaged_built_recordings_are_read_or_refused(campaign, tmp_path: Path, name: str) -> None:
    write = damaged_copies(tmp_path, [BUILT[name]])
    survives(
        campaign, tmp_path, f"damaged recordings: {name}", write, campaign.attempts(sample=20, whole=100_000)
    )
