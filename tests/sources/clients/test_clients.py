"""`windowpane.observe` around the real clients of OpenAI and Anthropic, on transports within the test."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import windowpane
from windowpane.core.events import ContentCompressed, Event, SessionStarted, TurnEnded, Usage
from windowpane.core.tracking import SessionInfo, SessionTracker
from windowpane.exceptions import ConfigurationError
from windowpane.models.wire.calls import ApiCall
from windowpane.outputs.runtime.start import Runtime
from windowpane.outputs.runtime.task_queue import CAPACITY
from windowpane.sources.clients import calls
from windowpane.sources.clients.recording import open_conversation
from windowpane.sources.conversations.conversations import Scope
from windowpane.sources.conversations.observer import WindowObserver
from windowpane.store.embedded import SqliteStore
from windowpane.store.filters import EventFilter, SessionFilter
from windowpane.store.records import SessionRow

openai = pytest.importorskip("openai")
anthropic = pytest.importorskip("anthropic")
try:
    import httpx2 as httpx
except ImportError:
    import httpx  # type: ignore[no-redef]

SENT = "Migrate user-service"
CHAT = {
    "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-4o-2024-08-06",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "On it."}}],
    "usage": {"prompt_tokens": 1200, "completion_tokens": 3, "total_tokens": 1203,
              "prompt_tokens_details": {"cached_tokens": 1000}},
}  # fmt: skip
RESPONSE = {
    "id": "resp_1", "object": "response", "created_at": 1, "model": "gpt-4o", "status": "completed",
    "output": [{"id": "msg_1", "type": "message", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": "On it.", "annotations": []}]}],
    "parallel_tool_calls": False, "tool_choice": "auto", "tools": [],
    "usage": {"input_tokens": 900, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 3,
              "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 903},
}  # fmt: skip
MESSAGE = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-of-tests", "stop_reason": "end_turn",
    "stop_sequence": None, "content": [{"type": "text", "text": "On it."}],
    "usage": {"input_tokens": 100, "output_tokens": 3, "cache_read_input_tokens": 700,
              "cache_creation_input_tokens": 0},
}  # fmt: skip


def sse(*pieces: dict[str, Any], named: bool) -> str:
    """Server-sent events, as the two providers write them."""
    lines = [f"data: {json.dumps(piece)}\n\n" for piece in pieces]
    if named:
        lines = [f"event: {piece['type']}\n{line}" for piece, line in zip(pieces, lines, strict=True)]
    return "".join(lines) + ("" if named else "data: [DONE]\n\n")


def chunk(delta: dict[str, Any], **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": None}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o",
            "choices": [choice]} | more  # fmt: skip


CHAT_STREAM = sse(
    chunk({"role": "assistant", "content": "On "}), chunk({"content": "it."}),
    chunk({}, choices=[], usage=CHAT["usage"]), named=False,
)  # fmt: skip
ANTHROPIC_STREAM = sse(
    {"type": "message_start", "message": MESSAGE | {"content": [], "stop_reason": None}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "On it."}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None},
     "usage": {"output_tokens": 3}},
    {"type": "message_stop"}, named=True,
)  # fmt: skip


class Provider:
    """A provider with scripted replies that records the requests it received."""

    def __init__(self) -> None:
        self.status = 200
        self.answer: Any = CHAT
        self.asked: list[bytes] = []

    def __call__(self, request: Any) -> Any:
        self.asked.append(request.content)
        if isinstance(self.answer, str):
            return httpx.Response(200, text=self.answer, headers={"content-type": "text/event-stream"})
        return httpx.Response(self.status, json=self.answer)

    async def later(self, request: Any) -> Any:
        return self(request)


@pytest.fixture
def provider() -> Provider:
    return Provider()


def openai_client(provider: Provider) -> Any:
    transport = httpx.Client(transport=httpx.MockTransport(provider))
    return openai.OpenAI(api_key="k", base_url="http://provider.test/v1", http_client=transport, max_retries=0)


def async_openai_client(provider: Provider) -> Any:
    transport = httpx.AsyncClient(transport=httpx.MockTransport(provider.later))
    return openai.AsyncOpenAI(
        api_key="k", base_url="http://provider.test/v1", http_client=transport, max_retries=0
    )


def anthropic_client(provider: Provider) -> Any:
    transport = httpx.Client(transport=httpx.MockTransport(provider))
    return anthropic.Anthropic(api_key="k", base_url="http://provider.test", http_client=transport, max_retries=0)


def async_anthropic_client(provider: Provider) -> Any:
    transport = httpx.AsyncClient(transport=httpx.MockTransport(provider.later))
    return anthropic.AsyncAnthropic(
        api_key="k", base_url="http://provider.test", http_client=transport, max_retries=0
    )


def chat_body(**more: Any) -> dict[str, Any]:
    return {"model": "gpt-4o", "messages": [{"role": "user", "content": SENT}]} | more


def claude_body(**more: Any) -> dict[str, Any]:
    return chat_body(model="claude-of-tests", max_tokens=100) | more


def sessions(running: Runtime) -> list[SessionRow]:
    running.flush()
    assert running.store is not None
    return list(running.store.sessions(SessionFilter()))


def turns(running: Runtime) -> list[TurnEnded]:
    running.flush()
    assert running.store is not None
    found = running.store.events(EventFilter(types=("turn.ended",)))
    return [stored.event.data for stored in found]  # type: ignore[misc]


def events(running: Runtime) -> list[Event]:
    running.flush()
    assert running.store is not None
    return [stored.event for stored in running.store.events(EventFilter())]


def test_a_chat_completion_is_observed(running: Runtime, provider: Provider) -> None:
    client = openai_client(provider)
    assert windowpane.observe(client, agent="reviewer") is client

    reply = client.chat.completions.create(**chat_body())

    assert reply.choices[0].message.content == "On it."
    [row] = sessions(running)
    assert (row.agent, row.model, row.used_tokens, row.cache_read_tokens) == ("reviewer", "gpt-4o", 1203, 1000)
    assert row.cost_dollars is not None
    assert turns(running)[0].latency_seconds is not None


def test_resources_that_were_used_before_are_observed(running: Runtime, provider: Provider) -> None:
    """Also those below them that are made later."""
    client = openai_client(provider)
    used = client.chat.completions, client.beta.chat, client.responses
    windowpane.observe(client)
    used[0].create(**chat_body())
    used[1].completions.create(**chat_body())
    provider.answer = RESPONSE
    used[2].create(model="gpt-4o", input=SENT)

    assert len(turns(running)) == 3


def test_observing_a_client_loads_none_of_its_modules(tmp_path: Path) -> None:
    program = """
