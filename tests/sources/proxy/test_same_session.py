"""One conversation with the scripted provider, recorded by the agent itself, `observe`, the proxy and OTLP."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import pytest
from tests.providers.loopback import LoopbackProvider, loopback_provider

import windowpane
from windowpane.core.events import CompactionMeasured
from windowpane.effects.error_boundary import ErrorBoundary
from windowpane.outputs.runtime.start import Runtime
from windowpane.sources.conversations.conversations import Scope
from windowpane.sources.imports.importer import import_paths
from windowpane.sources.imports.pipeline import playback_settings
from windowpane.sources.proxy import call_reader
from windowpane.sources.proxy.agent_sessions import recorded_session, session_in_headers
from windowpane.sources.proxy.call_messages import EndedCall, SentCall
from windowpane.sources.proxy.call_reader import CallReader
from windowpane.sources.transcripts.discovery import all_readers
from windowpane.store.filters import EventFilter, SessionFilter
from windowpane.store.open import open_store

SESSION = "019a0000-0000-7000-8000-00000000000a"
MODEL = "claude-sonnet-4-6"
REPLIES = (
    ("msg_01AbCdEfGhJkMnPqRsTu001", [{"type": "tool_use", "id": "toolu_01XyZwVuTsRqPoNm0001", "name": "weather",
                                      "input": {"city": "Paris"}}]),
    ("msg_01AbCdEfGhJkMnPqRsTu002", [{"type": "text", "text": "Paris has 21 degrees and a clear sky today."}]),
    ("msg_01AbCdEfGhJkMnPqRsTu003", [{"type": "text", "text": "Rome has the same weather as Paris."}]),
)  # fmt: skip
TOOL = {"name": "weather", "description": "The weather of a city.",
        "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}  # fmt: skip
USAGE = {"input_tokens": 900, "output_tokens": 12}
SEEN = ("transcript", "observe", "proxy", "otlp")


class Conversation:
    """A tool loop and a second question, as each source records it."""

    def __init__(self, folder: Path, tag: str) -> None:
        self._folder = folder
        self._tag = tag
        self._started_at = time.time()
        self.replies = [
            {"id": f"{name}{tag}", "type": "message", "role": "assistant", "model": MODEL, "stop_sequence": None,
             "content": json.loads(json.dumps(content).replace("Nm0001", f"Nm0001{tag}")), "usage": USAGE,
             "stop_reason": "tool_use" if content[0]["type"] == "tool_use" else "end_turn"}
            for name, content in REPLIES
        ]  # fmt: skip

    def messages(self) -> Iterator[list[dict[str, Any]]]:
        """The messages of each call."""
        sent: list[dict[str, Any]] = [{"role": "user", "content": f"What is the weather in Paris? {self._tag}"}]
        for reply in self.replies:
            yield list(sent)
            sent.append({"role": "assistant", "content": reply["content"]})
            call = reply["content"][0]
            result = [{"type": "tool_result", "tool_use_id": call.get("id"), "content": "21 degrees, clear sky"}]
            sent.append({"role": "user", "content": result if call["type"] == "tool_use" else "And in Rome?"})

    def run(self, client: anthropic.Anthropic, provider: LoopbackProvider, **more: Any) -> None:
        for messages, reply in zip(self.messages(), self.replies, strict=True):
            provider.document = reply
            client.messages.create(
                model=MODEL, max_tokens=100, system="You are careful.", tools=[TOOL], messages=messages, **more
            )

    def transcript(self) -> Path:
        """Claude Code's recording of it."""
        rows = []
        for messages, reply in zip(self.messages(), self.replies, strict=True):
            rows += [{"type": "user", "message": messages[-1]}, {"type": "assistant", "message": reply}]
        for number, row in enumerate(rows):
            at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._started_at + number))
            row |= {"sessionId": SESSION + self._tag, "uuid": f"u{self._tag}{number}", "timestamp": at,
                    "version": "2.1.0", "cwd": "/work"}  # fmt: skip
        path = self._folder / f"{SESSION}{self._tag}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    def telemetry(self) -> Path:
        """The spans of an instrumented client, in one trace and without messages."""
        spans = []
        for number, reply in enumerate(self.replies, 1):
            values = {"gen_ai.operation.name": "chat", "gen_ai.request.model": MODEL,
                      "gen_ai.provider.name": "anthropic", "gen_ai.response.id": reply["id"],
                      "gen_ai.usage.input_tokens": 900, "gen_ai.usage.output_tokens": 12}  # fmt: skip
            started = int((self._started_at + number) * 1e9)
            attributes = [
                {"key": name, "value": {"intValue": value} if isinstance(value, int) else {"stringValue": value}}
                for name, value in values.items()
            ]
            spans.append({"traceId": f"{int(self._tag or '0', 16) + 1:032x}", "spanId": f"{number:016x}",
                          "name": f"chat {MODEL}", "kind": 3, "startTimeUnixNano": str(started),
                          "endTimeUnixNano": str(started + 1_000_000), "attributes": attributes})  # fmt: skip
        path = self._folder / f"otlp{self._tag}.json"
        path.write_text(json.dumps({"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": [
            {"scope": {"name": "opentelemetry.instrumentation.anthropic"}, "spans": spans}]}]}))  # fmt: skip
        return path


