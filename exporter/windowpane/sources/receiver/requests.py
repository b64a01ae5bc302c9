"""Requests of OTLP/HTTP and their content."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import Final, Literal, NamedTuple

from windowpane.outputs.http.request_bodies import BodyError, decompressed
from windowpane.outputs.http.routes import PostRequest
from windowpane.sources.telemetry import json_bodies, protobuf_bodies
from windowpane.sources.telemetry.records import Telemetry, UnreadableBodyError

Signal = Literal["traces", "logs", "metrics"]
SIGNALS: Final[dict[str, Signal]] = {"/v1/traces": "traces", "/v1/logs": "logs", "/v1/metrics": "metrics"}
"""The signal of each path."""
PROTOBUF: Final = "application/x-protobuf"
JSON: Final = "application/json"

_READERS: Final[dict[tuple[str, Signal], Callable[[bytes], Telemetry]]] = {
    (PROTOBUF, "traces"): protobuf_bodies.read_traces,
    (PROTOBUF, "logs"): protobuf_bodies.read_logs,
    (PROTOBUF, "metrics"): protobuf_bodies.read_metrics,
    (JSON, "traces"): json_bodies.read_traces,
    (JSON, "logs"): json_bodies.read_logs,
    (JSON, "metrics"): json_bodies.read_metrics,
}


class DecodedRequest(NamedTuple):
    """The content of a request, with the size and a digest of its decompressed body."""

    telemetry: Telemetry
    size: int
    digest: bytes
    """The same for a request that is sent again, however it is compressed."""


def encoding_of(request: PostRequest) -> str:
    """Return the media type of a request. Raises `BodyError` with 415 for one that OTLP does not have."""
    given = (request.headers.get("Content-Type") or "").split(";")[0].strip().lower()
    if given not in (PROTOBUF, JSON):
        raise BodyError(415, f"the Content-Type is {given or 'missing'!r}; expected {PROTOBUF} or {JSON}")
    return given


def decode(request: PostRequest, encoding: str) -> DecodedRequest:
    """Return the content of a request. Raises `BodyError`."""
    body = decompressed(request)
    try:
        telemetry = _READERS[encoding, SIGNALS[request.path]](body)
    except UnreadableBodyError as error:
        raise BodyError(400, str(error)) from error
    return DecodedRequest(telemetry, len(body), blake2b(body, digest_size=16).digest())
