"""The requests that were acknowledged and whose calls are not stored yet, on disk.

Beside the requests the log states which event ends each call, before that event is handed to the store. So after
a crash the calls whose events the store has are not recorded a second time, whatever it had written until then.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from email.message import Message
from typing import Final, NamedTuple

import msgspec

from windowpane.core.decoders import msgpack_decoder
from windowpane.core.events import Event, TurnEnded
from windowpane.effects.record_log import RecordLog
from windowpane.outputs.http.request_bodies import BodyError
from windowpane.outputs.http.routes import PostRequest
from windowpane.sources.receiver.requests import DecodedRequest, decode, encoding_of
from windowpane.sources.telemetry.reported_call import Position

IsStored = Callable[[str, set[tuple[str, int]]], set[tuple[str, int]]]
"""Returns which events of a session are stored, each named by its stream and number."""

_HEADERS: Final = ("Content-Type", "Content-Encoding")
"""The headers without which a body cannot be read."""
_log = logging.getLogger(__name__)


class _Request(msgspec.Struct, tag="request", array_like=True):
    at: float
    digest: bytes
    path: str
    headers: list[str]
    body: bytes


class RecordedCall(msgspec.Struct, array_like=True):
    """The items that reported a call, and the event that ends it."""

    positions: list[Position]
    session_id: str = ""
    """Empty for what needs no event, such as a report of a call that another one has reported."""
    stream_id: str = ""
    n: int = 0


class _Recorded(msgspec.Struct, tag="recorded", array_like=True):
    calls: list[RecordedCall]


_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final[msgspec.msgpack.Decoder[_Request | _Recorded]] = msgpack_decoder(_Request | _Recorded)


class LoggedRequest(NamedTuple):
    """A request that an earlier process has acknowledged."""

    number: int
    at: float
    """Seconds since 1970 at which it came."""
    decoded: DecodedRequest


class EarlierCalls:
    """The calls of requests in the log that an earlier process has recorded."""

    def __init__(self) -> None:
        self._stored = set[Position]()
        self._void = set[Position]()

    def read(self, log: RecordLog, is_stored: IsStored) -> None:
        """Read the log, and ask the store. Raises `StoreError`."""
        self._stored.clear()
        self._void.clear()
        sessions: dict[str, list[RecordedCall]] = defaultdict(list)
        for _, content in _contents(log):
            for call in content.calls if isinstance(content, _Recorded) else ():
                sessions[call.session_id].append(call)
        for call in sessions.pop("", []):
            self._void.update(call.positions)
        for session_id, calls in sessions.items():
            stored = is_stored(session_id, {(call.stream_id, call.n) for call in calls})
            for call in calls:
                if (call.stream_id, call.n) in stored:
                    self._stored.update(call.positions)

    def contain(self, positions: Sequence[Position]) -> bool:
        """Return whether a call that is reported at *positions* is stored, or counted with another one."""
        if not positions or not (self._stored or self._void):
            return False
        return any(one in self._stored for one in positions) or all(one in self._void for one in positions)

    def clear(self) -> None:
        """Forget everything: the requests are no longer in the log."""
        self._stored.clear()
        self._void.clear()


def append(log: RecordLog, request: PostRequest, digest: bytes, at: float) -> int:
    """Append a request and return its number when it is durable. Raises `OSError`."""
    headers = [request.headers.get(name) or "" for name in _HEADERS]
    number = log.append(_encoder.encode(_Request(at, digest, request.path, headers, request.body)))
    log.sync(number)
    return number


def append_recorded(log: RecordLog, calls: list[RecordedCall]) -> None:
    """State durably which events end *calls*. Raises `OSError`."""
    log.sync(log.append(_encoder.encode(_Recorded(calls)), is_bounded=False))


def recorded_call(positions: Sequence[Position], events: Sequence[Event]) -> RecordedCall:
    """Return what the log states of a call that was recorded in *events*."""
    if not events:
        return RecordedCall(list(positions))
    last = next((event for event in reversed(events) if isinstance(event.data, TurnEnded)), events[-1])
    return RecordedCall(list(positions), last.context.session_id, last.context.stream_id, last.n)


def earlier_digests(log: RecordLog) -> Iterator[tuple[bytes, int]]:
    """Yield the digest and number of each request of earlier processes."""
    for number, content in _contents(log):
        if isinstance(content, _Request):
            yield content.digest, number


def earlier_requests(log: RecordLog) -> Iterator[LoggedRequest]:
    """Yield the requests of earlier processes that are still in the log; one that cannot be read is reported."""
    for number, content in _contents(log):
        if isinstance(content, _Recorded):
            continue
        headers = Message()
        for name, value in zip(_HEADERS, content.headers, strict=False):
            if value:
                headers[name] = value
        request = PostRequest(content.path, headers, content.body)
        try:
            yield LoggedRequest(number, content.at, decode(request, encoding_of(request)))
        except (BodyError, KeyError) as error:
            _log.error("request %d in %s cannot be read: %s", number, log.folder, error)


def _contents(log: RecordLog) -> Iterator[tuple[int, _Request | _Recorded]]:
    """Yield the records of earlier processes with their numbers; one of another format is reported."""
    for record in log.earlier():
        try:
            yield record.number, _decoder.decode(record.content)
        except msgspec.MsgspecError as error:
            _log.error("record %d in %s cannot be read: %s", record.number, log.folder, error)
