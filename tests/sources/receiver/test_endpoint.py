"""The endpoint over real sockets: what it takes, and what it refuses and how."""

from __future__ import annotations

import gzip
import json
import socket
import struct
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import Message
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

import pytest
from google.rpc.status_pb2 import Status
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from recordings import NAMES, bodies

from windowpane.config.schema import Config
from windowpane.core.events import Event, SessionStarted, TurnEnded
from windowpane.effects.record_log import RecordLog
from windowpane.outputs.http import request_bodies
from windowpane.outputs.http.asgi_server import AsgiServer, start_asgi_server
from windowpane.outputs.http.routes import PostRequest, Routes
from windowpane.sources.receiver.call_recorder import CallRecorder, RecorderSettings
from windowpane.sources.receiver.endpoint import OtlpEndpoint
from windowpane.sources.receiver.intake import Emitted, Intake, Outlet

PROTOBUF = {"Content-Type": "application/x-protobuf"}
JSON = {"Content-Type": "application/json"}


class Receiving:
    """A receiver on a free port, with the events that it made."""

    def __init__(self, *, wait_seconds: float = 0.05, token: str | None = None, **limits: int) -> None:
        self.events: list[Event] = []
        self.full = threading.Event()
        emitted = Emitted()
        recorder = CallRecorder(RecorderSettings(emit=emitted, digest=str, config=Config(), stream="s"))
        self.folder = tempfile.TemporaryDirectory()
        self.log = RecordLog(Path(self.folder.name) / "log")
        outlet = Outlet(
            put=self.events.extend, is_full=self.full.is_set, is_settled=lambda: True, is_stored=lambda *_: set()
        )
        self.intake = Intake(recorder, emitted, self.log, outlet, wait_seconds=wait_seconds, **limits)
        self.endpoint = OtlpEndpoint(self.intake)
        self.server: AsgiServer = start_asgi_server(Routes(bearer_token=token, posts=self.endpoint.posts), port=0)
        self.intake.start()

    def close(self) -> None:
        self.full.clear()
        self.server.close()
        assert self.intake.close()
        self.intake.release(is_settled=True)
        self.folder.cleanup()

    def post(
        self, body: bytes, headers: dict[str, str], path: str = "/v1/traces", *, chunked: bool = False
    ) -> HTTPResponse:
        connection = HTTPConnection(self.server.host, self.server.port, timeout=20)
        content: Any = iter([body[:5], body[5:]]) if chunked else body
        connection.request("POST", path, content, headers, encode_chunked=chunked)
        response = connection.getresponse()
        response.body = response.read()  # type: ignore[attr-defined]
        connection.close()
        return response

    def turns(self) -> list[int]:
        assert self.intake.close()
        return [event.data.usage.input_total for event in self.events if isinstance(event.data, TurnEnded)
                and event.data.usage is not None]  # fmt: skip


@contextmanager
def receiving(**settings: Any) -> Iterator[Receiving]:
    receiver = Receiving(**settings)
    try:
        yield receiver
    finally:
        receiver.close()


@pytest.fixture
def receiver() -> Iterator[Receiving]:
    with receiving() as running:
        yield running


def recorded(name: str) -> bytes:
    return next(path for path in bodies(name) if ".traces." in path.name).read_bytes()


def reason(response: HTTPResponse) -> str:
    body: bytes = response.body  # type: ignore[attr-defined]
    if response.headers["Content-Type"] == "application/x-protobuf":
        return str(Status.FromString(body).message)
    return str(json.loads(body)["message"]) if body.startswith(b"{") else body.decode()


def spans(*items: Any) -> bytes:
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": list(items)}]}]}).encode()