@pytest.fixture
def provider() -> Iterator[LoopbackProvider]:
    with loopback_provider() as running:
        yield running


@pytest.fixture
def see(
    outputs: Runtime,
    provider: LoopbackProvider,
    proxy_to: Callable[..., Any],
    store_calls: Callable[[], None],
    tmp_path: Path,
) -> Callable[[Conversation, str], None]:
    """Let one source record a conversation in the store of the outputs."""
    assert outputs.store is not None
    proxy = proxy_to(provider.url)
    watched = windowpane.observe(anthropic.Anthropic(api_key="k", base_url=provider.url, max_retries=0))
    relayed = anthropic.Anthropic(api_key="k", base_url=f"{proxy.url}/anthropic", max_retries=0)
    importer = open_store(outputs.store.address)

    def record(conversation: Conversation, source: str) -> None:
        if source in ("observe", "proxy"):
            conversation.run(watched if source == "observe" else relayed, provider)
            store_calls()
            return
        path = conversation.transcript() if source == "transcript" else conversation.telemetry()
        (report,) = import_paths(
            [path], importer, playback=playback_settings(importer.digester()), readers=all_readers(complete=True)
        )
        assert not report.error

    return record


def test_one_conversation_seen_by_four_sources_is_one_session(
    see: Callable[[Conversation, str], None], outputs: Runtime, tmp_path: Path
) -> None:
    """In every order that starts with another source, and each pair in both: turns and tokens count once."""
    orders = [SEEN, *(SEEN[n:] + SEEN[:n] for n in (1, 2, 3)), *permutations(SEEN, 2)]
    expected = {"transcript": "claude_code", "observe": "live", "proxy": "proxy", "otlp": "otlp"}
    for number, order in enumerate(orders):
        conversation = Conversation(tmp_path, f"{number:x}")
        for source in order:
            see(conversation, source)

    assert outputs.store is not None
    rows = outputs.store.sessions(SessionFilter(limit=1_000))
    counting = [expected[min(order, key=SEEN.index)] for order in orders]
    assert sorted(row.source for row in rows) == sorted(counting)
    assert {(row.turns, row.input_tokens) for row in rows} == {(3, 2_700)}
    assert sum(day.calls for day in outputs.store.trends(days=2)) == 3 * len(orders)
    assert open_store(outputs.store.address).verify().broken == ()


@pytest.mark.parametrize("pair", [*combinations(SEEN, 2)], ids="-".join)
def test_different_conversations_stay_different(
    see: Callable[[Conversation, str], None], outputs: Runtime, tmp_path: Path, pair: tuple[str, str]
) -> None:
    for number, source in enumerate(pair):
        see(Conversation(tmp_path, f"{number}"), source)

    assert outputs.store is not None
    assert [row.turns for row in outputs.store.sessions()] == [3, 3]


