"""The first import of recorded sessions beside agentsview's, which also reads them into SQLite, alternating.

    WINDOWPANE_SESSIONS_DIR=... AGENTSVIEW=.../agentsview python benchmarks/bench_peers.py [--rounds N]

AGENTSVIEW is the program of `pip install agentsview` in a separate environment; without it, one on the path.
Both read copies of the 15 largest Claude Code sessions of the corpus into a new database, with all processors
and without a server. *Listed* is the time until the import that `windowpane` alone runs lists every session
with all that the list shows, so that each can be opened. *Whole import* is the time until all is stored that
the page of a session, its losses and the search need too. Both are compared with the limit. Wall time means
something on an idle machine only.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Final

from bench_workers import family

GOAL: Final = 1.2
CONTENTS: Final = {
    "listed": "everything the list shows: title, repository, last call, cost and time of every session",
    "whole import": "also what alerts, losses, the pages of a session and the search need",
}
SESSIONS: Final = 15


def seconds(arguments: list[str], environment: dict[str, str]) -> float:
    started = time.perf_counter()
    subprocess.run(arguments, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return time.perf_counter() - started


def whole_import(home: Path) -> float:
    arguments = [sys.executable, "-m", "windowpane", "import", "--json", "--store", str(home / "windowpane.db")]
    return seconds([*arguments, str(home / ".claude/projects")], {**os.environ, "HOME": str(home)})


def listed(home: Path) -> float:
    store = home / "listed.db"
    arguments = [sys.executable, "-m", "windowpane", "import", "--json", "--newest-first", "--store", str(store)]
    note, started = store.with_name("listed.db.outlines.json"), time.perf_counter()
    process = subprocess.Popen(
        [*arguments, str(home / ".claude/projects")],
        env={**os.environ, "HOME": str(home)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        while process.poll() is None:
            if note.exists() and json.loads(note.read_bytes())["is_complete"]:
                return time.perf_counter() - started
            time.sleep(0.005)
        raise SystemExit("the import ended before it listed every session")
    finally:
        workers = family(process.pid)[1:]
        process.terminate()
        process.wait()
        while any(Path(f"/proc/{worker}").exists() for worker in workers):  # each stores its file to the end
            time.sleep(0.1)


def agentsview(program: str, home: Path) -> float:
    settings = {
        "HOME": str(home),
        "AGENTSVIEW_DATA_DIR": str(home / "agentsview"),
        "AGENTSVIEW_NO_DAEMON": "1",
        "DO_NOT_TRACK": "1",
    }
    return seconds([program, "sync"], {**os.environ, **settings})


def main() -> int:
    """Print the ratios; return 1 if one misses the limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    folder, program = os.environ.get("WINDOWPANE_SESSIONS_DIR"), os.environ.get("AGENTSVIEW", "agentsview")
    if folder is None or shutil.which(program) is None:
        print("WINDOWPANE_SESSIONS_DIR is not set" if folder is None else f"there is no program {program}")
        return 2
    recordings = (Path(folder).parent / "corpus-new/claude_code").glob("*.jsonl")
    chosen = sorted(recordings, key=lambda file: file.stat().st_size)[-SESSIONS:]
    runs = {"agentsview": partial(agentsview, program), "listed": listed, "whole import": whole_import}
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(options.rounds):
        for name, run in runs.items():
            with tempfile.TemporaryDirectory() as scratch:
                home = Path(scratch)
                project = home / ".claude/projects/project"
                project.mkdir(parents=True)
                for file in chosen:
                    shutil.copy(file, project)
                times[name].append(run(home))
    release = subprocess.run([program, "version"], capture_output=True, text=True, check=False).stdout.split()
    megabytes = sum(file.stat().st_size for file in chosen) / 1e6
    print(f"{len(chosen)} sessions, {megabytes:.1f} MB, {options.rounds} rounds, {os.cpu_count()} processors")
    for name, measured in times.items():
        print(f"{name:12} {statistics.median(measured):6.2f} s ({min(measured):.2f} to {max(measured):.2f})")
    print(f"compared with agentsview {' '.join(release[1:2])}, limit {GOAL} times:")
    peer = statistics.median(times.pop("agentsview"))
    ratios = {name: statistics.median(measured) / peer for name, measured in times.items()}
    for name, ratio in ratios.items():
        print(f"{'ok' if ratio <= GOAL else 'MISSED'}: {ratio:.1f} times, {name} ({CONTENTS[name]})")
    return 0 if max(ratios.values()) <= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
