"""Importing transcripts into a new store against `json.loads` of the same lines, step by step.

    WINDOWPANE_SESSIONS_DIR=... python benchmarks/bench_import.py [FILE...]

Without files: each fourth transcript of the corpus beside the sessions. *Read* makes the records, *counting off*
plays them with a counter that returns 1 and without fidelity, *import* does everything that `windowpane import`
does. All times are CPU time of the process, in one run; catalog and vocabularies are loaded before. The shares
are those of the samples taken during the import, at most a thousand per second of CPU time.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Final

from windowpane.config.loading import load_config
from windowpane.core.protocols import TokenCounter
from windowpane.core.vocabulary import CountSource
from windowpane.effects.garbage_collection import rare_collection
from windowpane.ingest.importer import import_paths
from windowpane.ingest.pipeline import AlertingStore, playback_settings
from windowpane.sources.discovery import all_readers, reader_for
from windowpane.sources.playback import session_events, session_keys
from windowpane.sources.reader import FileStats
from windowpane.store.sqlite import SqliteStore

GOAL: Final = 20.0
"""Megabytes in a CPU second with everything on."""
ALLOWED_RATIO: Final = 3.0
"""Times `json.loads` for everything but counting and fidelity."""
EVERY: Final = 4
SAMPLE_SECONDS: Final = 0.001
PARTS: Final = (
    ("counting tokens", "/models/tokens/"),
    ("fidelity", "/fidelity/"),
    ("search index", "/text_indexes/"),
    ("references", "/window/references"),
    ("redaction", "/core/redaction/"),
    ("alerts", "/alerts/"),
    ("store", "/store/"),
    ("encoding", "/core/codec"),
    ("tracking", "/core/"),
    ("reading", "/sources/"),
)
"""Parts of an import by their folders; the innermost counts."""


class OneToken:
    """A counter that reads nothing."""

    source: CountSource = "estimate"

    def count(self, text: str) -> int:
        return 1 if text else 0


def one_token(_model: str) -> TokenCounter:
    return OneToken()


def seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def parse(paths: list[Path]) -> None:
    for path in paths:
        with path.open("rb") as file:
            for line in file:
                try:
                    json.loads(line)
                except ValueError:
                    continue


def read(paths: list[Path]) -> None:
    readers = all_readers()
    for path in paths:
        deque(reader_for(path, readers).read(path, stats=FileStats(), problems=[]), maxlen=0)


def play(paths: list[Path]) -> None:
    """Derive the events of all sessions without counting tokens, and throw them away."""
    readers = all_readers()
    playback = replace(playback_settings(str, with_fidelity=False), counter_for=one_token)
    for path in paths:
        reader = reader_for(path, readers)
        records = list(reader.read(path, stats=FileStats(), problems=[]))
        for key in session_keys(records):
            deque(session_events(records, key=key, source=reader.format, playback=playback), maxlen=0)


def import_all(paths: list[Path]) -> None:
    config = load_config(environ={})
    with tempfile.TemporaryDirectory() as folder, rare_collection():
        store = SqliteStore(Path(folder) / "windowpane.db")
        playback = playback_settings(store.digester(), config=config, history=store.earlier_sessions)
        rules = config.alert_rules()
        import_paths(paths, AlertingStore(store, rules=rules), playback=playback, readers=all_readers())
        while store.index_text():
            pass
        store.flush()
        store.close()


def shares(work: Callable[[], object]) -> Counter[str]:
    """Return the number of samples in each part of *work*."""
    counted: Counter[str] = Counter()

    def sample(_signal: int, frame: FrameType | None) -> None:
        while frame is not None:
            file = frame.f_code.co_filename
            part = next((part for part, folder in PARTS if "windowpane" in file and folder in file), None)
            if part is not None:
                counted[part] += 1
                return
            frame = frame.f_back
        counted["other"] += 1

    signal.signal(signal.SIGPROF, sample)
    signal.setitimer(signal.ITIMER_PROF, SAMPLE_SECONDS, SAMPLE_SECONDS)
    work()
    signal.setitimer(signal.ITIMER_PROF, 0)
    return counted


def main() -> int:
    """Print the rates; return 1 if one misses its goal."""
    folder = os.environ.get("WINDOWPANE_SESSIONS_DIR")
    paths = [Path(argument) for argument in sys.argv[1:]]
    if not paths and folder:
        paths = sorted((Path(folder).parent / "corpus").rglob("*.jsonl"))[::EVERY]
    if not paths:
        print("WINDOWPANE_SESSIONS_DIR is not set, or there is no corpus beside it")
        return 2
    smallest = min(paths, key=lambda path: path.stat().st_size)
    import_all([smallest])  # libraries, prices and vocabularies are loaded once
    megabytes = sum(path.stat().st_size for path in paths) / 1e6
    floor = min(seconds(lambda: parse(paths)) for _ in range(3))
    print(f"{len(paths)} transcripts, {megabytes:.1f} MB")
    print(f"json.loads   {megabytes / floor:7.1f} MB per CPU second")
    failed = False
    counted: Counter[str] = Counter()
    for name, work in (("read", read), ("counting off", play), ("import", import_all)):
        taken = seconds(lambda work=work: counted.update(shares(lambda: work(paths))))  # type: ignore[misc]
        if name != "import":
            counted.clear()
        rate, ratio = megabytes / taken, taken / floor
        limit = f"  (limit {ALLOWED_RATIO:.0f})"
        goal = {"counting off": limit, "import": f"  (goal {GOAL:.0f} MB)"}.get(name, "")
        failed |= (name == "counting off" and ratio > ALLOWED_RATIO) or (name == "import" and rate < GOAL)
        print(f"{name:12} {rate:7.1f} MB per CPU second, {ratio:5.2f} times json.loads{goal}")
    for part, samples in counted.most_common():
        print(f"  {part:16} {samples / counted.total():4.0%}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
