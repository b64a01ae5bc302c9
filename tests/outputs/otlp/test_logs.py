"""Events as OTLP log records: complete, without content, batched, bounded and never blocking."""

from __future__ import annotations

import json
import math
import threading
import time
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk._logs.export import LogRecordExporter, LogRecordExportResult
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from otlp_receiver import Receiver, record_attributes
from pydantic import SecretStr

from windowpane.config.outputs import OtlpConfig
from windowpane.core.events import (
    PAYLOADS,
    AlertFired,
    BlockAdded,
    BlocksEvicted,
    ContentCompressed,
    Event,
    EventContext,
    EvictedBlock,
    FactOutcome,
    FidelityEvaluated,
    NoteWritten,
    SessionEnded,
    TurnEnded,
    TurnStarted,
    Usage,
    ZoneChanged,
)
from windowpane.core.window.blocks import Block
from windowpane.outputs.otlp.conventions import Forms
from windowpane.outputs.otlp.logs import BATCH_EVENTS, EventLogs, logs_exporter
from windowpane.outputs.otlp.records import event_attributes, event_severity
from windowpane.outputs.otlp.sink import OtlpSink, genai_provider, process_resource

RESOURCE = process_resource()
SECRET = "the launch code is 4711"


def context(**changes: Any) -> EventContext:
    given: dict[str, Any] = {
        "session_id": "s1", "agent": "reviewer", "model": "gpt-5", "turn": 3, "window_id": 2, "source": "live",
        "stream_id": "stream",
    }  # fmt: skip
    return EventContext(**(given | changes))


def turns(count: int, *, first: int = 0) -> list[Event]:
    return [Event(context(), first + n, 1_000.0 + n, TurnStarted()) for n in range(count)]


def fired(severity: Any) -> Event:
    return Event(
        context(), 9, 1_000.5, AlertFired("utilization", severity, 2, 0.95, 0.9, "Window in red: 95% used")
    )


