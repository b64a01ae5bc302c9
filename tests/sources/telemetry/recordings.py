"""Requests that real exporters and instrumentations sent, and what is read from them.

Each folder entry is one run of the same conversation against a provider on loopback: a question, a tool call, its
result, an answer, a second question and its answer, with 150, 200 and 250 input tokens. Of the resources only
`service.name` and `telemetry.sdk.*` were kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from windowpane.sources.telemetry import json_bodies, protobuf_bodies
from windowpane.sources.telemetry.assembly import CallAssembly
from windowpane.sources.telemetry.records import LogRecord, Span, Telemetry
from windowpane.sources.telemetry.reported_call import Assembled

FOLDER = Path(__file__).parent / "recorded"
NAMES = sorted({path.name.split(".")[0] for path in FOLDER.iterdir()})


def bodies(name: str) -> list[Path]:
    """Return the recorded requests of one run."""
    return sorted(FOLDER.glob(f"{name}.*"))


def telemetry_of(path: Path) -> Telemetry:
    """Return the content of a recorded request."""
    decoder = json_bodies if path.suffix == ".json" else protobuf_bodies
    read = decoder.read_traces if ".traces." in path.name else decoder.read_logs
    return read(path.read_bytes())


def items(name: str) -> Iterator[Span | LogRecord]:
    """Yield the spans and log records of one run in the order in which they were sent."""
    for path in bodies(name):
        telemetry = telemetry_of(path)
        yield from telemetry.spans
        yield from telemetry.logs


def assembled(sent: Iterator[Span | LogRecord] | list[Span | LogRecord]) -> list[Assembled]:
    """Return the calls of what was sent, all at once."""
    assembly = CallAssembly()
    for item in sent:
        assembly.add(item, 0.0)
    return assembly.due(0.0, everything=True)
