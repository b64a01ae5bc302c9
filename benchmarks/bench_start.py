"""Processor time until the program has answered, as a ratio to the start of a bare interpreter.

A status line is drawn at every prompt of a coding agent, and a new user waits for the help first. Each command is
run in turns with the bare interpreter, and the least of all rounds counts. Modules have stored bytecode, as after
an installation. Prints ratios with their limits; accepts `--json`.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from windowpane.cli.demonstration.play import recorded_sessions
from windowpane.sources.imports.pipeline import playback_settings
from windowpane.sources.transcripts.playback import session_events
from windowpane.store.embedded import SqliteStore

ROUNDS = 15


class Start(NamedTuple):
    """One command and the most bare starts that it may cost."""

    name: str
    arguments: tuple[str, ...]
    given: str = ""
    limit: float | None = None


def processor_seconds(arguments: tuple[str, ...], given: str, environment: dict[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *arguments], input=given.encode(), env=environment, capture_output=True, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def session_in(path: Path) -> str:
    """Store a recorded session and return its id."""
    store = SqliteStore(path)
    recorded = next(iter(recorded_sessions(now=1_800_000_000.0)))
    playback = playback_settings(store.digester())
    events = list(session_events(recorded.records, key=recorded.key, source=recorded.source, playback=playback))
    store.append(events)
    store.close()
    return events[0].context.session_id


def starts(session_id: str) -> tuple[Start, ...]:
    window = {"context_window_size": 200_000, "current_usage": {"input_tokens": 50_000}}
    given = json.dumps({"session_id": session_id, "context_window": window})
    module = ("-m", "windowpane")
    return (
        Start("import windowpane", ("-c", "import windowpane"), limit=2.0),
        Start("hook status", (*module, "hook", "status"), given, limit=3.0),
        Start("hook import", (*module, "hook", "import"), "{}", limit=3.0),
        Start("--help", (*module, "--help"), limit=8.0),
        Start("sessions --help", (*module, "sessions", "--help")),
        Start("watch --help", (*module, "watch", "--help")),
        Start("serve --help", (*module, "serve", "--help")),
    )


def main() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "windowpane.db"
        measured = starts(session_in(store))
        environment["WINDOWPANE_STORE"] = str(store)
        seconds: dict[str, list[float]] = {start.name: [] for start in measured}
        bare: list[float] = []
        for number in range(ROUNDS + 1):
            for start in measured:
                taken = processor_seconds(start.arguments, start.given, environment)
                if number:  # the first round writes the bytecode
                    seconds[start.name].append(taken)
            bare.append(processor_seconds(("-c", "pass"), "", environment))
    ratios = {name: min(values) / min(bare) for name, values in seconds.items()}
    if "--json" in sys.argv:
        print(json.dumps(ratios))
        return
    print(f"{'bare interpreter':18}{1e3 * min(bare):7.1f} ms")
    for start in measured:
        ratio = ratios[start.name]
        verdict = (
            "" if start.limit is None else f" (limit {start.limit}) {'ok' if ratio < start.limit else 'over'}"
        )
        print(f"{start.name:18}{1e3 * min(seconds[start.name]):7.1f} ms, {ratio:5.2f} bare starts{verdict}")


if __name__ == "__main__":
    main()
