"""Names and ids of events are stored without secrets and within bounds, through whichever door they come."""

from __future__ import annotations

import json

import pytest

from windowpane.core.codec import encode
from windowpane.core.event_limits import LONGEST_NAME_BYTES, foreign_event, read_document
from windowpane.core.events import BlockAdded, BlocksEvicted, Event, EventContext, EvictedBlock, SessionEnded
from windowpane.core.redaction import stored_id
from windowpane.core.stored_payloads import stored_payload
from windowpane.core.tracking import SessionInfo
from windowpane.core.window.blocks import Block

TOKEN = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4xY7zA0cD3fG6"
BLOCK = Block(
    "b0", "tool_call", 5, 1, "b0", 1, "d", 4, "estimate", None, TOKEN, TOKEN, handle=TOKEN, target=TOKEN
)


def foreign(data: object, **context: str) -> Event:
    fields = {"session_id": "s", "agent": "a", "model": "m", "source": "live", "stream_id": "s/1"} | context
    event = Event(EventContext(turn=1, window_id=1, **fields), 0, 1.0, data)  # type: ignore[arg-type]
    return foreign_event(read_document(encode(event)))


@pytest.mark.parametrize("field", ["session_id", "agent", "model", "source", "stream_id", "parent_session_id"])
def test_names_of_foreign_events_are_stored_without_secrets(field: str) -> None:
    event = foreign(SessionEnded("done"), **{field: TOKEN})

    assert TOKEN not in encode(event).decode()


@pytest.mark.parametrize(
    "data",
    [
        SessionEnded(f"stopped: {TOKEN}"),
        BlockAdded(BLOCK),
        BlocksEvicted(
            "age", (EvictedBlock("b0", "tool_result", 5, "mask", TOKEN, None, {TOKEN: 1.0}, handle=TOKEN),), 5, 5
        ),
    ],
    ids=["reason", "block", "evicted block"],
)
def test_fields_of_foreign_events_are_stored_without_secrets(data) -> None:
    event = foreign(data)

    assert TOKEN not in encode(event).decode()
    assert json.loads(encode(event))["type"] == data.type


def test_a_clean_payload_is_not_copied() -> None:
    payload = BlockAdded(Block("b0", "tool_call", 5, 1, "b0", 1, "d", 4, "estimate", TOKEN))

    assert stored_payload(payload) is payload


def test_names_of_this_process_fit_into_every_index() -> None:
    long = "ä" * 600
    first, second = (SessionInfo(f"{long}{end}", long, "m\0", "live", "s") for end in "ab")

    assert all(len(name.encode()) <= LONGEST_NAME_BYTES for name in (first.session_id, first.agent))
    assert first.session_id != second.session_id
    assert first.model == "m"


@pytest.mark.parametrize(
    "identifier", ["s", TOKEN, f"job/{TOKEN}/2", "x" * 2_000, "a\0b", f"{TOKEN}{'y ' * 400}"]
)
def test_the_stored_form_of_a_stored_id_is_itself(identifier: str) -> None:
    stored = stored_id(identifier)

    assert stored_id(stored) == stored
    assert TOKEN not in stored
