"""Every event survives the way to JSON and back, byte for byte."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import types
import typing
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windowpane.core.codec import decode, encode, from_document, to_document
from windowpane.core.events import (
    PAYLOADS,
    SCHEMA,
    BlockAdded,
    BlocksEvicted,
    Event,
    EventContext,
    EvictedBlock,
    FactOutcome,
    FidelityEvaluated,
    PressureMeasured,
    RulesFollowed,
    event_id,
)
from windowpane.core.window.blocks import Block
from windowpane.exceptions import EventFormatError

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
NUMBER = st.floats(allow_nan=False, allow_infinity=False)
MAY_BE_INFINITE = {"turns_until_red", "turns_until_red_p10", "turns_until_red_p90", "turns_until_exhausted"}
SECRET = "what the agent said"
CONTEXT = EventContext("s", "a", "m", 3, 1, "live", "stream")
CROCKFORD = set("0123456789ABCDEFGHJKMNPQRSTVWXYZ")


def values(hint: Any, field: str) -> st.SearchStrategy[Any]:
    """Values of one field's type, its extremes included."""
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return st.one_of(*(values(option, field) for option in get_args(hint)))
    if origin is Literal:
        return st.sampled_from(get_args(hint))
    if origin in (tuple, frozenset):
        return st.lists(values(get_args(hint)[0], field), max_size=3).map(origin)
    if origin is dict:
        key, value = get_args(hint)
        return st.dictionaries(values(key, field), values(value, field), max_size=4)
    if hint is float:
        return st.one_of(NUMBER, st.just(math.inf)) if field in MAY_BE_INFINITE else NUMBER
    simple = {int: st.integers(-(2**53), 2**53), str: TEXT, type(None): st.none(), bool: st.booleans()}
    return simple[hint] if hint in simple else records(hint)


def records(cls: type) -> st.SearchStrategy[Any]:
    """Instances of a record type with any values its fields may have; texts are set, and must not be written."""
    hints = get_type_hints(cls)
    fields = {
        field.name: values(hints[field.name], field.name) for field in dataclasses.fields(cls) if field.init
    }
    if cls in (Block, FactOutcome):
        fields["text"] = st.sampled_from([None, SECRET])
    return st.builds(cls, **fields)


def events(name: str) -> st.SearchStrategy[Event]:
    return st.builds(
        Event,
        records(EventContext),
        st.integers(0, 2**53),
        st.one_of(st.none(), st.floats(0, 4e9)),
        records(PAYLOADS[name]),
    )


def without_texts(event: Event) -> Event:
    data = event.data
    if isinstance(data, BlockAdded):
        return event._replace(data=BlockAdded(dataclasses.replace(data.block, text=None, marks=frozenset())))
    if isinstance(data, FidelityEvaluated):
        facts = tuple(dataclasses.replace(fact, text=None) for fact in data.facts)
        return event._replace(data=dataclasses.replace(data, facts=facts))
    if isinstance(data, RulesFollowed):
        outcomes = tuple(dataclasses.replace(rule, text=None, contradicted_by=None) for rule in data.outcomes)
        return event._replace(data=dataclasses.replace(data, outcomes=outcomes))
    return event


