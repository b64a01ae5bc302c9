"""Spans received a second on one core, from the request's bytes to the events in the store.

The floor is the parsing of the same protobuf bodies alone, in the same run; all times are CPU time of the
process. *agents* are runs of an agent as frameworks trace them: one of six spans is a model call with its whole
prompt, the others are steps, tools and HTTP. *calls* are model calls only, without content. Everything
acknowledged must be in the store at the end; requests beyond the queue get status 429 and are sent again.
"""

from __future__ import annotations

import json
import logging
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from email.message import Message
from pathlib import Path

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from windowpane.cli.otlp_receiver import OtlpReceiver
from windowpane.config.outputs import OtlpConfig, StoreConfig
from windowpane.config.schema import Config
from windowpane.effects.processes import rare_collection
from windowpane.metrics.internal import InternalMetrics
from windowpane.outputs.http.routes import PostRequest
from windowpane.outputs.runtime.notifier import configured_notifier
from windowpane.sources.telemetry import protobuf_bodies
from windowpane.store.embedded import SqliteStore

SPANS_A_REQUEST = 512
REQUESTS = 60
STEPS_A_RUN = 10
GOAL = 5_000
"""Spans a second."""
STEP = 1_000_000_000
START = 1_700_000_000 * STEP


def spans(kind: str) -> Iterator[dict[str, object]]:
    """Yield the names, parents and attributes of spans."""
    number = 0
    while True:
        number += 1
        if kind == "calls":
            yield {"trace": number // 20, "name": "chat", "attributes": call(number % 20, None)}
            continue
        yield {"trace": number, "name": "agent", "attributes": {"gen_ai.operation.name": "invoke_agent"}}
        messages: list[dict[str, object]] = [
            message("user", f"Task {number}: " + "look at the code and mend it. " * 20)
        ]
        for step in range(STEPS_A_RUN):
            yield {"trace": number, "name": "step", "attributes": {"traceloop.span.kind": "task"}}
            yield {"trace": number, "name": "chat", "attributes": call(step, messages)}
            yield {
                "trace": number,
                "name": "POST",
                "attributes": {"http.request.method": "POST", "http.status": 200},
            }
            yield {"trace": number, "name": "tool", "attributes": {"gen_ai.operation.name": "execute_tool"}}
            yield {"trace": number, "name": "query", "attributes": {"db.system.name": "sqlite", "db.rows": 3}}
            messages.append(message("assistant", f"Step {step} of task {number}: read the next file."))
            messages.append(message("user", f"File {step}: " + "def function(value): return value + 1\n" * 20))


def message(role: str, text: str) -> dict[str, object]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def call(step: int, messages: list[dict[str, object]] | None) -> dict[str, object]:
    attributes: dict[str, object] = {
        "gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-4o",
        "gen_ai.usage.input_tokens": 1_000 + 300 * step, "gen_ai.usage.output_tokens": 60,
        "server.address": "api.openai.com", "server.port": 443, "gen_ai.request.temperature": 1,
    }  # fmt: skip
    if messages is not None:
        attributes["gen_ai.input.messages"] = json.dumps(messages)
    return attributes


def bodies(kind: str, *, requests: int = REQUESTS) -> list[bytes]:
    """Return the bodies of all requests."""
    source, made = spans(kind), []
    number = 0
    for _ in range(requests):
        request = ExportTraceServiceRequest()
        resource = request.resource_spans.add()
        resource.resource.attributes.add(key="service.name").value.string_value = "bench"
        scope = resource.scope_spans.add()
        scope.scope.name = "bench"
        for _ in range(SPANS_A_REQUEST):
            number += 1
            made_one = next(source)
            trace = int(made_one["trace"])  # type: ignore[call-overload]
            span = scope.spans.add(
                name=str(made_one["name"]), trace_id=trace.to_bytes(16, "big"), span_id=number.to_bytes(8, "big"),
                start_time_unix_nano=START + number * STEP, end_time_unix_nano=START + number * STEP + STEP // 2,
            )  # fmt: skip
            for key, value in made_one["attributes"].items():  # type: ignore[attr-defined]
                attribute = span.attributes.add(key=key).value
                if isinstance(value, int):
                    attribute.int_value = value
                else:
                    attribute.string_value = str(value)
        made.append(request.SerializeToString())
    return made


def cpu_seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def parse(sent: list[bytes]) -> None:
    for body in sent:
        ExportTraceServiceRequest.FromString(body)


def decode(sent: list[bytes]) -> None:
    for body in sent:
        protobuf_bodies.read_traces(body)


def receive(sent: list[bytes], path: Path) -> int:
    """Post every request until it is acknowledged, close, and return the turns in the store."""
    config = Config(store=StoreConfig(path=path), otlp=OtlpConfig(receive_wait_seconds=0.5))
    store = SqliteStore(path)
    internal = InternalMetrics(version="", clock=time.time, last_event_at=lambda: None)
    notifier = configured_notifier(config, outbox=None, emit=lambda _: None)
    receiver = OtlpReceiver(config, store, notifier, internal, has_token=False)
    headers = Message()
    headers["Content-Type"] = "application/x-protobuf"
    with rare_collection():  # as `serve --otlp` does
        receiver.start()
        for body in sent:
            while receiver.endpoint.respond(PostRequest("/v1/traces", headers, body)).status == 429:
                time.sleep(0.05)
        receiver.close(timeout_seconds=600)
    with closing(sqlite3.connect(path)) as connection:
        turns = int(connection.execute("SELECT sum(turns) FROM sessions").fetchone()[0])
    if internal.dropped_events():
        sys.exit(f"{internal.dropped_events()} events were dropped")
    store.close()
    return turns


def main() -> None:
    """Print the rates of both kinds."""
    logging.disable(logging.WARNING)
    failed = False
    with tempfile.TemporaryDirectory() as folder:  # libraries, prices and vocabularies are loaded once
        receive(bodies("agents", requests=1), Path(folder) / "windowpane.db")
    print("| spans | floor: parsing | decoding | received, recorded, stored | per second of one core | calls |")
    print("| --- | --- | --- | --- | --- | --- |")
    for kind in ("agents", "calls"):
        sent = bodies(kind)
        count = REQUESTS * SPANS_A_REQUEST
        expected = sum(1 for _, span in zip(range(count), spans(kind), strict=False) if span["name"] == "chat")
        floor, decoded = cpu_seconds(lambda sent=sent: parse(sent)), cpu_seconds(lambda sent=sent: decode(sent))
        with tempfile.TemporaryDirectory() as folder:
            turns = 0

            def work(sent: list[bytes] = sent, folder: str = folder) -> None:
                nonlocal turns
                turns = receive(sent, Path(folder) / "windowpane.db")

            total = cpu_seconds(work)
        if turns != expected:
            sys.exit(f"{expected} calls were sent and {turns} are stored")
        rate = count / total
        print(
            f"| {kind} | {1e6 * floor / count:.1f} µs | {decoded / floor:.1f} times | {total / floor:.0f} times, "
            f"{1e6 * total / count:.0f} µs | {rate:,.0f} | {expected:,} sent, {turns:,} stored |"
        )
        failed = failed or (kind == "agents" and rate < GOAL)
    print(f"\nGoal: {GOAL:,} spans of agents a second: {'missed' if failed else 'met'}.")
    if failed:
        sys.exit(1)


if __name__ == "__main__":
    main()
