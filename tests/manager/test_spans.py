"""The agent's own OpenTelemetry spans describe the window, and events carry the spans' ids."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from windowpane.agents.managers import AsyncContextWindowManager, ContextWindowManager
from windowpane.agents.spans import CurrentSpan, WindowSpanProcessor
from windowpane.core.events import ContentCompressed, TurnEnded
from windowpane.manager.spans import SpanIds, WindowOnSpan
from windowpane.testing import RecordingSink, chat_reply, in_memory_dependencies


class Tracing:
    """A tracer provider of the test's own, and what it recorded."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = self.provider.get_tracer("agent")

    def spans(self, name: str) -> list[Any]:
        return [span for span in self.exporter.get_finished_spans() if span.name == name]


@pytest.fixture
def tracing() -> Tracing:
    return Tracing()


def options(sink: RecordingSink, **changes: Any) -> dict[str, Any]:
    dependencies = replace(in_memory_dependencies(sink), spans=CurrentSpan())
    given = {"agent": "tester", "model": "no-such-model", "limit_tokens": 8_192, "session_id": "conversation"}
    return {**given, "dependencies": dependencies, **changes}


def fill(window: ContextWindowManager, n: int, tokens: int = 900) -> None:
    """A tool call and its result, which make the window fuller."""
    window.on_turn_end(chat_reply(f"turn {n}", calls=[(f"c{n}", "read", json.dumps({"n": n}))]))
    window.on_tool_result("read", " ".join(f"w{n}x{k}" for k in range(tokens)), f"c{n}")


def compactions(sink: RecordingSink) -> list[Any]:
    return [
        event
        for event in sink.events
        if isinstance(event.data, ContentCompressed)
        and event.data.strategy == "compaction"
        and event.data.outcome == "accepted"
    ]


def talk(window: ContextWindowManager, traced: Callable[[Callable[[], object]], None], turns: int) -> None:
    """A conversation of long messages, which only a compaction makes shorter."""
    for n in range(turns):
        window.add_user(" ".join(f"word{n}x{k}" for k in range(330)))

        def call(n: int = n) -> None:
            window.on_turn_start()
            window.on_turn_end(chat_reply(" ".join(f"reply{n}x{k}" for k in range(150))))

        traced(call)


def test_a_span_around_the_call_describes_the_window(tracing: Tracing) -> None:
    window = ContextWindowManager(**options(RecordingSink()))
    window.add_user("hello " * 200)
    with tracing.tracer.start_as_current_span("chat", attributes={"gen_ai.operation.name": "chat"}):
        window.on_turn_start()
        window.on_turn_end(chat_reply("hi", input_tokens=4_096, output_tokens=3))
    (span,) = tracing.spans("chat")
    found = dict(span.attributes)

    assert found["gen_ai.conversation.id"] == "conversation"
    assert (found["gen_ai.context.window_size"], type(found["gen_ai.context.window_size"])) == (8_192, int)
    assert found["gen_ai.context.utilization"] == pytest.approx(window.status().utilization)
    assert found["context_window.used_tokens"] == window.status().used_tokens
    assert found["context_window.zone"] == window.status().zone
    assert (found["context_window.turn"], found["context_window.window.id"]) == (1, 1)
    assert "gen_ai.conversation.compacted" not in found


def test_events_carry_the_ids_of_the_span(tracing: Tracing) -> None:
    sink = RecordingSink()
    window = ContextWindowManager(**options(sink))
    for n in range(2):
        window.add_user(f"question {n}")
        if n == 0:
            with tracing.tracer.start_as_current_span("chat") as span:
                window.on_turn_start()
                window.on_turn_end(chat_reply("answer"))
        else:
            window.on_turn_start()
            window.on_turn_end(chat_reply("answer"))
    window.close()
    ended = [event.context for event in sink.events if isinstance(event.data, TurnEnded)]
    identity = span.get_span_context()

    assert [(context.trace_id, context.span_id) for context in ended] == [
        (f"{identity.trace_id:032x}", f"{identity.span_id:016x}"),
        (None, None),
    ]


