"""Processor time until the program has answered, as a ratio to the start of a bare interpreter.

A status line is drawn at every prompt of a coding agent, and a new user waits for the help first. Each command is
run in turns with the bare interpreter, and the least of all rounds counts. Modules have stored bytecode, as after
an installation. Prints ratios with their limits; accepts `--json`.

Then the CPU time and memory of `start()` and `observe()` in a process that has imported its client, without and
with a first call, whose tokens are counted on a thread; and the CPU time of a report on a session of many turns.
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

from dashboard_store import session_events as long_session

from windowpane.cli.demonstration.play import recorded_sessions
from windowpane.sources.imports.pipeline import playback_settings
from windowpane.sources.transcripts.playback import session_events
from windowpane.store.embedded import SqliteStore

ROUNDS = 15
AGENT_SECONDS = 0.3
AGENT_MEGABYTES = 30
REPORTED_TURNS = 3_000
REPORT_SECONDS = 1.0
AGENT = """
import json, sys, threading, time
from pathlib import Path
import httpx, openai

def megabytes():
    return int(Path("/proc/self/status").read_text().split("VmRSS:")[1].split()[0]) / 1e3

message = {"role": "assistant", "content": "The timeout of the reader is 30 s."}
reply = {
    "id": "c", "object": "chat.completion", "created": 1, "model": "gpt-4o",
    "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
    "usage": {"prompt_tokens": 30, "completion_tokens": 10, "total_tokens": 40},
}
transport = httpx.MockTransport(lambda request: httpx.Response(200, json=reply))
client = openai.OpenAI(api_key="x", http_client=httpx.Client(transport=transport))
ask = lambda: client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "Read it."}])
ask()
before = time.process_time(), megabytes()
import windowpane
outputs = windowpane.start(port=0, store=sys.argv[1])
windowpane.observe(client)
started = time.process_time() - before[0], megabytes() - before[1]
ask()
outputs.flush()
for thread in threading.enumerate():
    if thread.name == "windowpane-vocabulary":
        thread.join()
called = time.process_time() - before[0], megabytes() - before[1]
print(json.dumps([started, called]))
windowpane.stop()
"""


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


def in_agent(store: Path, environment: dict[str, str]) -> list[list[float]]:
    """CPU seconds and MB, after `start()` and `observe()`, and after the first call: the least of some rounds."""
    rounds = []
    for _ in range(ROUNDS):
        done = subprocess.run(
            [sys.executable, "-c", AGENT, str(store)], env=environment, capture_output=True, check=True
        )
        rounds.append(json.loads(done.stdout))
    return [[min(values) for values in zip(*points, strict=True)] for points in zip(*rounds, strict=True)]


def report_seconds(path: Path, environment: dict[str, str]) -> float:
    store = SqliteStore(path)
    store.append(long_session("long", REPORTED_TURNS, 1_700_000_000.0))
    store.close()
    command = ("-m", "windowpane", "report", "long", "--store", str(path))
    return min(processor_seconds(command, "", environment) for _ in range(3))


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
        started, called = in_agent(Path(folder) / "agent.db", environment)
        report = report_seconds(Path(folder) / "long.db", environment)
    ratios = {name: min(values) / min(bare) for name, values in seconds.items()}
    if "--json" in sys.argv:
        print(json.dumps({**ratios, "agent": started, "first call": called, "report": report}))
        return
    print(f"{'bare interpreter':18}{1e3 * min(bare):7.1f} ms")
    for start in measured:
        ratio = ratios[start.name]
        verdict = (
            "" if start.limit is None else f" (limit {start.limit}) {'ok' if ratio < start.limit else 'over'}"
        )
        print(f"{start.name:18}{1e3 * min(seconds[start.name]):7.1f} ms, {ratio:5.2f} bare starts{verdict}")
    verdict = "ok" if started[0] < AGENT_SECONDS and started[1] < AGENT_MEGABYTES else "over"
    print(
        f"start() and observe(): {started[0]:.2f} s and {started[1]:.0f} MB beyond the client's own import "
        f"(limit {AGENT_SECONDS} s, {AGENT_MEGABYTES} MB) {verdict}"
    )
    print(f"with a first call, counted and stored: {called[0]:.2f} s and {called[1]:.0f} MB")
    verdict = "ok" if report < REPORT_SECONDS else "over"
    print(f"report on {REPORTED_TURNS:,} turns: {report:.2f} s (limit {REPORT_SECONDS:g} s) {verdict}")


if __name__ == "__main__":
    main()
