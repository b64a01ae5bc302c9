"""Events to JSON and back, exactly.

One event is one JSON object: the fields of its context, `n`, `at`, `type`, `event_id`, `schema`, and the payload
under `data`. None is omitted; texts of blocks, facts and rules and the marks of blocks are never written. The
audit chain hashes these bytes, so the order of keys is fixed by the order of the fields. Reading validates every
field and names the invalid one; events of an older schema pass through `UPCASTERS` first, and unknown fields are
ignored.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import MISSING, fields, is_dataclass, replace
from operator import attrgetter
from typing import Any, Final, NamedTuple

import msgspec

from windowpane.core.decoders import convert, json_decoder
from windowpane.core.events import (
    PAYLOADS,
    SCHEMA,
    BlockAdded,
    Event,
    EventContext,
    FidelityEvaluated,
    Payload,
    PressureMeasured,
    RulesFollowed,
    event_ids,
)
from windowpane.core.events.compression import FactOutcome, RuleOutcome
from windowpane.core.window.blocks import Block
from windowpane.exceptions import EventFormatError

Document = dict[str, Any]

UPCASTERS: Final[dict[int, Callable[[Document], Document]]] = {}
"""Functions that lift a document of a schema version to the next version."""

_INFINITE: Final = (
    "turns_until_red", "turns_until_red_p10", "turns_until_red_p90", "turns_until_exhausted",
    "turns_until_compaction", "turns_until_compaction_p10", "turns_until_compaction_p90",
)  # fmt: skip
"""Fields that may be infinite, which JSON does not support: written as the string `inf`."""

_read_infinite: Final = attrgetter(*_INFINITE)
_encoder: Final = msgspec.json.Encoder()
_decoder: Final = json_decoder(dict[str, Any])


def _reader(
    cls: type, *, without: tuple[str, ...] = ()
) -> tuple[tuple[str, ...], Callable[[Any], tuple[Any, ...]]]:
    # Keyword-only fields, such as the phase of a measurement, are written before the fields that they extend.
    ordered = sorted(fields(cls), key=lambda field: not field.kw_only)
    names = tuple(field.name for field in ordered if field.name not in without)
    if len(names) < 2:
        return names, lambda value: tuple(getattr(value, name) for name in names)
    return names, attrgetter(*names)


_CONTEXT: Final = _reader(EventContext)
_BLOCK: Final = _reader(Block, without=("text", "marks"))
_FACT: Final = _reader(FactOutcome, without=("text",))
_RULE: Final = _reader(RuleOutcome, without=("text", "contradicted_by"))
_PAYLOADS: Final = {name: _reader(cls) for name, cls in PAYLOADS.items()}

_REQUIRED: Final = {
    name: tuple(
        field.name for field in fields(cls) if field.default is MISSING and field.default_factory is MISSING
    )
    for name, cls in PAYLOADS.items()
}
"""Fields without a default: None is not written, so an absent field is read as None."""


def _present(reader: tuple[tuple[str, ...], Callable[[Any], tuple[Any, ...]]], value: object) -> Document:
    names, read = reader
    return {name: item for name, item in zip(names, read(value), strict=True) if item is not None}


def _mirror(name: str, names: tuple[str, ...]) -> type[msgspec.Struct]:
    """Return a structure type of these fields that omits None when it is written."""
    fields_without_values = [(field, Any, None) for field in names]
    return msgspec.defstruct(name, fields_without_values, omit_defaults=True)


class _Plan(NamedTuple):
    """The templates and readers by which `encode` writes a payload."""

    timed: bytes
    """The whole event, with slots for context, number, time, id and payload."""
    untimed: bytes
    mirror: type[msgspec.Struct]
    read: Callable[[Any], tuple[Any, ...]]


def _plan(cls: type[Payload]) -> _Plan:
    names, read = _BLOCK if cls is BlockAdded else _PAYLOADS[cls.type]
    tail = f',"type":"{cls.type}","event_id":"%b","schema":{SCHEMA},"data":%b}}'.encode()
    return _Plan(b'%b,"n":%d,"at":%b' + tail, b'%b,"n":%d' + tail, _mirror(cls.__name__, names), read)


_PLANS: Final = {name: _plan(cls) for name, cls in PAYLOADS.items()}
_CONTEXT_MIRROR: Final = _mirror("EventContext", _CONTEXT[0])
_read_context: Final = _CONTEXT[1]
_FACT_MIRROR: Final = _mirror("FactOutcome", _FACT[0])
_read_fact: Final = _FACT[1]
_RULE_MIRROR: Final = _mirror("RuleOutcome", _RULE[0])
_read_rule: Final = _RULE[1]


def to_document(event: Event) -> Document:
    """Return the event as plain JSON types."""
    data = event.data
    document = _present(_CONTEXT, event.context)
    document["n"] = event.n
    if event.at is not None:
        document["at"] = event.at
    document["type"] = data.type
    document["event_id"] = event.event_id
    document["schema"] = SCHEMA
    document["data"] = _payload_document(data)
    return document


def _payload_document(data: Payload) -> Document:
    if isinstance(data, BlockAdded):
        return _present(_BLOCK, data.block)
    document = _present(_PAYLOADS[data.type], data)
    if isinstance(data, FidelityEvaluated):
        document["facts"] = [_present(_FACT, fact) for fact in data.facts]
    elif isinstance(data, RulesFollowed):
        document["outcomes"] = [_present(_RULE, rule) for rule in data.outcomes]
    for name in _INFINITE:
        if document.get(name) == math.inf:
            document[name] = "inf"
    return document


def encode(event: Event) -> bytes:
    """Return the JSON bytes of the event, as they are stored and hashed; equal to those of `to_document`.

    Halves of surrogate pairs, which a model can write into a tool's name, are invalid in UTF-8 and become `?`.
    """
    return encode_all((event,))[0]


def encode_all(events: Sequence[Event]) -> list[bytes]:
    """Return the JSON bytes of each event."""
    return [_encode(event, identity) for event, identity in zip(events, event_ids(events), strict=True)]


def _encodable(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_encodable(item) for item in value]
    if is_dataclass(value):
        return {field.name: _encodable(getattr(value, field.name)) for field in fields(value)}
    return value


def _encode(event: Event, identity: str) -> bytes:
    try:
        return _filled(event, identity.encode())
    except UnicodeEncodeError:
        return _encoder.encode(_encodable(to_document(event)))


def _filled(event: Event, identity: bytes) -> bytes:
    """Return the template of the event's type with its values."""
    context, n, at, data = event
    timed, untimed, mirror, read = _PLANS[data.type]
    payload: object = data
    if type(data) is BlockAdded:
        payload = data.block
    elif type(data) is FidelityEvaluated:
        facts = tuple(_FACT_MIRROR(*_read_fact(fact)) for fact in data.facts)
        payload = replace(data, facts=facts)  # type: ignore[arg-type]  # the same fields, without the text
    elif type(data) is RulesFollowed:
        rules = tuple(_RULE_MIRROR(*_read_rule(rule)) for rule in data.outcomes)
        payload = replace(data, outcomes=rules)  # type: ignore[arg-type]  # likewise
    values = read(payload)
    if type(data) is PressureMeasured and math.inf in _read_infinite(data):
        items = zip(mirror.__struct_fields__, values, strict=True)
        values = tuple("inf" if value == math.inf and name in _INFINITE else value for name, value in items)
    raw = _encoder.encode(mirror(*values))
    last, head = _last_context
    if last is not context:
        head = _remember(context)
    if at is None:
        return untimed % (head, n, identity, raw)
    return timed % (head, n, _encoder.encode(at), identity, raw)


