"""Campaign: every field of every event that a sender may send, with every nasty value, over both databases."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import fields, is_dataclass
from email.message import EmailMessage
from itertools import islice
from pathlib import Path
from random import Random
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from click.testing import CliRunner
from prometheus_client import generate_latest
from tests.campaigns.conftest import Campaign

from windowpane.cli import main
from windowpane.config.loading import load_config
from windowpane.core.event_limits import LARGEST_NUMBER, LARGEST_POSITION
from windowpane.core.events import PAYLOADS, SCHEMA, EventContext
from windowpane.core.window.blocks import Block
from windowpane.outputs.http.routes import PostRequest
from windowpane.outputs.http.store_exporter import StoreExporter
from windowpane.outputs.remote.batches import CONTENT_TYPE, PATH
from windowpane.outputs.remote.endpoint import IngestEndpoint
from windowpane.outputs.remote.group_commit import GroupCommit
from windowpane.store.open import open_store
from windowpane.store.store import Store

NASTY = (
    "true", "1e308", "-1e308", "1" + "0" * 30, "1e400", "-1", "NaN", "null", "0", "1.5", '""', '"inf"', '"x"',
    "[" * 10_000 + "]" * 10_000, '{"a":' * 10_000 + "1" + "}" * 10_000, '"' + "x" * 5_000 + '"',
    '"' + "x" * 200_000 + '"', '"' + "ä" * 99_000 + '"', '"\\ud800"', '"a\\u0000b"', "[]", "{}", "[[]]",
    '{"a":1}', "[null]", '"2026-13-45T99:99:99Z"', str(LARGEST_NUMBER), str(LARGEST_POSITION),
    str(2**63), str(2**63 - 1),
)  # fmt: skip
"""Values as they are written in JSON."""
MARK = '"\N{REPLACEMENT CHARACTER}"'
OWN, OTHER = "alpha", "beta"
BATCH = 50


def sample(hint: Any) -> Any:
    """Return a valid value of a type."""
    origin, args = get_origin(hint), get_args(hint)
    if hint in (int, float, str, bool):
        return {int: 5, float: 0.5, str: "text", bool: False}[hint]
    if origin is Literal:
        return args[0]
    if origin in (Union, UnionType):
        return sample(next(arg for arg in args if arg is not type(None)))
    if origin is tuple:
        return [sample(args[0])]
    if origin is dict:
        return {sample(args[0]): sample(args[1])}
    assert hasattr(hint, "__annotations__"), hint
    return document_of(hint)


def document_of(cls: type) -> dict[str, Any]:
    hints = get_type_hints(cls)
    names = [item.name for item in fields(cls)] if is_dataclass(cls) else list(cls.__struct_fields__)
    return {name: sample(hints[name]) for name in names if name not in ("text", "marks")}


def event_of(kind: str) -> dict[str, Any]:
    """Return an event with all of its fields."""
    data = document_of(Block if kind == "block.added" else PAYLOADS[kind])
    data.pop("project", None)
    head = document_of(EventContext)
    return {**head, "n": 0, "at": 1_700_000_000.5, "type": kind, "event_id": "x", "schema": SCHEMA, "data": data}


def paths(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from paths(item, (*path, key))


def changed(document: dict[str, Any], path: tuple[str | int, ...], value: str) -> bytes:
    made: Any = copy.deepcopy(document)
    holder = made
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = "\N{REPLACEMENT CHARACTER}"
    return json.dumps(made, ensure_ascii=False).replace(MARK, value).encode()


def cases(random: Random) -> Iterator[bytes]:
    """Yield lines: each field of each event with each value, in an order of no pattern."""
    every = [(kind, path, value) for kind in PAYLOADS for path in paths(event_of(kind)) for value in NASTY]
    random.shuffle(every)
    for number, (kind, path, value) in enumerate(every):
        event = event_of(kind) | {"session_id": f"s{number % 7}", "stream_id": f"t{number % 11}", "n": number}
        yield changed(event, path, value)


def good(number: int) -> bytes:
    """Return events of the other project."""
    head = event_of("turn.started") | {"session_id": "good", "stream_id": "good", "turn": number + 1}
    return b"\n".join(json.dumps(head | {"n": 3 * number + index}).encode() for index in range(3))


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "w.db")
    return request.getfixturevalue("postgres_url")


class Door:
    """The endpoint over a store, with a project for each token."""

    def __init__(self, store: Store) -> None:
        self._commits = GroupCommit(store)
        self._endpoint = IngestEndpoint(self._commits)
        self._commits.start()

    def send(self, body: bytes, project: str) -> tuple[int, dict[str, Any]]:
        headers = EmailMessage()
        headers["Content-Type"] = CONTENT_TYPE
        response = asyncio.run(self._endpoint.respond(PostRequest(PATH, headers, body, project)))
        return response.status, json.loads(response.body)

    def close(self) -> None:
        self._commits.close()


@pytest.mark.timeout(0)
def test_nasty_values_harm_only_their_line(campaign: Campaign, address: str) -> None:
    lines = islice(cases(Random(5)), campaign.attempts(sample=1_500, whole=10**9))
    tried = failed = lost = batches = 0
    with closing(open_store(address)) as store:
        door = Door(store)
        while batch := list(islice(lines, BATCH)):
            status, outcome = door.send(b"\n".join(batch), OWN)
            tried, failed, batches = tried + len(batch), failed + (status >= 500), batches + 1
            if "refused" in outcome:
                answered = outcome["stored"] + outcome["repeated"] + len(outcome["refused"])
                assert answered == len(batch)
                assert all(0 < one["record"] <= len(batch) for one in outcome["refused"])
            status, outcome = door.send(good(batches - 1), OTHER)
            lost += 3 - outcome.get("stored", 0)
        door.close()
        verified = store.verify()
        exporter = StoreExporter(store, config=load_config())
        exporter.catch_up()
        exporter.verify_chain()
        assert generate_latest(exporter.routes(bearer_token=None).registry)
        assert exporter.health().ok
    unreadable = [command for command in READS if not reads(address, *command)]
    engine = "PostgreSQL" if "://" in address else "SQLite"
    campaign.record(
        f"values out of range in received events, {engine}", tried=tried, lost=lost,
        held=tried if not failed and not lost and verified.intact and not unreadable else 0,
        note=f"{batches:,} batches of another project meanwhile",
    )  # fmt: skip
    assert (failed, lost, unreadable) == (0, 0, [])
    assert verified.intact, verified.broken[:3]


READS = (
    ("sessions",),
    ("top", "--all", "--once"),
    ("report", "s1@alpha"),
    ("audit", "verify"),
    ("search", "text"),
)


def reads(address: str, *command: str) -> bool:
    result = CliRunner().invoke(main, [*command, "--store", address])
    if result.exit_code:
        print(command, result.output[-2_000:], result.exception)
    return result.exit_code == 0