def test_the_session_of_an_agent_and_the_calls_beside_it(
    outputs: Runtime,
    provider: LoopbackProvider,
    proxy_to: Callable[..., Any],
    store_calls: Callable[[], None],
    tmp_path: Path,
) -> None:
    assert outputs.store is not None
    conversation = Conversation(tmp_path, "")
    proxy = proxy_to(provider.url)
    client = anthropic.Anthropic(
        api_key="k", base_url=f"{proxy.url}/anthropic", default_headers={"User-Agent": "claude-cli/2.1.0"}
    )
    metadata = {"user_id": f"user_{'ab' * 32}_account__session_{SESSION}"}
    title = {"role": "user", "content": "Write a title."}
    provider.document = conversation.replies[1] | {"id": "msg_01TitleOfTheSession000001"}
    client.messages.create(model=MODEL, max_tokens=9, messages=[title], metadata=metadata)
    conversation.run(client, provider, metadata=metadata)
    store_calls()
    (main,) = outputs.store.sessions(SessionFilter(text=f"proxy:{SESSION}"))
    assert (main.agent, main.turns, main.source) == ("claude-code", 3, "proxy")

    importer = open_store(outputs.store.address)
    import_paths(
        [conversation.transcript()], importer, playback=playback_settings(str), readers=all_readers(complete=True)
    )

    children = outputs.store.sessions(SessionFilter(parent_session_id=SESSION))
    assert [(row.session_id, row.turns) for row in outputs.store.sessions() if row not in children] == [
        (SESSION, 3)
    ]
    assert [row.turns for row in children] == [1]
    session = outputs.store.session(SESSION)
    assert session is not None
    assert session.subagent_cost_dollars == children[0].cost_dollars is not None


def test_codex_sends_its_tools_as_an_item_of_the_input(outputs: Runtime) -> None:
    """Newer models get `additional_tools` and no field `tools`: the call is still the session's."""
    tools = {"type": "additional_tools", "role": "developer", "tools": [{"type": "custom", "name": "exec"}]}
    question = {"type": "message", "role": "user", "content": "Hello."}
    request = {"model": "gpt-6-sol", "prompt_cache_key": UUID, "input": [tools, question]}
    reader = CallReader(outputs, Scope("agent"))
    reader.read(SentCall(1, "responses", "/v1/responses", "codex", "", [], [json.dumps(request).encode()], 1.8e9))
    reader.read(EndedCall(1, 200, [], [], 1.8e9, 1.0))

    assert outputs.flush()
    assert outputs.store is not None
    (row,) = outputs.store.sessions()
    assert (row.session_id, row.parent_session_id) == (f"proxy:{UUID}", None)
    added = [one.event.data for one in outputs.store.events(EventFilter(types=("block.added",)))]
    assert [data.block.tool_name for data in added if data.block.content_type == "tool_definition"] == ["exec"]


UUID = "019a0000-0000-7000-8000-00000000000b"


@pytest.mark.parametrize(
    ("program", "headers", "request_", "session"),
    [
        ("claude-code", {}, {"metadata": {"user_id": f"user_1_account_2_session_{UUID}"}}, UUID),
        ("claude-code", {}, {"metadata": {"user_id": json.dumps({"session_id": UUID})}}, UUID),
        ("claude-code", {"X-Claude-Code-Session-Id": UUID}, {}, UUID),
        ("claude-code", {}, {"metadata": {"user_id": "somebody"}}, ""),
        ("claude-code", {}, {"metadata": ["odd"]}, ""),
        ("codex", {"session_id": "root", "conversation_id": UUID}, {}, UUID),
        ("codex", {"session-id": "root", "thread-id": UUID}, {}, UUID),
        ("codex", {}, {"prompt_cache_key": UUID}, UUID),
        ("opencode", {"x-opencode-session": "ses_1"}, {}, "opencode:ses_1"),
        ("opencode", {}, {"prompt_cache_key": "ses_1"}, "opencode:ses_1"),
        ("qwen-code", {}, {"metadata": {"sessionId": UUID}}, UUID),
        ("gemini-cli", {"session_id": UUID}, {"prompt_cache_key": UUID}, ""),
        (None, {"session_id": UUID}, {"prompt_cache_key": UUID}, ""),
    ],
)
def test_the_session_that_a_request_states(
    program: str | None, headers: dict[str, str], request_: dict[str, Any], session: str
) -> None:
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]

    assert recorded_session(program, session_in_headers(program, raw).key, request_) == session


