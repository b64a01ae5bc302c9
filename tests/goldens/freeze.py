"""Write everything the command line prints for known input, with a fixed key, clock and source of chance.

Usage: python tests/goldens/freeze.py FOLDER [--recordings RECORDINGS…]

Without recordings: the demo, every help and the rules.

Events are hash-chained, so equal heads prove equal events. Only the public command line and the standard library
are used, so the output does not depend on where a module lives.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shutil
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from unittest import mock

NOW = 1_780_000_000.0
"""2026-05-28, seconds since the epoch: the one moment at which everything happens."""
INTERNAL = re.compile(
    r"^(# (HELP|TYPE) )?(process_|python_|windowpane_\w*seconds|windowpane_build_info|windowpane_store_)"
)
"""Metrics about the process itself, which differ from run to run."""


def fix() -> None:
    """Make the clock stand still and chance repeat itself."""
    time.time = lambda: NOW
    time.time_ns = lambda: int(NOW * 1e9)
    time.perf_counter = lambda: 0.0
    count = iter(range(1, sys.maxsize))
    secrets.token_bytes = lambda size=32: next(count).to_bytes(size, "big")
    secrets.token_hex = lambda size=16: next(count).to_bytes(size, "big").hex()
    os.environ.update(
        TZ="UTC", COLUMNS="100", LINES="50", NO_COLOR="1", TERM="dumb", PYTHONHASHSEED="0",
        WINDOWPANE_AUDIT_KEY="6b65792d666f722d676f6c64656e732d6f6e6c792d302d312d322d332d342d35",
    )  # fmt: skip
    for name in [
        variable
        for variable in os.environ
        if variable.startswith("WINDOWPANE_") and variable != "WINDOWPANE_AUDIT_KEY"
    ]:
        del os.environ[name]
    time.tzset()
    from windowpane.sources.imports import (
        pipeline,  # the one name of a module: a new release prints what the last one did
    )

    mock.patch.object(pipeline, "package_version", return_value=None).start()


REPLAYED_TURNS = 100
"""Longer recordings of the demo are replayed with the default policy alone."""


class Frozen:
    """A folder of outputs, and the names in them that differ from run to run."""

    def __init__(self, folder: Path, scratch: Path) -> None:
        self.folder = folder
        self.scratch = scratch
        folder.mkdir(parents=True, exist_ok=True)

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace(str(self.scratch), "SCRATCH"), encoding="utf-8")

    def run(self, *arguments: str | Path, name: str = "", expected: tuple[int, ...] = (0,)) -> str:
        """Return the standard output of a command; written to *name* where one is given."""
        from click.testing import CliRunner

        from windowpane.cli import main

        result = CliRunner().invoke(main, [str(argument) for argument in arguments], prog_name="windowpane")
        if result.exit_code not in expected:
            raise SystemExit(
                f"windowpane {arguments} exited with {result.exit_code}:\n{result.output}\n{result.exception!r}"
            )
        if name:
            self.write(name, result.stdout)
        return result.stdout


def every_help(frozen: Frozen) -> None:
    """The help of every command and of every command below it."""
    import click

    from windowpane.cli import main

    waiting: list[tuple[str, ...]] = [()]
    while waiting:
        path = waiting.pop()
        frozen.run(*path, "--help", name=f"help/{'-'.join(('windowpane', *path))}.txt")
        command: click.Command = main
        context = click.Context(main)
        for part in path:
            assert isinstance(command, click.Group)
            below = command.get_command(context, part)
            assert below is not None
            command = below
        if isinstance(command, click.Group):
            waiting += [(*path, name) for name in command.list_commands(context)]


def schema(store: Path) -> str:
    """The tables and indexes of a store, as SQLite keeps them."""
    with contextlib.closing(sqlite3.connect(store)) as connection:
        rows = connection.execute("SELECT type, name, sql FROM sqlite_master ORDER BY type, name").fetchall()
    return "".join(f"-- {kind} {name}\n{sql}\n" for kind, name, sql in rows)


def stored(frozen: Frozen, store: Path, folder: str) -> None:
    """Write everything that a store contains: heads, events, lists, reports, metrics."""
    at = ("--store", store)
    frozen.run("audit", "heads", "--output", frozen.scratch / "heads.jsonl", *at)
    frozen.write(f"{folder}/heads.jsonl", (frozen.scratch / "heads.jsonl").read_text(encoding="utf-8"))
    frozen.run("audit", "export", "--output", frozen.scratch / "events.jsonl", *at)
    frozen.write(f"{folder}/events.jsonl", (frozen.scratch / "events.jsonl").read_text(encoding="utf-8"))
    frozen.run("audit", "verify", *at, name=f"{folder}/verify.txt")
    frozen.run("sessions", "--limit", "1000", *at, name=f"{folder}/sessions.txt")
    listed = frozen.run("sessions", "--limit", "1000", "--json", *at, name=f"{folder}/sessions.json")
    for number, row in enumerate(sorted(json.loads(listed), key=lambda row: str(row["session_id"]))):
        session = str(row["session_id"])
        frozen.run("report", session, *at, name=f"{folder}/reports/{number:03}.txt")
        frozen.run("report", session, "--json", *at, name=f"{folder}/reports/{number:03}.json")
        page = frozen.scratch / "report.html"
        frozen.run("report", session, "--html", page, *at)
        frozen.write(f"{folder}/reports/{number:03}.html", page.read_text(encoding="utf-8"))
        frozen.run("check", session, *at, name=f"{folder}/checks/{number:03}.txt", expected=(0, 4))
    frozen.write(f"{folder}/schema.sql", schema(store))
    frozen.write(f"{folder}/metrics.txt", metrics(store))


def metrics(store: Path) -> str:
    """The text of /metrics for what is stored, without the metrics of the process itself."""
    serving = subprocess.Popen(
        [sys.executable, __file__, "--serve", str(store)],
        stdout=subprocess.PIPE,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    assert serving.stdout is not None
    try:
        lines: list[str] = []
        for line in serving.stdout:
            lines.append(line)
            if address := re.search(r"http://127\.0\.0\.1:\d+", line):
                break
        else:
            raise SystemExit(f"serve printed no address: {lines}")
        text = read_when_complete(f"{address.group()}/metrics")
    finally:
        serving.terminate()
        serving.wait(timeout=30)
    return "".join(f"{line}\n" for line in text.splitlines() if not INTERNAL.match(line))


def read_when_complete(url: str) -> str:
    """The text of /metrics, which answers 503 until the stored events are counted."""
    deadline = time.monotonic() + 60
    while True:
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                return str(answer.read().decode())
        except urllib.error.HTTPError as error:
            if error.code != 503 or time.monotonic() > deadline:
                raise
        time.sleep(0.05)


def demo(frozen: Frozen) -> None:
    """The demo's store, and two replays of its recordings."""
    store = frozen.scratch / "demo.db"
    frozen.run("demo", "--once", "--store", store, name="demo/demo.txt")
    stored(frozen, store, "demo")
    rows = json.loads(frozen.run("sessions", "--json", "--store", store))
    short = [row for row in rows if row["source"] != "demo" and row["turns"] <= REPLAYED_TURNS]
    for number, row in enumerate(sorted(short, key=lambda row: str(row["session_id"]))):
        replayed = frozen.run(
            "replay", str(row["session_id"]), "--policy", "all", "--preset", "all", "--baselines", "--window",
            "8k", "--workers", "1", "--json", "--name", "golden", "--store", store, expected=(0, 1, 3),
        )  # fmt: skip
        frozen.write(f"demo/replays/{number:03}.json", replayed)
    frozen.run("replay", str(rows[0]["session_id"]), "--window", "8k,32k", "--baselines", "--workers", "1",
               "--name", "golden", "--store", store, name="demo/replay.txt", expected=(0, 1, 3))  # fmt: skip


