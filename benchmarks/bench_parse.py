"""Reading JSON Lines recordings against `json.loads` of the same lines, and the memory that takes.

    WINDOWPANE_SESSIONS_DIR=... python benchmarks/bench_parse.py

Time: every record of the recorded Claude Code, Codex and pi sessions, file reading included on both sides; the
best of several runs. Memory: the peak of the reader, its records thrown away, for a session and for one ten times
as long. It grows by the ids of rows: where a session branches, only all of its rows show which branch continues.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
import tracemalloc
from collections import deque
from collections.abc import Callable
from pathlib import Path

from windowpane.sources.transcripts.formats.claude_code.reader import ClaudeCodeReader
from windowpane.sources.transcripts.formats.codex.reader import CodexReader
from windowpane.sources.transcripts.formats.pi import PiReader
from windowpane.sources.transcripts.reader import FileStats, Reader

ALLOWED_RATIO = 3.0
ALLOWED_SHARE = 0.1
"""Bytes of memory per byte by which a file is longer; a reader that retained its records would take over 1."""
RUNS = 15
READERS: dict[str, Reader] = {
    "claude_code": ClaudeCodeReader(complete=True),
    "codex": CodexReader(complete=True),
    "pi": PiReader(complete=True),
}


def best(work: Callable[[], object]) -> float:
    taken = []
    for _ in range(RUNS):
        started = time.perf_counter()
        work()
        taken.append(time.perf_counter() - started)
    return min(taken)


def floor(path: Path) -> None:
    with path.open("rb") as file:
        for line in file:
            try:
                json.loads(line)
            except ValueError:
                continue


def read(path: Path) -> None:
    reader = READERS[path.parent.name]
    deque(reader.read(path, stats=FileStats(), problems=[]), maxlen=0)


def peak_bytes(path: Path, reader: Reader) -> int:
    tracemalloc.start()
    deque(reader.read(path, stats=FileStats(), problems=[]), maxlen=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def ten_times(path: Path, target: Path) -> None:
    """The same session ten times over under new row ids, as if it had continued."""
    text = path.read_text()
    with target.open("w") as file:
        for copy in range(10):
            file.write(text.replace('"uuid":"', f'"uuid":"{copy}').replace('"id":"msg_', f'"id":"msg_{copy}'))


def main() -> int:
    folder = Path(os.environ.get("WINDOWPANE_SESSIONS_DIR", ""))
    files = [path for name in READERS for path in sorted((folder / name).glob("*.jsonl"))]
    if not os.environ.get("WINDOWPANE_SESSIONS_DIR") or not files:
        print("WINDOWPANE_SESSIONS_DIR is not set or holds no recordings")
        return 2
    failed = False
    totals = [0.0, 0.0]
    for name in READERS:
        mine = [path for path in files if path.parent.name == name]
        low, high = (best(lambda mine=mine, work=work: [work(path) for path in mine]) for work in (floor, read))  # type: ignore[misc]
        totals[0] += low
        totals[1] += high
        size = sum(path.stat().st_size for path in mine) / 1e6
        print(
            f"{name:12} {size:5.2f} MB  json.loads {low * 1e3:6.1f} ms  "
            f"reader {high * 1e3:6.1f} ms  x{high / low:.2f}"
        )
    ratio = totals[1] / totals[0]
    failed |= ratio > ALLOWED_RATIO
    print(f"all          ratio x{ratio:.2f} (allowed x{ALLOWED_RATIO:.0f})")
    with tempfile.TemporaryDirectory() as scratch:
        for name, reader in READERS.items():
            largest = max(
                (path for path in files if path.parent.name == name), key=lambda path: path.stat().st_size
            )
            longer = Path(scratch) / f"{name}.jsonl"
            ten_times(largest, longer)
            one, ten = peak_bytes(largest, reader), peak_bytes(longer, reader)
            share = (ten - one) / (longer.stat().st_size - largest.stat().st_size)
            failed |= share > ALLOWED_SHARE
            print(
                f"{name:12} peak memory {one / 1e6:.2f} MB, ten times the file {ten / 1e6:.2f} MB: "
                f"{share:.3f} of what the file is longer (allowed {ALLOWED_SHARE})"
            )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
