"""The stored and hashed bytes are those of the event's document."""

from __future__ import annotations

import math
from dataclasses import replace

import msgspec

from windowpane.core.codec import decode, encode, to_document
from windowpane.core.events import (
    PAYLOADS,
    AlertFired,
    BlockAdded,
    Event,
    FidelityEvaluated,
    PressureMeasured,
    SessionEnded,
    event_id,
)
from windowpane.core.events.compression import FactOutcome
from windowpane.store.projections.session_drafts import RunPart, decode_memory


def document_bytes(event: Event) -> bytes:
    return msgspec.json.encode(to_document(event))


def test_every_event_of_a_session_is_encoded_as_its_document(make_session):
    for event in make_session(turns=30):
        untimed = event._replace(at=None)
        assert encode(event) == document_bytes(event)
        assert encode(untimed) == document_bytes(untimed)


def test_rare_payloads_are_encoded_as_their_documents(make_session):
    event = make_session(turns=3)[-2]
    pressure = next(e.data for e in make_session(turns=9) if isinstance(e.data, PressureMeasured))
    payloads = [
        replace(pressure, turns_until_red=math.inf, turns_until_exhausted=math.inf, velocity=1.5),
        FidelityEvaluated("probe", 0.5, 0.9, facts=(FactOutcome("path", "lost", "d1", text="secret"),)),
        AlertFired("utilization", "critical", 3, None, None, 'quotes " and \\ and é'),
        SessionEnded("done"),
    ]  # fmt: skip
    for payload in payloads:
        made = event._replace(data=payload)
        assert encode(made) == document_bytes(made)
        assert encode(decode(encode(made))) == encode(made)
        assert b"secret" not in encode(made)


def test_every_payload_has_a_fast_encoder():
    from windowpane.core.codec import _PLANS

    assert set(_PLANS) == set(PAYLOADS)
    assert "text" not in _PLANS[BlockAdded.type].mirror.__struct_fields__


def test_event_ids_are_ulids_of_time_and_position():
    early, late = event_id("s", 1, 1_700_000_000.0), event_id("s", 1, 1_700_000_000.001)

    assert len(early) == 26
    assert early[:10] < late[:10]
    assert early[10:] == late[10:]
    assert early[:10] == "01HF7YAT00"
    assert event_id("s", 2, None)[:10] == "0" * 10


def test_the_runs_of_a_continued_session_are_read_in_their_stored_shape():
    memory = decode_memory("s1", '{"parts":[["second run",2,5,3,1,0]]}')

    assert memory.parts == [RunPart("second run", 2, from_turn=5, turns=3, windows=1)]
