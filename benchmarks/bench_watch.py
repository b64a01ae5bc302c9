"""The cost of `windowpane watch` beside many recordings: old ones, and sessions that are running.

Ten thousand finished transcripts and a hundred that grow are written to a temporary folder. All values are of one
run, in CPU time of this process; the ratio compares a poll with a bare `os.stat` of the same files.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from windowpane.cli.watch import POLL_SECONDS
from windowpane.sources.imports.pipeline import playback_settings
from windowpane.sources.imports.watch import Watcher
from windowpane.store.embedded import SqliteStore

FILES_PER_FOLDER = 50
OLD_SECONDS = 30 * 86_400


def row(session: str, number: int, at: float) -> bytes:
    """One call of a Claude Code session: a request and its reply."""
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
    common = {"sessionId": session, "timestamp": moment, "cwd": "/work", "version": "2.1.0"}
    above = f"a{number - 1}" if number else None
    request = {"role": "user", "content": f"Request {number} " + "word " * 200}
    reply = {
        "role": "assistant", "id": f"m{number}", "model": "claude-sonnet-4-5",
        "usage": {"input_tokens": 1_000 + 300 * number, "output_tokens": 40},
        "content": [{"type": "text", "text": f"Reply {number} " + "word " * 30}],
    }  # fmt: skip
    lines: list[dict[str, Any]] = [
        {"type": "user", "uuid": f"u{number}", "parentUuid": above, "message": request, **common},
        {"type": "assistant", "uuid": f"a{number}", "parentUuid": f"u{number}", "message": reply, **common},
    ]
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def write_old(folder: Path, files: int) -> list[Path]:
    """Write finished transcripts, as the folders of a year's projects hold them."""
    before = time.time() - OLD_SECONDS
    paths = []
    for number in range(files):
        project = folder / f"project-{number // FILES_PER_FOLDER}"
        project.mkdir(exist_ok=True)
        path = project / f"{number:08x}-0000-4000-8000-000000000000.jsonl"
        path.write_bytes(row(path.stem, 0, before))
        os.utime(path, (before, before))
        paths.append(path)
    for project in folder.iterdir():
        os.utime(project, (before, before))
    return paths


def write_active(folder: Path, files: int) -> list[Path]:
    """Write transcripts of running sessions."""
    project = folder / "project-active"
    project.mkdir()
    paths = [project / f"{number:08x}-1111-4000-8000-000000000000.jsonl" for number in range(files)]
    for path in paths:
        path.write_bytes(row(path.stem, 0, time.time()))
    return paths


def cpu_seconds(poll: Any, *, polls: int, before: Any = None) -> tuple[float, float]:
    """Return the CPU and wall time of one poll, the mean of several a second apart in the watcher's clock."""
    cpu = wall = 0.0
    for number in range(polls):
        if before is not None:
            before(number)
        started, began = time.process_time(), time.perf_counter()
        poll()
        cpu += time.process_time() - started
        wall += time.perf_counter() - began
    return cpu / polls, wall / polls


class Clock:
    """A clock that only the benchmark advances, with each poll, however long a poll takes."""

    def __init__(self) -> None:
        self.now = time.time()

    def __call__(self) -> float:
        return self.now


def main() -> int:
    """Print the values; return 1 where a requirement is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--active", type=int, default=100)
    parser.add_argument("--polls", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "projects")
        folder.mkdir()
        old = write_old(folder, options.files)
        started = time.process_time()
        for path in old:
            os.stat(path)  # noqa: PTH116  # the floor is the system call
        floor = time.process_time() - started
        active = write_active(folder, options.active)
        clock = Clock()
        with closing(SqliteStore(Path(name, "store.db"))) as store:
            watcher = Watcher(
                [folder], store, playback=playback_settings(store.digester()), since_seconds=86_400,
                clock=clock,
            )  # fmt: skip

            def poll() -> None:
                clock.now += POLL_SECONDS
                watcher.poll()

            first, first_wall = cpu_seconds(poll, polls=1)
            idle, _ = cpu_seconds(poll, polls=options.polls)

            def append(number: int) -> None:
                """One session in ten writes a call in any second."""
                for path in active[number % 10 :: 10]:
                    with path.open("ab") as file:
                        file.write(row(path.stem, number // 10 + 1, clock()))
                    os.utime(path, (clock(), clock()))

            busy, busy_wall = cpu_seconds(poll, polls=3 * options.polls, before=append)
            sessions = len(store.sessions())
    print(
        f"{options.files:,} finished transcripts and {options.active} sessions that write a call every 10 seconds"
    )
    print(f"os.stat of the finished ones        {floor * 1e3:8.1f} ms of CPU")
    print(f"first poll                          {first * 1e3:8.1f} ms of CPU, {first_wall * 1e3:.1f} ms")
    print(f"a poll where nothing changed        {idle * 1e3:8.1f} ms of CPU, {idle / floor:.1f} times the floor")
    written = f"a poll with {options.active // 10} calls written"
    print(f"{written:<36}{busy * 1e3:8.1f} ms of CPU, {busy_wall * 1e3:.1f} ms")
    share = busy + (1 / POLL_SECONDS - 1) * idle
    print(f"share of a core, a poll every {POLL_SECONDS:g} s  {share * 100:8.1f}%")
    print(f"sessions in the store               {sessions:8,}")
    return 0 if share < 0.02 and sessions == options.active else 1


if __name__ == "__main__":
    sys.exit(main())
