"""The handler of OTLP/HTTP requests: decode, queue on disk, pass on; few are decoded at once."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any, Final

from windowpane.effects.record_log import RecordLogFullError
from windowpane.outputs.http.request_bodies import RETRY_AFTER, BodyError
from windowpane.outputs.http.routes import PostHandler, PostRequest, Response
from windowpane.sources.receiver.forwarding import Forwarder
from windowpane.sources.receiver.intake import Intake
from windowpane.sources.receiver.requests import JSON, PROTOBUF, SIGNALS, Signal, decode, encoding_of
from windowpane.sources.telemetry.records import Telemetry

_ITEMS: Final[dict[Signal, str]] = {"traces": "spans", "logs": "log_records", "metrics": "data_points"}

DECODED_AT_ONCE: Final = 2
"""Requests decoded at once: each may take many times its size in memory."""
TAKEN_AT_ONCE: Final = 16
"""Requests decoded or written to disk at once: what is written together is made durable together."""
DECODE_SECONDS: Final = 5.0
"""Time that a request waits for its turn."""


def accepted(signal: Signal, encoding: str, telemetry: Telemetry) -> Response:
    """Return the response to a request that was taken, with what of it could not be read."""
    rejected, problem = telemetry.rejected, telemetry.problem
    if encoding == JSON:
        name = _camel(f"rejected_{_ITEMS[signal]}")
        document = {"partialSuccess": {name: str(rejected), "errorMessage": problem}} if rejected else {}
        return Response(200, json.dumps(document).encode(), JSON)
    response = _response_type(signal)()
    if rejected:
        setattr(response.partial_success, f"rejected_{_ITEMS[signal]}", rejected)
        response.partial_success.error_message = problem
    return Response(200, response.SerializeToString(), PROTOBUF)


def refused(error: BodyError, encoding: str) -> Response:
    """Return the response to a request that was not taken: a `Status` with the reason."""
    if encoding == JSON:
        return Response(error.status, json.dumps({"message": str(error)}).encode(), JSON, error.headers)
    if encoding == PROTOBUF:
        from google.rpc.status_pb2 import Status

        return Response(error.status, Status(message=str(error)).SerializeToString(), PROTOBUF, error.headers)
    return Response(error.status, f"{error}\n".encode(), headers=error.headers)


def _response_type(signal: Signal) -> Any:
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    return {
        "traces": ExportTraceServiceResponse,
        "logs": ExportLogsServiceResponse,
        "metrics": ExportMetricsServiceResponse,
    }[signal]


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


class OtlpEndpoint:
    """Answers requests. Thread-safe."""

    def __init__(self, intake: Intake, *, forwarder: Forwarder | None = None) -> None:
        self._intake = intake
        self._forwarder = forwarder
        self._decoding = threading.BoundedSemaphore(DECODED_AT_ONCE)
        self._turns = asyncio.Semaphore(TAKEN_AT_ONCE)

    @property
    def posts(self) -> dict[str, PostHandler]:
        """The paths that it answers."""

        async def respond(request: PostRequest) -> Response:
            async with self._turns:
                return await asyncio.to_thread(self.respond, request)

        return dict.fromkeys(SIGNALS, respond)

    def respond(self, request: PostRequest) -> Response:
        """Take a request, or refuse it with the reason."""
        encoding = ""
        try:
            encoding = encoding_of(request)
            return self._take(request, encoding)
        except BodyError as error:
            return refused(error, encoding)

    def _take(self, request: PostRequest, encoding: str) -> Response:
        if not self._decoding.acquire(timeout=DECODE_SECONDS):
            raise BodyError(429, "too many requests are being read; try again", RETRY_AFTER)
        try:
            decoded = decode(request, encoding)
        finally:
            self._decoding.release()
        try:
            if not self._intake.put(request, decoded):
                raise BodyError(429, "the queue is full; try again", RETRY_AFTER)
        except OSError as error:
            what = "is full" if isinstance(error, RecordLogFullError) else "cannot be written"
            raise BodyError(503, f"the queue on disk {what}; try again", RETRY_AFTER) from error
        if self._forwarder is not None:
            self._forwarder.put(request)
        return accepted(SIGNALS[request.path], encoding, decoded.telemetry)
