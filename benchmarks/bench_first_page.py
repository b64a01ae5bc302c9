"""CPU time until an import of many recordings has something to show, the newest first, and until it lists all.

    WINDOWPANE_SESSIONS_DIR=... python benchmarks/bench_first_page.py [--gigabytes N]

The recordings of the corpora beside the sessions are imported alone, and with many older copies of them, hard
links that take no space. `windowpane import --newest-first`, the import of `windowpane` alone, reads into a new
store and is stopped when every session is stored or listed by its outline. The CPU time is that of its processes,
with their start. Accepts `--json`.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

from bench_workers import family

from windowpane.cli.machine import LISTED

GOAL_SECONDS: Final = 5.0
GOAL_SPEED: Final = 60.0
"""Megabytes that are listed in a second of CPU."""
OLD: Final = time.time() - 30 * 86_400
TICK: Final = os.sysconf("SC_CLK_TCK")


class Pages(NamedTuple):
    """CPU seconds until there was something to show."""

    first_session: float
    page: float
    """So many sessions as a page of the terminal shows are stored or listed."""
    all: float
    """Every session is stored or listed."""


def corpora() -> list[Path]:
    """Return the recorded files."""
    sessions = os.environ.get("WINDOWPANE_SESSIONS_DIR")
    if not sessions:
        return []
    folders = (Path(sessions).parent / name for name in ("corpus", "corpus-new"))
    return [file for folder in folders for file in sorted(folder.rglob("*.json*")) if file.is_file()]


def copy(files: list[Path], folder: Path, copies: int) -> int:
    """Copy *files* into *folder*, with links to older copies; return the bytes that all of them seem to have."""
    for number in range(copies):
        below = folder / f"copy-{number}"
        below.mkdir(parents=True)
        for index, file in enumerate(files):
            name = f"{index}-{file.name}"
            if number < 2:
                (below / name).write_bytes(file.read_bytes())
                if number:
                    os.utime(below / name, (OLD, OLD))
            else:
                (below / name).hardlink_to(folder / "copy-1" / name)
    return copies * sum(file.stat().st_size for file in files)


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process and those below it."""
    total = 0
    for one in family(pid):
        try:
            fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += sum(map(int, fields[11:15]))
    return total / TICK


def stored_sessions(store: Path) -> int:
    """Return how many sessions a store shows."""
    try:
        with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as connection:
            return int(connection.execute("SELECT count(*) FROM sessions WHERE current = 1").fetchone()[0])
    except sqlite3.Error:
        return 0


def listed_sessions(store: Path) -> tuple[int, bool]:
    """Return how many sessions an import lists before it reads them, and whether these are all."""
    try:
        note = json.loads(store.with_name(f"{store.name}.outlines.json").read_bytes())
    except OSError:
        return 0, False
    return len(note["outlines"]), note["is_complete"]


def measured(folder: Path, store: Path) -> Pages:
    """Import *folder* until every session is stored or listed."""
    command = [sys.executable, "-m", "windowpane", "import", "--newest-first", "--json"]
    process = subprocess.Popen(
        [*command, "--store", str(store), str(folder)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        first = page = complete = None
        while process.poll() is None:
            (listed, is_complete), stored = listed_sessions(store), stored_sessions(store)
            spent = cpu_seconds(process.pid)
            if stored and first is None:
                first = spent
            if stored + listed >= LISTED and page is None:
                page = spent
            if is_complete and complete is None:
                complete = spent
            if first is not None and page is not None and complete is not None:
                return Pages(first, page, complete)
            time.sleep(0.01)
        raise SystemExit(f"the import ended with {stored_sessions(store)} sessions")
    finally:
        workers = family(process.pid)[1:]
        process.terminate()
        process.wait()
        while any(Path(f"/proc/{worker}").exists() for worker in workers):  # each stores its file to the end
            time.sleep(0.1)


def main() -> int:
    """Print the values; return 1 where the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=5.0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    files = corpora()
    if not files:
        print("WINDOWPANE_SESSIONS_DIR is not set, or there is no corpus beside it")
        return 2
    copies = round(options.gigabytes * 1e9 / sum(file.stat().st_size for file in files))
    results = {}
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        for count in (1, copies):
            size = copy(files, scratch / f"x{count}", count)
            results[size] = measured(scratch / f"x{count}", scratch / f"{count}.db")
    if options.json:
        print(json.dumps({f"{size / 1e9:.1f} GB": pages._asdict() for size, pages in results.items()}))
    else:
        for size, pages in results.items():
            print(
                f"{size / 1e9:4.1f} GB: the first session after {pages.first_session:.2f} s of CPU, "
                f"{LISTED} listed after {pages.page:.2f} s, all after {pages.all:.1f} s"
            )
    size, pages = max(results.items())
    speed = size / 1e6 / pages.all
    is_early = max(pages.first_session for pages in results.values()) <= GOAL_SECONDS
    if not options.json:
        print(f"{'ok' if speed >= GOAL_SPEED else 'MISSED'}: {speed:.0f} MB are listed in a second of CPU")
    return 0 if is_early and speed >= GOAL_SPEED else 1


if __name__ == "__main__":
    sys.exit(main())
