"""Requests with values of the wrong type or damaged bytes: read as far as they can be, refused otherwise."""

from __future__ import annotations

import json
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

import pytest
from recordings import FOLDER, NAMES, bodies, items
from tests.sampling import EVERYTHING

from windowpane.config.schema import Config
from windowpane.core.events import Event
from windowpane.sources.receiver.call_recorder import CallRecorder, RecorderSettings
from windowpane.sources.telemetry import json_bodies, protobuf_bodies
from windowpane.sources.telemetry.assembly import CallAssembly
from windowpane.sources.telemetry.records import LogRecord, Span, UnreadableBodyError

TRIES = 600 if EVERYTHING else 24
ODD_VALUES: tuple[Any, ...] = (
    None, True, -1, 2**70, 1.5, "", [], {}, [1], {"type": "text"}, {"stringValue": 7}, "1e400", ["x"], "[{",
    "\ud800", {"functionCall": 3}, {"arrayValue": 3}, {"kvlistValue": {"values": 3}}, 1e308,
    '[{"role": 1, "parts": 2}]',
)  # fmt: skip


def disturb(value: Any, random: Random) -> None:
    """Replace or drop one value somewhere inside."""
    while value:
        key = random.choice(list(value) if isinstance(value, dict) else list(range(len(value))))
        if isinstance(value[key], dict | list) and random.random() < 0.8:
            value = value[key]
            continue
        if random.random() < 0.8:
            value[key] = deepcopy(random.choice(ODD_VALUES))
        else:
            del value[key]
        return


def record(sent: list[Span | LogRecord]) -> list[Event]:
    """Assemble and record everything, without the boundary that contains failures while receiving."""
    events: list[Event] = []
    recorder = CallRecorder(RecorderSettings(emit=events.extend, digest=str, config=Config(), stream="s"))
    assembly = CallAssembly()
    for item in sent:
        assembly.add(item, 0.0)
    for one in assembly.due(0.0, everything=True):
        recorder.record(one)
    recorder.flush()
    return events


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_values_of_wrong_types(path: Path) -> None:
    document, random = json.loads(path.read_text()), Random(7)
    for _ in range(TRIES):
        damaged = deepcopy(document)
        for _ in range(random.randint(1, 5)):
            disturb(damaged, random)
        with suppress(UnreadableBodyError):
            record([*json_bodies.traces_of(damaged).spans])


@pytest.mark.parametrize("name", NAMES)
def test_attributes_of_wrong_types(name: str) -> None:
    sent, random = list(items(name)), Random(7)
    for _ in range(TRIES):
        damaged = deepcopy(sent)
        for item in damaged:
            attributes = item.attributes
            assert isinstance(attributes, dict)
            for _ in range(random.randint(0, 3)):
                if attributes:
                    attributes[random.choice(list(attributes))] = deepcopy(random.choice(ODD_VALUES))
        record(damaged)


@pytest.mark.parametrize("name", [name for name in NAMES if bodies(name)[0].suffix == ".pb"])
def test_damaged_bytes(name: str) -> None:
    random = Random(7)
    for path in bodies(name):
        read = protobuf_bodies.read_traces if ".traces." in path.name else protobuf_bodies.read_logs
        body = path.read_bytes()
        for _ in range(TRIES // 3):
            damaged = bytearray(body)
            for _ in range(random.randint(1, 8)):
                damaged[random.randrange(len(damaged))] = random.randrange(256)
            with suppress(UnreadableBodyError):
                telemetry = read(bytes(damaged[: random.randint(len(damaged) // 2, len(damaged))]))
                record([*telemetry.spans, *telemetry.logs])