import sys, anthropic, openai, windowpane
clients = openai.OpenAI(api_key="k"), anthropic.Anthropic(api_key="k")
def loaded():
    return {name for name in sys.modules if name.startswith(("openai.", "anthropic.", "numpy", "tiktoken"))}
before = loaded()
windowpane.start(port=0, store=sys.argv[1], notify=[])
for client in clients:
    windowpane.observe(client)
print(sorted(loaded() - before))
"""
    command = [sys.executable, "-P", "-c", program, str(tmp_path / "windowpane.db")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_sent_requests_are_the_same_to_the_byte(running: Runtime, provider: Provider) -> None:
    for make, call in (
        (openai_client, lambda client: client.chat.completions.create(**chat_body(temperature=0.5))),
        (openai_client, lambda client: client.responses.create(model="gpt-4o", input=SENT)),
        (anthropic_client, lambda client: client.messages.create(**claude_body(system="Be brief"))),
    ):
        provider.asked.clear()
        call(make(provider))
        call(windowpane.observe(make(provider)))

        assert provider.asked[0] == provider.asked[1]


def test_a_response_is_observed(running: Runtime, provider: Provider) -> None:
    provider.answer = RESPONSE
    client = windowpane.observe(openai_client(provider))
    client.responses.create(model="gpt-4o", input=SENT, instructions="Be brief")
    client.responses.create(model="gpt-4o", input="Go on", previous_response_id="resp_1", instructions="Be brief")

    [row] = sessions(running)
    assert (row.turns, row.used_tokens) == (2, 903)


def test_a_compaction_that_is_requested_is_observed(running: Runtime, provider: Provider) -> None:
    provider.answer = RESPONSE
    client = windowpane.observe(openai_client(provider))
    client.responses.create(model="gpt-5", input=SENT)
    summary = {"id": "cmp_1", "type": "compaction", "encrypted_content": "gAAAA"}
    provider.answer = {**RESPONSE, "id": "resp_2", "object": "response.compaction", "output": [summary]}
    client.responses.compact(model="gpt-5", previous_response_id="resp_1")

    [row] = sessions(running)
    assert (row.turns, row.compressions) == (2, 1)


def test_a_message_of_claude_is_observed(running: Runtime, provider: Provider) -> None:
    provider.answer = MESSAGE
    client = windowpane.observe(anthropic_client(provider))
    reply = client.messages.create(**claude_body(system="Be brief"))

    assert reply.content[0].text == "On it."
    [row] = sessions(running)
    assert row.used_tokens == 803
    assert "system_prompt" in {event.data.block.content_type for event in events(running)
                               if event.type == "block.added"}  # fmt: skip


def test_an_agent_is_warned_of_the_level_of_its_earlier_sessions(running: Runtime, provider: Provider) -> None:
    assert running.store is not None
    past = SessionTracker(
        SessionInfo("past", "reviewer", "gpt-4o", "import", "past"), emit=running.emit, digest=running.digest
    )
    past.start(1.0)
    removed = past.add("user_message", "a question", 10, at=1.0)
    past.end_turn(Usage(90_000, 5), at=1.0)
    compaction = ContentCompressed("compaction", "auto", "accepted", 10, 2, removed=(removed.id,), method="agent")
    past.compress(compaction, at=2.0)
    past.add("user_message", "go on", 10, at=3.0)
    past.end_turn(Usage(20_000, 5), at=3.0)
    past.end("completed", 4.0)
    assert running.flush()
    windowpane.observe(openai_client(provider), agent="reviewer").chat.completions.create(**chat_body())

    levels = {
        event.data.earlier_compaction_tokens
        for event in events(running)
        if isinstance(event.data, SessionStarted)
    }
    assert levels == {None, 90_005}


def test_the_window_of_a_program_is_that_of_its_settings(running: Runtime) -> None:
    scope = Scope(
        "claude-code", window_by_settings=lambda _, model: 200_000 if model == "claude-opus-5" else None
    )

    def limit(model: str) -> tuple[int, str] | None:
        limits = open_conversation(running, ApiCall("anthropic", model, ()), scope, None).observer.tracker.limits
        return None if limits is None else (limits.limit_tokens, limits.source)

    assert limit("claude-opus-5") == (200_000, "settings")
    assert limit("claude-sonnet-5") == (1_000_000, "assumed")


def test_a_conversation_is_one_session(running: Runtime, provider: Provider) -> None:
    provider.answer = MESSAGE
    client = windowpane.observe(anthropic_client(provider))
    messages: list[Any] = [{"role": "user", "content": SENT}]
    for _ in range(3):
        reply = client.messages.create(**claude_body(messages=messages))
        messages += [{"role": "assistant", "content": reply.content}, {"role": "user", "content": "Go on"}]

    [row] = sessions(running)
    assert row.turns == 3
    added = [event for event in events(running) if event.type == "block.added"]
    kinds = [event.data.block.content_type for event in added]  # type: ignore[union-attr]
    assert (kinds.count("user_message"), kinds.count("assistant_response")) == (3, 3)
    assert row.evicted_blocks == 0


def test_a_chat_stream_is_passed_on_and_counted(running: Runtime, provider: Provider) -> None:
    provider.answer = CHAT_STREAM
    client = windowpane.observe(openai_client(provider))
    stream = client.chat.completions.create(**chat_body(stream=True, stream_options={"include_usage": True}))

    assert isinstance(stream, openai.Stream)
    text = "".join(piece.choices[0].delta.content for piece in stream if piece.choices)
    assert text == "On it."
    assert sessions(running)[0].used_tokens == 1203


def test_claude_streams_are_counted(running: Runtime, provider: Provider) -> None:
    provider.answer = ANTHROPIC_STREAM
    client = windowpane.observe(anthropic_client(provider))
    with client.messages.stream(**claude_body()) as stream:
        assert "".join(stream.text_stream) == "On it."
        assert stream.get_final_message().usage.output_tokens == 3
    kinds = [event.type for event in client.messages.create(**claude_body(stream=True))]

    assert kinds[0] == "message_start"
    assert kinds[-1] == "message_stop"
    assert [(ended.usage.input_total, ended.usage.output_tokens) for ended in turns(running) if ended.usage] == [
        (800, 3), (800, 3)
    ]  # fmt: skip


def test_async_clients_are_observed(running: Runtime, provider: Provider) -> None:
    async def work() -> str:
        chat = windowpane.observe(async_openai_client(provider))
        await chat.chat.completions.create(**chat_body())
        provider.answer = CHAT_STREAM
        stream = await chat.chat.completions.create(**chat_body(stream=True))
        text = "".join([piece.choices[0].delta.content async for piece in stream if piece.choices])
        claude = windowpane.observe(async_anthropic_client(provider))
        provider.answer = ANTHROPIC_STREAM
        async with claude.messages.stream(**claude_body()) as events_of:
            text += await events_of.get_final_text()
        provider.answer = MESSAGE
        await claude.messages.create(**claude_body())
        await chat.close()
        await claude.close()
        return text

    assert asyncio.run(work()) == "On it.On it."
    assert sorted(ended.usage.input_total for ended in turns(running) if ended.usage) == [800, 800, 1200, 1200]


def test_copies_of_a_client_are_observed(running: Runtime, provider: Provider) -> None:
    client = windowpane.observe(windowpane.observe(openai_client(provider)))
    client.with_options(timeout=3).chat.completions.create(**chat_body())

    assert len(turns(running)) == 1


def test_an_error_of_the_provider_passes_unchanged(running: Runtime, provider: Provider) -> None:
    provider.status = 400
    message = "This model's maximum context length is 8192 tokens, however you requested 9000 tokens"
    provider.answer = {"error": {"message": message, "type": "invalid_request_error"}}
    client = windowpane.observe(openai_client(provider))
    with pytest.raises(openai.BadRequestError, match="maximum context length"):
        client.chat.completions.create(**chat_body())

    assert sessions(running)[0].overflows == 1


def test_a_fault_of_ours_never_reaches_the_agent(
    running: Runtime, provider: Provider, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    client = windowpane.observe(openai_client(provider))

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("broken")

    for name in ("record_call", "record_reply", "record_failure"):
        monkeypatch.setattr(f"windowpane.sources.conversations.observer.WindowObserver.{name}", broken)
        assert client.chat.completions.create(**chat_body()).choices[0].message.content == "On it."
        running.flush()
    assert "observing a call failed" in caplog.text


def test_calls_are_read_on_another_thread(
    running: Runtime, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: set[str] = set()
    record = WindowObserver.record_call

    def recorded(*args: Any, **kwargs: Any) -> None:
        threads.add(threading.current_thread().name)
        record(*args, **kwargs)

    monkeypatch.setattr(WindowObserver, "record_call", recorded)
    client = windowpane.observe(openai_client(provider))
    client.chat.completions.create(**chat_body())
    assert not threads

    returned = time.time()
    assert [
        event.at for event in events(running) if event.type == "turn.ended" and (event.at or 0) > returned
    ] == []
    assert threads == {"windowpane-observer"}


@pytest.mark.parametrize("make", [openai_client, anthropic_client])
def test_messages_edited_after_the_call_count_as_they_were_sent(
    running: Runtime, provider: Provider, make: Callable[[Provider], Any]
) -> None:
    client = windowpane.observe(make(provider))
    provider.answer = CHAT if make is openai_client else MESSAGE
    text = "The log of the build, line by line. " * 20
    messages: list[Any] = [{"role": "user", "content": SENT}, {"role": "user", "content": [
        {"type": "text", "text": text}
    ]}]  # fmt: skip
    with windowpane.session():
        for _ in range(2):
            if make is openai_client:
                client.chat.completions.create(model="gpt-4o", messages=messages)
            else:
                client.messages.create(**claude_body(messages=messages))
            messages[1]["content"][0]["text"] = "[cleared]"
            messages += [{"role": "assistant", "content": "On it."}, {"role": "user", "content": "Go on"}]

    [row] = sessions(running)
    assert (row.turns, row.evicted_blocks) == (2, 1)


def test_calls_beyond_the_queue_are_dropped_and_counted(running: Runtime, provider: Provider) -> None:
    client = windowpane.observe(openai_client(provider))
    proceed = threading.Event()
    running.observations.put("hanging", lambda: proceed.wait(30), weight=200_000)
    for _ in range(3):
        assert client.chat.completions.create(**chat_body()).id == "chatcmpl-1"
    proceed.set()
    assert not running.flush(20)
    client.chat.completions.create(**chat_body())

    assert len(turns(running)) == 1
    assert running.url is not None
    with urllib.request.urlopen(running.url) as page:
        assert 'windowpane_dropped_events_total{reason="full",sink="observer"} 3.0' in page.read().decode()


def test_a_process_that_ends_at_once_stores_its_last_call(tmp_path: Path) -> None:
    script = tmp_path / "agent.py"
    script.write_text(
        "from pathlib import Path\nimport sys\nimport windowpane\n"
        "from tests.sources.clients.test_clients import Provider, chat_body, openai_client\n"
        "windowpane.start(port=0, store=Path(sys.argv[1]), notify=[])\n"
        "windowpane.observe(openai_client(Provider())).chat.completions.create(**chat_body())\n"
    )
    root = Path(__file__).parents[3]
    store = tmp_path / "windowpane.db"
    subprocess.run([sys.executable, script, store], cwd=root, env={**os.environ, "PYTHONPATH": str(root)},
                   timeout=60, check=True)  # fmt: skip

    reader = SqliteStore(store)
    assert [row.turns for row in reader.sessions(SessionFilter())] == [1]
    reader.close()


def test_a_named_session_ends_with_its_block(running: Runtime, provider: Provider) -> None:
    client = windowpane.observe(openai_client(provider), agent="other")
    with windowpane.session(agent="planner", session_id="job-7", limit_tokens=10_000) as session_id:
        client.chat.completions.create(**chat_body())
    provider.status = 500
    with pytest.raises(openai.APIStatusError), windowpane.session(session_id="job-8"):
        client.chat.completions.create(**chat_body())

    assert session_id == "job-7"
    rows = {row.session_id: row for row in sessions(running)}
    assert (rows["job-7"].agent, rows["job-7"].limit_tokens, rows["job-7"].ended) == ("planner", 10_000, True)
    reasons = {event.context.session_id: event.data.reason for event in events(running)
               if event.type == "session.ended"}  # type: ignore[union-attr]  # fmt: skip
    assert reasons == {"job-7": "completed", "job-8": "failed"}


def test_the_end_of_a_session_is_recorded_while_the_queue_is_full(running: Runtime, provider: Provider) -> None:
    """Calls are dropped then; a session that never ends would count as live."""
    client = windowpane.observe(openai_client(provider))
    proceed = threading.Event()
    with windowpane.session(session_id="job-9"):
        client.chat.completions.create(**chat_body())
        assert running.flush(10)
        assert running.observations.put("holding", lambda: proceed.wait(30), weight=CAPACITY)
        assert not running.observations.put("another task", lambda: None)
    proceed.set()
    running.flush(10)

    assert [(row.session_id, row.turns, row.ended) for row in sessions(running)] == [("job-9", 1, True)]


def test_a_live_session_belongs_to_a_project(
    provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINDOWPANE_PROJECT", "shop")
    with windowpane.start(port=0, store=tmp_path / "projects.db", notify=[]) as outputs:
        client = windowpane.observe(openai_client(provider))
        with windowpane.session(session_id="job-1", project="bank"):
            client.chat.completions.create(**chat_body())
        with windowpane.session(session_id="job-2"):
            client.chat.completions.create(**chat_body())
            other = {"role": "system", "content": "You are another agent."}
            client.chat.completions.create(**{**chat_body(), "messages": [other, *chat_body()["messages"][1:]]})
        with windowpane.ContextWindowManager(agent="managed", model="gpt-5", session_id="job-3"):
            pass
        assert outputs.flush()
        projects = {row.session_id[:5]: row.project for row in outputs.store.sessions()}
        children = [row.project for row in outputs.store.sessions(SessionFilter(parent_session_id="job-2"))]

    assert projects == {"job-1": "bank", "job-2": "shop", "job-3": "shop"}
    assert children == ["shop"]
    with pytest.raises(ConfigurationError, match="project"), windowpane.session(project="a b"):
        pass


def test_a_live_session_is_named_by_its_user_only(running: Runtime, provider: Provider) -> None:
    client = windowpane.observe(openai_client(provider))
    with windowpane.session(session_id="job-1", title="Night build\nof sk-ant-api03-" + "A1b2" * 24, label="ci"):
        client.chat.completions.create(**chat_body())
    with windowpane.session(session_id="job-2"):
        client.chat.completions.create(**chat_body())
    with pytest.raises(ConfigurationError, match="title"), windowpane.session(title=7):  # type: ignore[arg-type]
        pass

    rows = {row.session_id: row for row in sessions(running)}
    assert rows["job-1"].title.startswith("Night build of [redacted:")
    assert (rows["job-1"].title_source, rows["job-1"].label) == ("user", "ci")
    assert (rows["job-2"].title, rows["job-2"].folder) == ("", "")


def test_without_outputs_nothing_is_observed(provider: Provider) -> None:
    client = windowpane.observe(openai_client(provider))

    assert client.chat.completions.create(**chat_body()).id == "chatcmpl-1"
    assert calls.running_outputs() is None


def test_other_objects_are_refused() -> None:
    with pytest.raises(TypeError, match="cannot observe a dict"):
        windowpane.observe({})


def test_a_stream_of_messages_that_can_be_read_once_is_not_consumed(running: Runtime, provider: Provider) -> None:
    """An iterator of messages is sent whole; observing would have to consume it."""
    provider.answer = MESSAGE
    client = windowpane.observe(anthropic_client(provider))
    one: Callable[[], Iterator[Any]] = lambda: iter([{"role": "user", "content": SENT}])  # noqa: E731
    client.messages.create(**claude_body(messages=one()))

    assert json.loads(provider.asked[0])["messages"] == [{"role": "user", "content": SENT}]
    assert sessions(running) == []


@pytest.mark.parametrize(
    ("options", "key"),
    [({"agent": 7}, "agent"), ({"agent": ""}, "agent"), ({"session_id": 3}, "session_id"),
     ({"parent_session_id": b"x"}, "parent_session_id")],
)  # fmt: skip
def test_a_name_that_is_not_a_text_is_an_error_at_once(options: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigurationError) as error, windowpane.session(**options):
        pass

    assert error.value.path == key


def test_a_session_may_end_in_another_context(running: Runtime) -> None:
    """A generator that holds a session may be closed by another task or thread, as web frameworks do."""

    async def hold() -> AsyncIterator[str]:
        with windowpane.session(session_id="held") as session_id:
            yield session_id

    async def run() -> None:
        generator = hold()
        assert await asyncio.create_task(anext(generator)) == "held"  # type: ignore[arg-type]
        await generator.aclose()  # type: ignore[attr-defined]

    asyncio.run(run())
    with windowpane.session(session_id="next"):
        pass
    assert calls.current_scope.get() is None
    assert running.flush(10)