def test_only_the_call_that_a_compaction_preceded_is_marked(tracing: Tracing) -> None:
    sink = RecordingSink()

    def traced(call: Callable[[], object]) -> None:
        with tracing.tracer.start_as_current_span("chat"):
            call()

    with ContextWindowManager(**options(sink)) as window:
        talk(window, traced, 24)
    marked = {
        span.attributes["context_window.turn"]
        for span in tracing.spans("chat")
        if "gen_ai.conversation.compacted" in span.attributes
    }

    assert marked == {event.context.turn for event in compactions(sink)}
    assert 0 < len(marked) < 24
    assert all(
        span.attributes.get("gen_ai.conversation.compacted", True) is True for span in tracing.spans("chat")
    )


def test_the_span_of_an_instrumented_client_describes_the_window_too(tracing: Tracing) -> None:
    sink = RecordingSink()
    tracing.provider.add_span_processor(WindowSpanProcessor())  # type: ignore[arg-type]  # has its shape

    def traced() -> None:
        attributes = {"gen_ai.operation.name": "invoke_agent"}
        with tracing.tracer.start_as_current_span("agent", attributes=attributes):
            window.on_turn_start()
            for name, operation in (("chat gpt", "chat"), ("execute_tool read", "execute_tool")):
                with tracing.tracer.start_as_current_span(name, attributes={"gen_ai.operation.name": operation}):
                    pass
            window.on_turn_end(chat_reply(" ".join(f"reply{k}" for k in range(150))))

    with ContextWindowManager(**options(sink)) as window:
        for n in range(24):
            window.add_user(" ".join(f"word{n}x{k}" for k in range(330)))
            traced()
    chats = tracing.spans("chat gpt")

    assert len(chats) == 24
    assert all(span.attributes["gen_ai.conversation.id"] == "conversation" for span in chats)
    assert any(span.attributes.get("gen_ai.conversation.compacted") for span in chats)
    for span in (*tracing.spans("agent"), *tracing.spans("execute_tool read")):
        assert "gen_ai.conversation.compacted" not in span.attributes
    assert not any("gen_ai.conversation.id" in span.attributes for span in tracing.spans("execute_tool read"))


def test_tasks_of_one_loop_do_not_mix_their_spans(tracing: Tracing) -> None:
    async def agent(name: str) -> None:
        sink = RecordingSink()
        async with AsyncContextWindowManager(**options(sink, session_id=name)) as window:
            for n in range(3):
                window.add_user(f"question {n}")
                with tracing.tracer.start_as_current_span(f"chat {name}"):
                    await window.on_turn_start()
                    await asyncio.sleep(0)
                    await window.on_turn_end(chat_reply("answer"))

    async def both() -> None:
        await asyncio.gather(agent("one"), agent("two"))

    asyncio.run(both())

    for name in ("one", "two"):
        spans = tracing.spans(f"chat {name}")
        assert [span.attributes["gen_ai.conversation.id"] for span in spans] == [name] * 3


class Broken:
    """A link that fails whatever it is asked."""

    def current(self) -> SpanIds | None:
        raise RuntimeError("no tracing today")

    def describe(self, window: Callable[[], WindowOnSpan]) -> None:
        raise RuntimeError("no tracing today")


def test_a_broken_tracer_never_reaches_the_agent(caplog: pytest.LogCaptureFixture) -> None:
    sink = RecordingSink()
    dependencies = replace(in_memory_dependencies(sink), spans=Broken())
    caplog.set_level(logging.ERROR)
    with ContextWindowManager(**options(sink, dependencies=dependencies)) as window:
        for n in range(3):
            window.add_user("hello")
            assert window.on_turn_start().action == "none"
            fill(window, n, 20)

    assert len(sink.of(TurnEnded)) == 3
    assert len([record for record in caplog.records if "span" in record.message]) == 2


def test_without_opentelemetry_nothing_of_it_is_imported() -> None:
    script = (
        "import sys\n"
        "from windowpane.agents.spans import CurrentSpan\n"
        "link = CurrentSpan()\n"
        "link.describe(lambda: sys.exit('asked'))\n"
        "assert link.current() is None\n"
        "assert not any(name.startswith('opentelemetry') for name in sys.modules)\n"
    )

    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
