"""Importing transcripts into a new store against `json.loads` of the same lines, step by step.

    WINDOWPANE_SESSIONS_DIR=... python benchmarks/bench_import.py [--beside CHECKOUT] [FILE...]

Without files: each fourth transcript of the corpus beside the sessions. *Read* makes the records, *counting off*
plays them with a counter that returns 1 and without fidelity, *import* is `windowpane import`. All times are CPU
time of the process, which may use one processor, so that no worker helps; catalog and vocabularies are loaded
before. The parts are by the samples taken during the import, at most a thousand per second of CPU time. *Memory*
is the most that the process held, which does not grow with the files. With another checkout the same is measured
there and shown beside it.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any, Final

from windowpane.cli.import_ import command
from windowpane.core.protocols import TokenCounter
from windowpane.core.vocabulary import CountSource
from windowpane.sources.imports.pipeline import playback_settings
from windowpane.sources.transcripts.discovery import all_readers, reader_for
from windowpane.sources.transcripts.playback import session_events, session_keys
from windowpane.sources.transcripts.reader import FileStats

GOAL: Final = 25.0
"""Megabytes in a CPU second with everything on."""
ALLOWED_RATIO: Final = 3.0
"""Times `json.loads` for everything but counting and fidelity."""
EVERY: Final = 4
SAMPLE_SECONDS: Final = 0.001
PARTS: Final = (
    ("counting tokens", "/models/tokens/"),
    ("fidelity", "/fidelity/"),
    ("search index", "/store/search/"),
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
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        arguments = ["--json", "--store", str(Path(folder) / "windowpane.db"), *map(str, paths)]
        command.main(arguments, standalone_mode=False)


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


def measured(paths: list[Path]) -> dict[str, Any]:
    """Return the CPU seconds of each step, those of the parts of the import, and the memory."""
    smallest = min(paths, key=lambda path: path.stat().st_size)
    import_all([smallest])  # libraries, prices and vocabularies are loaded once
    values: dict[str, Any] = {"json.loads": min(seconds(lambda: parse(paths)) for _ in range(3))}
    counted: Counter[str] = Counter()
    for name, work in (("read", read), ("counting off", play), ("import", import_all)):
        counted.clear()
        values[name] = seconds(lambda work=work: counted.update(shares(lambda: work(paths))))  # type: ignore[misc]
    values["parts"] = {part: values["import"] * n / counted.total() for part, n in counted.most_common()}
    values["memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    return values


def measured_beside(checkout: Path, paths: list[Path]) -> dict[str, Any]:
    """Return the same for the code of another checkout."""
    environment = {**os.environ, "PYTHONPATH": str(checkout / "exporter")}
    arguments = [sys.executable, __file__, "--json", *map(str, paths)]
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=True)
    values: dict[str, Any] = json.loads(done.stdout)
    return values


def table(megabytes: float, columns: dict[str, dict[str, Any]]) -> None:
    """Print the steps as rates, and the parts of the import as CPU milliseconds per megabyte."""
    print(f"{'':20}" + "".join(f"{name:>34}" for name in columns))
    for step in ("json.loads", "read", "counting off", "import"):
        rates = (
            f"{megabytes / values[step]:7.1f} MB/s, {values[step] / values['json.loads']:5.2f} times json.loads"
            for values in columns.values()
        )
        print(f"{step:20}" + "".join(f"{rate:>34}" for rate in rates))
    print(f"{'memory, MB':20}" + "".join(f"{values['memory']:34.0f}" for values in columns.values()))
    for part in dict.fromkeys(part for values in columns.values() for part in values["parts"]):
        parts = (1000 * values["parts"].get(part, 0.0) / megabytes for values in columns.values())
        print(f"  {part:18}" + "".join(f"{part_ms:28.1f} ms/MB" for part_ms in parts))


def main() -> int:
    """Print the rates; return 1 if one misses its goal."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--beside", type=Path, metavar="CHECKOUT")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("paths", nargs="*", type=Path)
    options = parser.parse_args()
    folder = os.environ.get("WINDOWPANE_SESSIONS_DIR")
    paths: list[Path] = options.paths
    if not paths and folder:
        paths = sorted((Path(folder).parent / "corpus").rglob("*.jsonl"))[::EVERY]
    if not paths:
        print("WINDOWPANE_SESSIONS_DIR is not set, or there is no corpus beside it")
        return 2
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
    values = measured(paths)
    if options.json:
        print(json.dumps(values))
        return 0
    megabytes = sum(path.stat().st_size for path in paths) / 1e6
    print(f"{len(paths)} transcripts, {megabytes:.1f} MB; goals: import {GOAL:.0f} MB per CPU second,")
    print(f"counting off at most {ALLOWED_RATIO:.0f} times json.loads")
    beside = {} if options.beside is None else {str(options.beside): measured_beside(options.beside, paths)}
    table(megabytes, {**beside, "this checkout": values})
    is_slow = values["counting off"] > ALLOWED_RATIO * values["json.loads"]
    return 1 if is_slow or megabytes / values["import"] < GOAL else 0


if __name__ == "__main__":
    sys.exit(main())