few = settings(max_examples=settings.default.max_examples // 8)
"""For what runs once for every payload."""


@pytest.mark.parametrize("name", sorted(PAYLOADS))
class TestEveryPayload:
    @few
    @given(data=st.data())
    def test_survives_a_round_trip(self, name: str, data: st.DataObject) -> None:
        event = data.draw(events(name))
        raw = encode(event)
        back = decode(raw)

        assert back == without_texts(event)
        assert type(back.data) is PAYLOADS[name]
        assert encode(back) == raw
        assert back.event_id == event.event_id
        assert json.loads(raw) == json.loads(msgspec.json.encode(to_document(event)))
        assert SECRET.encode() not in raw
        assert "text" not in json.loads(raw)["data"]

    @few
    @given(data=st.data())
    def test_ignores_unknown_fields(self, name: str, data: st.DataObject) -> None:
        event = data.draw(events(name))
        document = json.loads(encode(event))
        document["added_later"] = {"a": [1]}
        document["data"]["added_later"] = "x"

        assert from_document(document) == without_texts(event)

    @few
    @given(data=st.data())
    def test_names_the_invalid_field(self, name: str, data: st.DataObject) -> None:
        event = data.draw(events(name))
        document = json.loads(encode(event))
        kind = Block if name == "block.added" else PAYLOADS[name]
        names = [field.name for field in dataclasses.fields(kind)]
        if not names:
            return
        wrong = data.draw(st.sampled_from(names))
        document["data"][wrong] = True

        hints = get_type_hints(kind)
        if hints[wrong] is bool:
            return
        with pytest.raises(EventFormatError) as refused:
            from_document(document)
        assert name in str(refused.value)
        assert wrong in str(refused.value)

    def test_names_a_missing_required_field(self, name: str) -> None:
        kind = Block if name == "block.added" else PAYLOADS[name]
        hints = get_type_hints(kind)
        required = [
            field.name
            for field in dataclasses.fields(kind)
            if field.default is dataclasses.MISSING
            and field.default_factory is dataclasses.MISSING
            and type(None) not in get_args(hints[field.name])
        ]
        document = {**to_document(Event(CONTEXT, 0, None, PAYLOADS["turn.started"]())), "type": name, "data": {}}
        if not required:
            assert decode(json.dumps(document)).type == name
            return
        with pytest.raises(EventFormatError, match=rf"{name}: .*\b({'|'.join(required)})\b"):
            from_document(document)


class TestEnvelope:
    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("schema", 0), ("schema", SCHEMA + 1), ("schema", "1"), ("schema", None), ("type", "no.such"),
            ("type", 3), ("n", None), ("n", "1"), ("n", True), ("n", 1.0), ("at", "now"), ("at", True),
            ("data", []), ("data", None), ("session_id", 5), ("session_id", None), ("turn", "1"),
            ("window_id", None), ("trace_id", 1),
        ],
    )  # fmt: skip
    def test_an_invalid_field_is_named(self, field: str, value: object) -> None:
        document = to_document(Event(CONTEXT, 0, 1.5, PAYLOADS["turn.started"]()))
        document[field] = value

        with pytest.raises(EventFormatError, match=field):
            from_document(document)

    @pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"5", b"\xff", b'{"a":1', "null", b"{}{}"])
    def test_bytes_other_than_a_json_object_are_refused(self, raw: bytes | str) -> None:
        with pytest.raises(EventFormatError):
            decode(raw)

    @given(raw=st.binary(max_size=200))
    def test_any_bytes_are_decoded_or_refused(self, raw: bytes) -> None:
        with contextlib.suppress(EventFormatError):
            assert decode(raw).n >= 0

    def test_infinity_is_written_as_a_string(self) -> None:
        measured = PressureMeasured(1, {}, "usage", turns_until_red=math.inf, velocity=0.0, phase="final")
        document = json.loads(encode(Event(CONTEXT, 0, None, measured)))

        assert document["data"]["turns_until_red"] == "inf"
        assert "turns_until_exhausted" not in document["data"]

    def test_only_a_field_that_may_be_infinite_reads_the_string(self) -> None:
        """Any other one would be stored as a number that the event does not contain."""
        measured = PressureMeasured(1, {}, "usage", turns_until_red=math.inf, velocity=0.0, phase="final")
        document = json.loads(encode(Event(CONTEXT, 1, 0.0, measured)))
        document["data"]["utilization"] = "inf"

        with pytest.raises(EventFormatError, match="utilization"):
            decode(json.dumps(document).encode())

    def test_keys_are_in_the_order_of_the_fields(self) -> None:
        keys = list(json.loads(encode(Event(CONTEXT, 7, 1.5, PAYLOADS["turn.started"]()))))

        assert keys == [
            "session_id", "agent", "model", "turn", "window_id", "source", "stream_id", "n", "at", "type",
            "event_id", "schema", "data",
        ]  # fmt: skip

    def test_the_phase_of_a_measurement_is_written_before_its_values(self) -> None:
        """The keys of `pressure.measured` have the order of the first schema."""
        measured = PressureMeasured(1, {}, "usage", 10, phase="before")
        keys = list(json.loads(encode(Event(CONTEXT, 0, None, measured)))["data"])

        assert keys[:5] == ["phase", "used_tokens", "used_by_component", "count_source", "limit_tokens"]

    def test_half_a_surrogate_pair_is_stored_as_a_question_mark(self) -> None:
        evicted = EvictedBlock("b\udc00", "tool_result", 1, "drop", "r", terms={"\ud800": 0.5}, tool_name="x")
        context = EventContext("s\ud800", "a", "m", 3, 1, "live", "stream\ud800")
        event = Event(context, 0, 1.5, BlocksEvicted("p", (evicted,), 1, 1))
        back = decode(encode(event))

        assert back.context.session_id == "s?"
        assert isinstance(back.data, BlocksEvicted)
        assert back.data.blocks == (dataclasses.replace(evicted, block_id="b?", terms={"?": 0.5}),)
        assert back.event_id == event.event_id
        assert encode(back) == encode(event)

    def test_every_payload_has_one_name(self) -> None:
        assert all(cls.type == name for name, cls in PAYLOADS.items())
        assert len(set(PAYLOADS.values())) == len(PAYLOADS)


class TestEventId:
    @given(stream=TEXT, n=st.integers(0, 2**53), at=st.one_of(st.none(), st.floats(-1e9, 4e9)))
    def test_is_a_valid_ulid(self, stream: str, n: int, at: float | None) -> None:
        """An id has 26 digits of Crockford's alphabet that fit 128 bits."""
        made = event_id(stream, n, at)

        assert len(made) == 26
        assert set(made) <= CROCKFORD
        assert made[0] <= "7"

    @given(stream=TEXT, n=st.integers(0, 2**53), at=st.floats(0, 4e9))
    def test_depends_only_on_its_arguments_and_contains_the_time(self, stream: str, n: int, at: float) -> None:
        made = event_id(stream, n, at)
        value = 0
        for digit in made[:10]:
            value = value * 32 + "0123456789ABCDEFGHJKMNPQRSTVWXYZ".index(digit)

        assert made == event_id(stream, n, at)
        assert value == int(at * 1000)

    def test_differs_with_each_part(self) -> None:
        made = [event_id("s", 1, 5.0), event_id("s", 2, 5.0), event_id("s1", 1, 5.0), event_id("s", 1, 6.0)]

        assert len({*made, event_id("s", 11, None), event_id("s1", 1, None)}) == 6

    def test_sorts_by_time(self) -> None:
        made = [event_id("s", n, at) for n, at in enumerate((0.0, 1.0, 1.5, 2e9, 4e9))]

        assert made == sorted(made)


def test_the_generator_supports_every_field_type() -> None:
    for cls in PAYLOADS.values():
        assert typing.get_type_hints(cls) is not None
        records(cls)