class Slow(LogRecordExporter):
    """Blocks every batch until it is released, and records the sizes."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.entered, self.released = threading.Event(), threading.Event()

    def export(self, batch: Any) -> LogRecordExportResult:
        self.entered.set()
        self.released.wait(20)
        self.sizes.append(len(batch))
        return LogRecordExportResult.SUCCESS

    def force_flush(self, timeout_millis: int = 10_000) -> bool:
        return True

    def shutdown(self) -> None:
        self.released.set()


def test_an_alert_record_has_name_severity_time_span_and_numbers(receiver: Receiver) -> None:
    logs = EventLogs(logs_exporter(receiver.logs_url), resource=RESOURCE, clock=lambda: 2_000.0)
    identity = {"trace_id": "0af7651916cd43dd8448eb211c80319c", "span_id": "b7ad6b7169203331"}
    logs.write([fired("critical")._replace(context=context(**identity))])
    logs.close()
    (record,) = receiver.records()

    assert record.event_name == "context_window.alert.fired"
    assert (record.severity_text, record.severity_number) == ("ERROR", 17)
    assert (record.time_unix_nano, record.observed_time_unix_nano) == (1_000_500_000_000, 2_000_000_000_000)
    assert (record.trace_id.hex(), record.span_id.hex()) == (identity["trace_id"], identity["span_id"])
    assert record.body.string_value == "Window in red: 95% used"
    attributes = record_attributes(record)
    assert attributes.pop("context_window.event.id")
    assert attributes == {
        "gen_ai.conversation.id": "s1", "gen_ai.agent.name": "reviewer", "gen_ai.request.model": "gpt-5",
        "context_window.turn": 3, "context_window.window.id": 2, "context_window.source": "live",
        "context_window.alert": "utilization", "context_window.severity": "critical",
        "context_window.crossing_turn": 2, "context_window.value": 0.95, "context_window.threshold": 0.9,
    }  # fmt: skip


def test_severities_of_alerts_failures_and_frequent_events() -> None:
    assert [event_severity(fired(grade)).text for grade in ("info", "warning", "critical")] == [
        "INFO",
        "WARN",
        "ERROR",
    ]
    assert event_severity(turns(1)[0]).text == "DEBUG"
    assert event_severity(Event(context(), 0, None, ZoneChanged("green", "red", 1, 0.9))).text == "INFO"


def test_usage_has_the_names_of_the_conventions() -> None:
    usage = Usage(100, 20, cache_read_tokens=30, cache_write_tokens=7, reasoning_tokens=5)
    attributes = event_attributes(Event(context(), 0, 1.0, TurnEnded(usage, "usage", 0.5)))

    assert {name: value for name, value in attributes.items() if name.startswith("gen_ai.usage")} == {
        "gen_ai.usage.input_tokens": 137,
        "gen_ai.usage.output_tokens": 20,
        "gen_ai.usage.cache_read.input_tokens": 30,
        "gen_ai.usage.cache_creation.input_tokens": 7,
        "gen_ai.usage.reasoning.output_tokens": 5,
    }
    assert attributes["context_window.cost_dollars"] == 0.5


@pytest.mark.parametrize(
    ("forms", "names"),
    [
        (Forms(old=False, new=True), {"cache_write"}),
        (Forms(old=True, new=True), {"cache_creation", "cache_write"}),
    ],
)
def test_the_name_of_cache_writes_in_the_current_conventions(forms: Forms, names: set[str]) -> None:
    usage = Usage(100, 20, cache_write_tokens=7)
    attributes = event_attributes(Event(context(), 0, 1.0, TurnEnded(usage, "usage")), forms=forms)

    written = {
        name: value for name, value in attributes.items() if "cache_creation" in name or "cache_write." in name
    }
    assert written == {f"gen_ai.usage.{name}.input_tokens": 7 for name in names}


def test_every_gen_ai_attribute_is_defined_by_the_conventions() -> None:
    defined = {value for value in vars(gen_ai_attributes).values() if isinstance(value, str)}
    usage = Usage(100, 20, cache_read_tokens=30, cache_write_tokens=7, reasoning_tokens=5)
    attributes = event_attributes(Event(context(), 0, 1.0, TurnEnded(usage, "usage", 0.5)))

    assert {name for name in attributes if name.startswith("gen_ai.")} <= defined


def test_records_never_contain_content(receiver: Receiver) -> None:
    block = Block(
        "b1", "tool_result", 9, 1, "g", 1, SECRET, 30, "exact", text=SECRET, tool_name=SECRET, handle=SECRET
    )
    evicted = EvictedBlock("b1", "tool_result", 9, "drop", SECRET, tool_name=SECRET, handle=SECRET)
    payloads: list[Any] = [
        BlockAdded(block),
        BlocksEvicted("hybrid", (evicted,), 9, 9),
        ContentCompressed("compaction", SECRET, "accepted", 9, 1, method=SECRET, reason=SECRET),
        FidelityEvaluated("probe", 0.5, 1.0, facts=(FactOutcome("path", "lost", SECRET, SECRET),), reason=SECRET),
        NoteWritten(SECRET, 3, SECRET),
        SessionEnded(SECRET),
    ]
    logs = EventLogs(logs_exporter(receiver.logs_url), resource=RESOURCE)
    logs.write([Event(context(), n, 1.0, payload) for n, payload in enumerate(payloads)])
    logs.close()

    assert len(receiver.records()) == len(payloads)
    assert SECRET not in str(receiver.log_requests)
    assert "4711" not in str(receiver.log_requests)


FLAT = sorted(set(PAYLOADS) - {"block.added", "turn.ended"})
"""Payloads whose numbers are their fields."""


def test_values_outside_the_vocabulary_are_not_sent() -> None:
    block = Block(
        "b1", "tool_result", 10, 3, "b0", 1, "digest-of-it", 40, "exact", None, "call-77", "payroll_lookup",
        handle="wp://b1",
    )  # fmt: skip
    attributes = event_attributes(Event(context(), 0, 1.0, BlockAdded(block)))

    assert attributes["context_window.content_type"] == "tool_result"
    assert not {"digest-of-it", "call-77", "payroll_lookup", "wp://b1", "b0", "b1"} & set(attributes.values())


@given(st.sampled_from(FLAT), st.text(max_size=400), st.floats())
def test_any_payload_makes_a_small_record(kind: str, text: str, number: float) -> None:
    cls = PAYLOADS[kind]
    given_values: dict[str, Any] = {
        field.name: number if "float" in str(field.type) else text for field in fields(cls) if field.init
    }
    attributes = event_attributes(Event(context(session_id=text, agent=text), 0, 1.0, cls(**given_values)))

    assert len(attributes) <= 64
    assert all(len(value) <= 200 for value in attributes.values() if isinstance(value, str))
    assert all(not math.isnan(value) for value in attributes.values() if isinstance(value, float))


def test_many_events_are_sent_in_batches(receiver: Receiver) -> None:
    logs = EventLogs(logs_exporter(receiver.logs_url), resource=RESOURCE)
    logs.write(turns(1_234))
    logs.close(20)

    times = [record.time_unix_nano for record in receiver.records()]
    assert times == [int((1_000 + n) * 1e9) for n in range(1_234)]
    assert len(receiver.log_requests) == math.ceil(1_234 / BATCH_EVENTS)


def test_a_slow_receiver_fills_a_bounded_queue_without_blocking() -> None:
    slow = Slow()
    drops: list[tuple[str, int]] = []
    logs = EventLogs(
        slow,
        resource=RESOURCE,
        count_drops=lambda reason, events: drops.append((reason, events)),
        queue_events=BATCH_EVENTS + 1_000,
    )
    logs.write(turns(BATCH_EVENTS))
    assert slow.entered.wait(10)
    started = time.perf_counter()
    for _ in range(100):
        logs.write(turns(100))
    took = time.perf_counter() - started
    slow.released.set()
    logs.close(10)

    assert sum(slow.sizes) == BATCH_EVENTS + 1_000
    assert drops
    assert {reason for reason, _ in drops} == {"full"}
    assert sum(events for _, events in drops) == 10_000 - 1_000
    assert took < 5


def test_rejected_batches_are_counted(receiver: Receiver) -> None:
    drops: list[tuple[str, int]] = []
    receiver.status = 400
    logs = EventLogs(
        logs_exporter(receiver.logs_url), resource=RESOURCE, count_drops=lambda *drop: drops.append(drop)
    )
    logs.write(turns(7))
    logs.close()
    assert drops == [("error", 7)]

    receiver.status = 200
    logs = EventLogs(
        logs_exporter(receiver.logs_url), resource=RESOURCE, count_drops=lambda *drop: drops.append(drop)
    )
    logs.write(turns(2))
    logs.close()
    assert drops == [("error", 7)]
    assert len(receiver.records()) == 2


def test_closing_ends_in_time_with_a_hanging_receiver(receiver: Receiver) -> None:
    drops: list[tuple[str, int]] = []
    receiver.released.clear()
    exporter = logs_exporter(receiver.logs_url, timeout_seconds=1.0)
    logs = EventLogs(
        exporter, resource=RESOURCE, count_drops=lambda *drop: drops.append(drop), linger_seconds=0.01
    )
    logs.write(turns(BATCH_EVENTS * 3))
    started = time.monotonic()
    logs.close(0.5)
    took = time.monotonic() - started
    logs.write(turns(1))

    assert took < 5
    assert ("closed", 1) in drops


def test_an_event_without_a_record_is_counted_alone(receiver: Receiver) -> None:
    drops: list[tuple[str, int]] = []
    logs = EventLogs(
        logs_exporter(receiver.logs_url), resource=RESOURCE, count_drops=lambda *drop: drops.append(drop)
    )
    bad = Event(context(), 1, math.inf, TurnStarted())
    logs.write([*turns(1), bad, *turns(1, first=2)])
    logs.close()

    assert len(receiver.records()) == 2
    assert drops == [("error", 1)]


def test_metrics_and_events_have_the_same_resource(receiver: Receiver) -> None:
    config = OtlpConfig(
        endpoint=receiver.url, headers={"x-scope-orgid": SecretStr("team")}, interval_seconds=3_600
    )
    sink = OtlpSink(config, sources=tuple, count_drops=lambda *_: None)
    sink.write(turns(1))
    sink.close()
    (logs,) = receiver.log_requests

    def resource(holder: Any) -> dict[str, str]:
        return {item.key: item.value.string_value for item in holder.resource.attributes}

    assert resource(logs.resource_logs[0])["service.name"] == "windowpane"
    assert {headers["x-scope-orgid"] for headers in receiver.headers} == {"team"}
    for request in receiver.requests:
        assert resource(request.resource_metrics[0]) == resource(logs.resource_logs[0])


def test_providers_have_the_names_of_the_conventions() -> None:
    assert genai_provider("gpt-5") == "openai"
    assert genai_provider("gemini-2.5-pro") == "gcp.gemini"
    assert genai_provider("avian/Meta-Llama-3.1-70B-Instruct") == ""
    assert genai_provider("acme-7b") == ""


@pytest.mark.parametrize("identifier", ["", "not-hex", "0" * 32])
def test_invalid_span_ids_are_omitted(receiver: Receiver, identifier: str) -> None:
    """A record with ids of another kind, as recordings may have, has no span."""
    logs = EventLogs(logs_exporter(receiver.logs_url), resource=RESOURCE)
    logs.write([Event(context(trace_id=identifier, span_id=identifier), 0, 1.0, TurnStarted())])
    logs.close()
    (record,) = receiver.records()

    assert json.dumps([record.trace_id.hex().strip("0"), record.span_id.hex().strip("0")]) == '["", ""]'


def test_names_with_lone_surrogates_are_sent(receiver: Receiver, caplog: pytest.LogCaptureFixture) -> None:
    logs = EventLogs(logs_exporter(receiver.logs_url), resource=RESOURCE, clock=lambda: 2_000.0)
    odd = context(session_id="s \ud800", agent="a\udfff", model="m\ud800")
    logs.write([fired("critical")._replace(context=odd)])
    logs.close()
    (record,) = receiver.records()
    attributes = record_attributes(record)

    assert (attributes["gen_ai.conversation.id"], attributes["gen_ai.agent.name"]) == ("s ?", "a?")
    assert attributes["gen_ai.request.model"] == "m?"
    assert caplog.records == []


@pytest.mark.parametrize("at", [1e12, 2.0**64 / 1e9, -1.0])
def test_a_time_outside_the_protocol_is_the_nearest(receiver: Receiver, at: float) -> None:
    """A clock in the year 33658 loses no record: the protocol's last nanosecond is sent."""
    logs = EventLogs(logs_exporter(receiver.logs_url), resource=RESOURCE, clock=lambda: at)
    logs.write([fired("critical")._replace(at=at)])
    logs.close()
    (record,) = receiver.records()

    assert 0 <= record.time_unix_nano < 2**64
    assert record.time_unix_nano == record.observed_time_unix_nano