@pytest.mark.parametrize(
    ("program", "headers", "session"),
    [
        ("claude-code", {"X-Claude-Code-Session-Id": UUID, "x-claude-code-agent-id": "a1"}, f"{UUID}/agent-a1"),
        ("opencode", {"x-session-affinity": "ses_2", "x-parent-session-id": UUID}, "opencode:ses_2"),
        ("codex", {"session-id": UUID, "thread-id": "t2", "x-codex-parent-thread-id": UUID}, "codex:t2"),
    ],
)
def test_a_subagent_is_below_the_session_that_started_it(
    outputs: Runtime, program: str, headers: dict[str, str], session: str
) -> None:
    """Its calls name it in a header; the record has the id that the agent's own recording has."""
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    stated, parent = session_in_headers(program, raw)
    request = {"model": MODEL, "max_tokens": 9, "tools": [TOOL], "messages": [{"role": "user", "content": "Go."}]}
    reader = CallReader(outputs, Scope("agent"))
    body = [json.dumps(request).encode()]
    reader.read(SentCall(1, "anthropic", "/v1/messages", program, stated, [], body, 1.8e9, parent))
    reader.read(EndedCall(1, 200, [], [], 1.8e9, 1.0))

    assert outputs.flush()
    assert outputs.store is not None
    (row,) = outputs.store.sessions(SessionFilter(parent_session_id=f"proxy:{UUID}"))
    assert row.session_id == f"proxy:{session}"


SUMMARY = "This session is being continued from a previous conversation that ran out of context. Paris is sunny."


def test_a_compaction_between_two_runs_is_recorded_once(tmp_path: Path) -> None:
    """The second run starts with a summary that the first one did not have; the third starts with it again."""
    reply = {"id": "msg_01AbCdEfGhJkMnPqRsTu009", "type": "message", "role": "assistant", "model": MODEL,
             "content": [{"type": "text", "text": "Done."}], "stop_reason": "end_turn",
             "usage": {"input_tokens": 90_000, "output_tokens": 3}}  # fmt: skip
    compactions = []
    for number, texts in enumerate((["Paris?"], [SUMMARY, "Rome?"], [SUMMARY, "Rome?", "Done.", "Bern?"])):
        outputs = windowpane.start(port=0, store=tmp_path / "windowpane.db", notify=[])
        reader = CallReader(outputs, Scope("agent"))
        messages = [{"role": "assistant" if text == "Done." else "user", "content": text} for text in texts]
        body = json.dumps({"model": MODEL, "max_tokens": 9, "tools": [TOOL], "messages": messages}).encode()
        reader.read(SentCall(1, "anthropic", "/v1/messages", "claude-code", UUID, [], [body], 1.8e9 + number))
        usage = {"input_tokens": 90_000 if number == 0 else 20_000 + number, "output_tokens": 3}
        answer = json.dumps({**reply, "id": f"msg_01AbCdEfGhJkMnPqRsTu00{number}", "usage": usage}).encode()
        reader.read(EndedCall(1, 200, [], [answer], 1.8e9 + number, 1.0))
        assert outputs.flush()
        assert outputs.store is not None
        (row,) = outputs.store.sessions()
        compactions.append((row.turns, row.compressions))
        events = outputs.store.events(EventFilter(types=("compaction.measured",)))
        measured = [one.event.data for one in events]
        windowpane.stop()

    assert compactions == [(1, 0), (2, 1), (3, 1)]
    assert [(one.tokens_before, one.tokens_after) for one in measured if isinstance(one, CompactionMeasured)] == [
        (90_003, 20_001)
    ]


def test_a_header_without_a_session_names_no_subagent() -> None:
    assert session_in_headers("claude-code", [(b"x-claude-code-agent-id", b"a1")]) == ("", "")


def test_a_known_agent_without_any_id_is_reported_once(
    provider: LoopbackProvider,
    proxy_to: Callable[..., Any],
    store_calls: Callable[[], None],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(call_reader, "boundary", ErrorBoundary(logging.getLogger("windowpane")))
    proxy = proxy_to(provider.url)
    body = {"model": "qwen3", "messages": [{"role": "user", "content": "Hello"}]}
    for _ in range(2):
        httpx2.post(f"{proxy.url}/openai/chat/completions", json=body, headers={"User-Agent": "QwenCode/1.0"})
    store_calls()

    assert caplog.text.count("have no unique ids and the agent states no session") == 1