def _remember(context: EventContext) -> bytes:
    """Return the context's fields without the closing brace; cached, since events of one turn share it."""
    global _last_context  # noqa: PLW0603  # replaced as one pair, so that no thread sees half of it
    head = _encoder.encode(_CONTEXT_MIRROR(*_read_context(context)))[:-1]
    _last_context = (context, head)
    return head


_last_context: tuple[EventContext | None, bytes] = (None, b"")


def decode(raw: bytes | str) -> Event:
    """Return the event that *raw* encodes. Raises `EventFormatError` that names the invalid field."""
    try:
        document = _decoder.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, TypeError) as error:  # a database may hold other than text
        raise EventFormatError(f"not a JSON object: {error}") from error
    return from_document(document)


def from_document(document: Document) -> Event:
    """Return the event that a JSON object describes. Raises `EventFormatError` that names the invalid field."""
    schema = document.get("schema")
    if type(schema) is not int or schema > SCHEMA or schema < 1:  # True is an integer, too
        raise EventFormatError(f"schema: expected an integer from 1 to {SCHEMA}, got {schema!r}")
    while schema < SCHEMA:
        document = UPCASTERS[schema](document)
        schema += 1
    kind = document.get("type")
    cls = PAYLOADS.get(kind) if isinstance(kind, str) else None
    if cls is None:
        raise EventFormatError(f"type: expected one of the {len(PAYLOADS)} event names, got {kind!r}")
    at, n, data = document.get("at"), document.get("n"), document.get("data")
    if at is not None and type(at) not in (int, float):
        raise EventFormatError(f"at: expected seconds since the epoch, got {at!r}")
    if type(n) is not int:
        raise EventFormatError(f"n: expected an integer, got {n!r}")
    if not isinstance(data, dict):
        raise EventFormatError(f"data: expected an object, got {data!r}")
    try:
        context = convert(document, EventContext)
        return Event(context, n, at, _read_payload(cls, data))
    except msgspec.ValidationError as error:
        raise EventFormatError(f"{kind}: {error}") from error


def _read_payload(cls: type[Payload], data: Document) -> Payload:
    if cls is BlockAdded:
        return BlockAdded(convert(data, Block))
    for name in _REQUIRED[cls.type]:
        data.setdefault(name, None)
    if any(name in data for name in _INFINITE):
        data = {name: math.inf if value == "inf" and name in _INFINITE else value for name, value in data.items()}
    return convert(data, cls)