def recordings(frozen: Frozen, folders: list[Path]) -> None:
    """Every recording, imported into one store; copies without a recent write are finished in every format."""
    for original in folders:
        folder = frozen.scratch / original.name
        shutil.copytree(original, folder, copy_function=shutil.copyfile)
        for path in folder.rglob("*"):
            os.utime(path, (NOW - 86_400, NOW - 86_400))
        store = frozen.scratch / f"{folder.name}.db"
        output = frozen.run(
            "import", folder, "--capture", "--json", "--store", store, expected=(0, 3),
        )  # fmt: skip
        frozen.write(f"{folder.name}/import.json", output.replace(str(folder), "RECORDINGS"))
        stored(frozen, store, folder.name)


def main(folder: Path, folders: list[Path]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory(prefix="goldens-") as temporary:
        scratch = Path(temporary)
        os.environ.update(
            HOME=temporary, XDG_DATA_HOME=temporary, XDG_CONFIG_HOME=temporary, XDG_CACHE_HOME=temporary
        )
        os.chdir(scratch)
        frozen = Frozen(folder, scratch)
        if folders:
            recordings(frozen, folders)
            return
        every_help(frozen)
        frozen.run("rules", "export", name="rules/rules.yml")
        frozen.run("rules", "export", "--kubernetes", name="rules/kubernetes.yml")
        demo(frozen)


if __name__ == "__main__":
    fix()
    if sys.argv[1] == "--serve":
        from windowpane.cli import main as windowpane

        windowpane(["serve", "--port", "0", "--as-of", "last", "--store", sys.argv[2]], prog_name="windowpane")
    else:
        main(Path(sys.argv[1]).resolve(), [Path(one).resolve() for one in sys.argv[3:]])