SPAN = {
    "traceId": "a" * 32, "spanId": "b" * 16, "startTimeUnixNano": "1700000000000000000",
    "endTimeUnixNano": "1700000001000000000", "name": "chat",
    "attributes": [
        {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
        {"key": "gen_ai.usage.input_tokens", "value": {"intValue": "700"}},
        {"key": "gen_ai.usage.output_tokens", "value": {"intValue": 5}},
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_recorded_requests_are_taken(receiver: Receiving, name: str) -> None:
    for number, path in enumerate(bodies(name)):
        headers = JSON if path.suffix == ".json" else PROTOBUF
        body, more = path.read_bytes(), {}
        if number == 0:
            body, more = gzip.compress(body), {"Content-Encoding": "gzip"}
        signal = "/v1/traces" if ".traces." in path.name else "/v1/logs"
        response = receiver.post(body, headers | more, signal, chunked=number == 0)

        assert response.status == 200
        assert response.headers["Content-Type"] == headers["Content-Type"]
    assert sorted(receiver.turns()) == [150, 200, 250]


def test_the_exporter_of_the_sdk_sends_here(receiver: Receiving) -> None:
    exporter = OTLPSpanExporter(f"http://{receiver.server.address}/v1/traces")
    provider = TracerProvider(resource=Resource({"service.name": "sdk-app"}))
    provider.add_span_processor(BatchSpanProcessor(exporter))
    tracer = provider.get_tracer("test")
    with tracer.start_as_current_span("agent", attributes={"gen_ai.conversation.id": "from-sdk"}):
        for tokens in (100, 300):
            with tracer.start_as_current_span("chat gpt-4o") as span:
                span.set_attributes({"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o"})
                span.set_attributes({"gen_ai.usage.input_tokens": tokens, "gen_ai.usage.output_tokens": 5})
    provider.shutdown()

    assert receiver.turns() == [100, 300]
    (started,) = [event for event in receiver.events if isinstance(event.data, SessionStarted)]
    assert (started.context.session_id, started.context.agent) == ("otlp:from-sdk", "sdk-app")


def test_metrics_are_taken_and_not_read(receiver: Receiving) -> None:
    body = json.dumps(
        {"resourceMetrics": [{"scopeMetrics": [{"metrics": [{"name": "claude_code.token.usage"}]}]}]}
    )

    assert receiver.post(body.encode(), JSON, "/v1/metrics").status == 200
    assert receiver.turns() == []


def test_a_partial_success_is_reported(receiver: Receiving) -> None:
    broken = SPAN | {"traceId": "00"}
    response = receiver.post(spans(SPAN, broken, SPAN | {"startTimeUnixNano": "never"}, 7), JSON)

    assert response.status == 200
    partial = json.loads(response.body)["partialSuccess"]  # type: ignore[attr-defined]
    assert partial["rejectedSpans"] == "3"
    assert "traceId" in partial["errorMessage"]
    assert receiver.turns() == [700]


def test_a_partial_success_in_protobuf(receiver: Receiving) -> None:
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    request = ExportTraceServiceRequest()
    request.resource_spans.add().scope_spans.add().spans.add(trace_id=b"short", span_id=b"x")
    response = receiver.post(request.SerializeToString(), PROTOBUF)

    partial = ExportTraceServiceResponse.FromString(response.body).partial_success  # type: ignore[attr-defined]
    assert (response.status, partial.rejected_spans) == (200, 1)


def deep(levels: int) -> bytes:
    value = '{"arrayValue":{"values":[' * levels + '{"stringValue":"x"}' + "]}}" * levels
    return spans(SPAN).replace(
        b'"attributes": [', b'"attributes": [{"key": "deep", "value": ' + value.encode() + b"},"
    )


def deep_protobuf(levels: int) -> bytes:
    value = b"\x0a\x01x"
    for _ in range(levels):  # AnyValue.array_value.values
        value = _field(5, _field(1, value))
    attribute = _field(1, b"deep") + _field(2, value)
    span = _field(1, b"a" * 16) + _field(2, b"b" * 8) + _field(9, attribute)
    return _field(1, _field(2, _field(2, span)))


def _field(number: int, content: bytes) -> bytes:
    length, size = b"", len(content)
    while size >= 0x80:
        length += bytes([size & 0x7F | 0x80])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + content


@pytest.mark.parametrize(
    ("body", "headers", "status", "words"),
    [
        (b"\xff\xff\xff", PROTOBUF, 400, "not a protobuf ExportTraceServiceRequest"),
        (b"{", JSON, 400, "not JSON"),
        (b"[]", JSON, 400, "expected a JSON object"),
        (b'{"resourceSpans": 7}', JSON, 400, "resourceSpans: expected a list, got int"),
        (b'{"resourceSpans": [7]}', JSON, 400, "resourceSpans[0]: expected an object, got int"),
        (b'{"resourceSpans": [{"scopeSpans": {}}]}', JSON, 400, "scopeSpans: expected a list, got dict"),
        (b"\xc3\x28", JSON, 400, "not JSON"),
        (b"[" * 200_000, JSON, 400, "not JSON"),
        (deep_protobuf(5_000), PROTOBUF, 400, "not a protobuf"),
        (b"{}", {"Content-Type": "text/xml"}, 415, "text/xml"),
        (b"{}", {}, 415, "missing"),
        (b"{}", JSON | {"Content-Encoding": "br"}, 415, "br"),
        (b"{}", JSON | {"Content-Encoding": "gzip"}, 400, "not gzip"),
        (gzip.compress(b"{}", mtime=0)[:-4], JSON | {"Content-Encoding": "gzip"}, 400, "cut short"),
    ],
)
def test_hostile_bodies_are_refused(
    receiver: Receiving, body: bytes, headers: dict[str, str], status: int, words: str
) -> None:
    response = receiver.post(body, headers)

    assert response.status == status
    assert words in reason(response)
    assert receiver.post(spans(SPAN), JSON).status == 200


def test_deep_attributes_do_not_matter(receiver: Receiving) -> None:
    assert receiver.post(deep(100), JSON).status == 200
    assert receiver.turns() == [700]


def test_a_gzip_bomb_is_refused_before_it_is_unpacked(
    receiver: Receiving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_bodies, "MAXIMUM_DECODED_BYTES", 100_000)
    for bomb in (gzip.compress(bytes(1_000_000)), gzip.compress(bytes(60_000)) * 2):
        response = receiver.post(bomb, PROTOBUF | {"Content-Encoding": "gzip"})

        assert (response.status, "larger than 100,000 bytes" in reason(response)) == (413, True)


@pytest.mark.parametrize("chunked", [False, True])
def test_an_oversized_body_is_refused(receiver: Receiving, *, chunked: bool) -> None:
    body = bytes(request_bodies.MAXIMUM_BODY_BYTES + 1)
    response = receiver.post(body, PROTOBUF, chunked=chunked)

    assert response.status == 413


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", 400),
        (b"Content-Length: -1\r\n\r\n", 400),
        (b"Content-Length: many\r\n\r\n", 400),
        (b"\r\n", 411),
        (b"Content-Length: 50\r\n\r\nshort", 400),
        (b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n", 400),
        (b"Transfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n", 400),
        (b"Transfer-Encoding: chunked\r\n\r\n5\r\nhelloworld\r\n", 400),
        (b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\nhello", 400),
        (b"Transfer-Encoding: gzip\r\n\r\n", 501),
    ],
)
def test_malformed_framing_is_refused(receiver: Receiving, head: bytes, status: int) -> None:
    request = b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + head

    assert _raw(receiver, request).startswith(f"HTTP/1.1 {status} ".encode())


def test_chunks_without_end_are_refused(receiver: Receiving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_bodies, "BODY_SECONDS", 0.2)
    head = b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    with socket.create_connection((receiver.server.host, receiver.server.port), timeout=10) as client:
        client.sendall(head)
        client.settimeout(0.05)
        received = b""
        for _ in range(200):
            try:
                client.sendall(b"1\r\nx\r\n")
                received += client.recv(100)
            except TimeoutError:
                continue
            except OSError:
                break
            if received:
                break

    assert received.startswith(b"HTTP/1.1 408 ")


def _raw(receiver: Receiving, request: bytes) -> bytes:
    with socket.create_connection((receiver.server.host, receiver.server.port), timeout=10) as client:
        client.sendall(request)
        client.shutdown(socket.SHUT_WR)
        received = b""
        while piece := client.recv(4_096):
            received += piece
    return received


def test_a_client_that_resets_the_connection_does_no_harm(receiver: Receiving) -> None:
    client = socket.create_connection((receiver.server.host, receiver.server.port))
    client.sendall(b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nx")
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()

    assert receiver.post(spans(SPAN), JSON).status == 200


def test_a_full_queue_refuses_and_loses_nothing() -> None:
    """429 with Retry-After while the pipeline has no room; everything acknowledged is recorded afterwards."""
    with receiving(capacity_items=3) as receiver:
        receiver.full.set()
        statuses = []
        for number in range(6):
            span = SPAN | {"spanId": f"{number:016x}", "traceId": f"{number:032x}"}
            response = receiver.post(spans(span), JSON)
            statuses.append(response.status)

        assert statuses == [200, 200, 200, 429, 429, 429]
        assert response.headers["Retry-After"] == "1"
        assert "queue is full" in reason(response)
        receiver.full.clear()
        assert receiver.turns() == [700, 700, 700]


def test_the_token_is_required() -> None:
    with receiving(token="secret") as receiver:
        assert receiver.post(spans(SPAN), JSON).status == 401
        assert receiver.post(spans(SPAN), JSON | {"Authorization": "Bearer secret"}).status == 200


def test_other_hosts_paths_and_methods(receiver: Receiving) -> None:
    assert receiver.post(spans(SPAN), JSON | {"Host": "evil.example"}).status == 421
    assert receiver.post(spans(SPAN), JSON, "/v1/other").status == 404
    assert _raw(receiver, b"GET /v1/traces HTTP/1.1\r\nHost: localhost\r\n\r\n").startswith(b"HTTP/1.1 405 ")
    assert _raw(receiver, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").startswith(b"HTTP/1.1 404 ")


def test_only_requests_that_are_taken_are_passed_on(receiver: Receiving) -> None:
    passed_on: list[bytes] = []

    class Forwarding:
        def put(self, request: PostRequest) -> None:
            passed_on.append(request.body)

    endpoint = OtlpEndpoint(receiver.intake, forwarder=Forwarding())  # type: ignore[arg-type]
    headers = Message()
    headers["Content-Type"] = "application/json"
    statuses = [
        endpoint.respond(PostRequest("/v1/traces", headers, body)).status for body in (spans(SPAN), b"{", b"{}")
    ]

    assert statuses == [200, 400, 200]
    assert passed_on == [spans(SPAN), b"{}"]
