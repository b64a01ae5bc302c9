"""Reports of calls that come several times, late, in pieces or without a call around them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from windowpane.sources.telemetry.assembly import WAIT_SECONDS, CallAssembly
from windowpane.sources.telemetry.compactions import InferredCompactions
from windowpane.sources.telemetry.raw_bodies import ReadFile
from windowpane.sources.telemetry.records import LogRecord, Span
from windowpane.sources.telemetry.reported_call import Assembled, AssembledCall, AssembledCompaction
from windowpane.sources.telemetry.session_keys import SessionKeys

TRACE = "a" * 32
START = 1_700_000_000.0


def span(
    span_id: str,
    attributes: dict[str, Any] | None = None,
    *,
    parent: str = "",
    start: float = 0.0,
    seconds: float = 1.0,
    scope: str = "one",
    trace: str = TRACE,
    service: str = "app",
) -> Span:
    return Span(
        trace, span_id, parent, span_id, scope, START + start, START + start + seconds, attributes or {},
        {"service.name": service},
    )  # fmt: skip


def call(tokens: int = 100, **more: Any) -> dict[str, Any]:
    return {
        "gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o", "gen_ai.usage.input_tokens": tokens,
        "gen_ai.usage.output_tokens": 5, **{name.replace("__", "."): value for name, value in more.items()},
    }  # fmt: skip


def inference(tokens: int = 100) -> dict[str, Any]:
    return {"openinference.span.kind": "LLM", "llm.model_name": "gpt-4o", "llm.token_count.prompt": tokens,
            "llm.token_count.completion": 5, "llm.input_messages.0.message.role": "user",
            "llm.input_messages.0.message.content": "Hello"}  # fmt: skip


def event(name: str, attributes: dict[str, Any], *, at: float = 1.0, service: str = "") -> LogRecord:
    return LogRecord(name, START + at, "events", attributes, {"service.name": service} if service else {})


def assemble(*items: Span | LogRecord) -> list[Assembled]:
    assembly = CallAssembly()
    for item in items:
        assembly.add(item, 0.0)
    return assembly.due(0.0, everything=True)


def tokens(calls: list[Assembled]) -> list[int]:
    return [one.call.usage.input_total for one in calls if isinstance(one, AssembledCall) and one.call.usage]


def test_of_nested_spans_the_innermost_is_the_call() -> None:
    outer = span("o", call(gen_ai__conversation__id="c"), seconds=3)
    middle = span("m", inference(), parent="h", start=0.5, scope="two")
    http = span("h", parent="o", start=0.2, seconds=2.5, scope="http")
    (one,) = assemble(middle, outer, http, span("i", call(gen_ai__response__id="r"), parent="m", start=0.6))

    assert isinstance(one, AssembledCall)
    assert (one.span_id, one.call.response_id, one.call.conversation) == ("i", "r", "c")
    assert one.call.messages is not None


def test_an_outer_span_of_several_calls_is_their_sum() -> None:
    outer = span("o", call(300, gen_ai__input__messages='[{"role": "user", "content": "Both"}]'), seconds=9)
    calls = assemble(outer, span("x", call(100), parent="o"), span("y", call(200), parent="o", start=2))

    assert tokens(calls) == [100, 200]
    assert [one.call.messages for one in calls if isinstance(one, AssembledCall)] == [None, None]


def test_instrumentations_that_are_not_nested_report_one_call() -> None:
    beside = [span("x", inference(), seconds=2), span("y", call(), start=0.2, scope="two")]
    apart = [
        span("x", call(gen_ai__response__id="resp_1"), seconds=2),
        span("y", call(gen_ai__response__id="resp_1"), start=0.2, scope="two", trace="b" * 32),
    ]

    assert tokens(assemble(*beside)) == tokens(assemble(*apart)) == [100]


@pytest.mark.parametrize(
    "other",
    [
        span("y", call(), start=0.2),  # the same instrumentation
        span("y", call(101), start=0.2, scope="two"),  # another usage
        span("y", call(), start=1.5, scope="two"),  # not within the first
        span("y", call(), start=0.2, scope="two", trace="b" * 32),  # nothing in common
    ],
)
def test_parallel_calls_stay_apart(other: Span) -> None:
    assert len(assemble(span("x", call(), seconds=2), other)) == 2


def test_a_report_is_awaited_and_the_order_is_that_of_the_starts() -> None:
    assembly = CallAssembly()
    assembly.add(span("b", call(200), start=5), 0.0)
    assert assembly.due(WAIT_SECONDS - 0.1) == []
    assembly.add(span("a", call(100)), WAIT_SECONDS - 0.05)

    assert tokens(assembly.due(WAIT_SECONDS)) == [100, 200]
    assert len(assembly) == 0


@pytest.mark.parametrize("order", ["ac", "ca"])
def test_a_call_waits_for_no_later_one_of_its_trace(order: str) -> None:
    parts = {name: span(name, call(tokens), start=start) for name, tokens, start in (("a", 1, 0), ("c", 3, 6))}
    assembly = CallAssembly()
    for name in order:
        assembly.add(parts[name], 0.0)
    for late in (span("b", call(2), start=3), span("d", call(4), start=9)):
        assembly.add(late, WAIT_SECONDS - 1)

    assert tokens(assembly.due(WAIT_SECONDS, everything=False)) == [1, 2, 3]
    assert tokens(assembly.due(WAIT_SECONDS)) == []
    assert tokens(assembly.due(2 * WAIT_SECONDS)) == [4]


def test_an_outer_span_that_comes_after_its_call_was_released_does_not_count_it_again() -> None:
    assembly = CallAssembly()
    assembly.add(span("i", call(), parent="h"), 0.0)
    assert len(assembly.due(WAIT_SECONDS)) == 1
    assembly.add(span("h", parent="o", seconds=2), 11.0)
    assembly.add(span("o", call(), seconds=3), 12.0)

    assert assembly.due(99.0) == []


def test_a_report_beside_a_released_call_does_not_count_it_again() -> None:
    assembly = CallAssembly()
    assembly.add(span("x", call(), seconds=2), 0.0)
    assert len(assembly.due(WAIT_SECONDS)) == 1
    assembly.add(span("y", inference(), start=0.2, scope="two"), 60.0)

    assert assembly.due(99.0) == []


def test_a_span_that_is_sent_again_counts_once() -> None:
    assert tokens(assemble(span("x", call()), span("x", call()))) == [100]


def test_agents_around_a_call() -> None:
    root = span("r", {"gen_ai.agent.name": "planner", "gen_ai.operation.name": "invoke_agent"}, seconds=9)
    tool = span("t", {"gen_ai.operation.name": "execute_tool"}, parent="r", seconds=5)
    inner = span("s", {"gen_ai.agent.name": "searcher"}, parent="t", seconds=4)
    first, second = assemble(
        root, tool, inner, span("x", call(), parent="r"), span("y", call(), parent="s", start=1)
    )

    assert isinstance(first, AssembledCall)
    assert isinstance(second, AssembledCall)
    assert (first.agent, first.enclosing_agent, first.outer_agent) == ("planner", "r", "")
    assert (second.agent, second.enclosing_agent, second.outer_agent) == ("searcher", "s", "r")


def test_an_event_without_a_span_is_a_call() -> None:
    details = event("gen_ai.client.inference.operation.details", call(), service="app")
    (one,) = assemble(details)

    assert tokens([one]) == [100]
    assert isinstance(one, AssembledCall)
    assert one.agent == "app"


CLAUDE = {"session.id": "s-1", "model": "claude-sonnet-4-5", "input_tokens": "12", "output_tokens": "340",
        "cache_read_tokens": "50000", "cache_creation_tokens": "900", "cost_usd": "0.031", "duration_ms": "4000",
          "request_id": "req_1", "query_source": "repl_main_thread"}  # fmt: skip
CODEX = {"conversation.id": "s-1", "model": "gpt-5.1-codex", "event.kind": "response.completed",
         "input_token_count": "50912", "output_token_count": "340", "cached_token_count": "50000",
         "reasoning_token_count": "100", "tool_token_count": "51252"}  # fmt: skip
GEMINI = {"session.id": "s-1", "model": "gemini-2.5-pro", "input_token_count": 50_912, "output_token_count": 240,
          "cached_content_token_count": 50_000, "thoughts_token_count": 100, "tool_token_count": 0,
          "total_token_count": 51_252, "duration_ms": 4_000}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "attributes", "agent"),
    [
        ("claude_code.api_request", CLAUDE, "claude-code"),
        ("codex.sse_event", CODEX, "codex"),
        ("gemini_cli.api_response", GEMINI, "gemini-cli"),
        ("qwen-code.api_response", GEMINI, "qwen-code"),
    ],
)
def test_events_of_coding_agents(name: str, attributes: dict[str, Any], agent: str) -> None:
    (one,) = assemble(event(name, attributes, at=4.0))

    assert isinstance(one, AssembledCall)
    usage = one.call.usage
    assert usage is not None
    assert (usage.input_total, usage.output_tokens, usage.cache_read_tokens) == (50_912, 340, 50_000)
    assert (one.call.conversation, one.agent) == ("s-1", agent)


@pytest.mark.parametrize(
    ("name", "stated", "key"),
    [
        ("claude_code.api_request", {**CLAUDE, "session.id": "s-1", "query_source": "sdk"}, ("s-1", None)),
        ("gemini_cli.api_response", {"role": "main", "prompt_id": "s-1########0"}, ("s-1", None)),
        ("gemini_cli.api_response", {"role": "subagent", "prompt_id": "b0f1#2"}, ("b0f1", "s-1")),
        ("gemini_cli.api_response", {"role": "utility_compressor"}, ("s-1/utility_compressor", "s-1")),
        ("qwen-code.api_response", {"prompt_id": "s-1########0/automatic/7"}, ("s-1", None)),
        (
            "qwen-code.api_response",
            {"prompt_id": "s-1#Explore-c1#0", "subagent_name": "Explore"},
            ("s-1/Explore-c1", "s-1"),
        ),
        ("qwen-code.api_response", {"prompt_id": "compress-1795691696134"}, ("s-1/compress", "s-1")),
    ],
)
def test_calls_beside_the_conversation_have_sessions_below_it(
    name: str, stated: dict[str, Any], key: tuple[str, str | None]
) -> None:
    """That of a sub-agent has the id which its own recording has."""
    (one,) = assemble(event(name, {**GEMINI, **stated}))

    assert isinstance(one, AssembledCall)
    assert SessionKeys().of(one) == key


@pytest.mark.parametrize(
    ("stated", "key"),
    [
        ({"ai.prompt.tools": ['{"type":"function","name":"bash"}']}, ("ses_1", None)),
        ({}, ("ses_1/side", "ses_1")),
        (
            {"ai.prompt.tools": ['{"type":"function","name":"bash"}'],
             "ai.request.headers.x-parent-session-id": "ses_0"},
            ("ses_1", "ses_0"),
        ),
    ],
)  # fmt: skip
def test_a_call_of_opencode_is_in_the_session_of_its_headers(
    stated: dict[str, Any], key: tuple[str, str | None]
) -> None:
    attributes = {
        "ai.operationId": "ai.streamText.doStream", "ai.telemetry.functionId": "session.llm",
        "ai.telemetry.metadata.sessionId": "ses_1", "ai.request.headers.User-Agent": "opencode/1.18.33",
        "ai.model.id": "claude-sonnet-5", "ai.usage.inputTokens": 7_688, "ai.usage.outputTokens": 22, **stated,
    }  # fmt: skip
    (one,) = assemble(span("call", attributes))

    assert isinstance(one, AssembledCall)
    assert (SessionKeys().of(one), one.agent) == (key, "opencode")


def test_a_spawned_conversation_of_codex_is_below_the_one_that_spawned_it() -> None:
    spawn = {"kind": "spawn", "sender_thread_id": "s-1", "receiver_thread_id": "s-2", "content": "Count."}
    (one,) = assemble(
        event("codex.agent_communication", spawn),
        event("codex.agent_communication", {"state": "receive"}),
        event("codex.sse_event", {**CODEX, "conversation.id": "s-2"}, at=4.0),
    )

    assert isinstance(one, AssembledCall)
    assert SessionKeys().of(one) == ("s-2", "s-1")


@pytest.mark.parametrize(("limit", "compactions"), [("26000", [(26_057, 16_141)]), ("90000", []), (None, [])])
def test_a_smaller_total_after_the_level_of_codex_is_a_compaction(
    limit: str | None, compactions: list[tuple[int, int]]
) -> None:
    """Codex has no event for it."""
    totals = (25_976, 26_057, 16_141)
    calls = assemble(
        event("codex.conversation_starts", {"conversation.id": "s-1", "auto_compact_token_limit": limit}),
        *(
            event("codex.sse_event", {**CODEX, "input_token_count": str(total), "cached_token_count": "0"}, at=at)
            for at, total in enumerate(totals)
        ),
    )
    inferred = InferredCompactions()
    found = [inferred.before(one) for one in calls if isinstance(one, AssembledCall)]

    assert [(one.compaction.tokens_before, one.compaction.tokens_after) for one in found if one] == compactions


def test_a_report_that_names_the_sub_agent_is_more_exact_than_one_of_the_session() -> None:
    """Gemini CLI reports each call by an event and by a span; only the event names the sub-agent."""
    stated = call(50_912, gen_ai__conversation__id="s-1", gen_ai__response__id="r") | {
        "gen_ai.usage.output_tokens": 340
    }
    (one,) = assemble(
        event(
            "gemini_cli.api_response",
            {**GEMINI, "role": "subagent", "prompt_id": "b0f1#0", "response_id": "r"},
            at=4.0,
        ),
        span("call", stated, start=0.0, seconds=4.0),
    )

    assert isinstance(one, AssembledCall)
    assert SessionKeys().of(one) == ("b0f1", "s-1")


def test_a_bare_event_name_belongs_to_the_program_of_its_resource() -> None:
    (one,) = assemble(event("api_request", CLAUDE, service="claude-code"))

    assert tokens([one]) == [50_912]


@pytest.mark.parametrize("kind", ["response.created", "response.output_item.done"])
def test_the_other_events_of_a_call_do_not_count(kind: str) -> None:
    assert assemble(
        event("codex.api_request", {"conversation.id": "s-1", "duration_ms": 300}),
        event("codex.sse_event", {**CODEX, "event.kind": kind, "input_token_count": None}),
    ) == []  # fmt: skip


def test_an_event_and_a_span_of_claude_code_are_one_call() -> None:
    reported = {name: CLAUDE[name] for name in CLAUDE if name not in ("session.id", "cost_usd", "query_source")}
    traced = Span(TRACE, "x", "", "claude_code.llm_request", "tracing", START, START + 4.02, reported, {})
    (one,) = assemble(event("claude_code.api_request", CLAUDE, at=4.01), traced)

    assert isinstance(one, AssembledCall)
    assert (one.call.conversation, one.call.cost_dollars) == ("s-1", 0.031)


def test_a_sub_agent_of_claude_code_is_a_part_of_its_session() -> None:
    main, sub = assemble(
        event("claude_code.api_request", CLAUDE, at=4.0),
        event("claude_code.api_request", {**CLAUDE, "query_source": "Explore", "request_id": "req_2"}, at=9.0),
    )

    assert isinstance(main, AssembledCall)
    assert isinstance(sub, AssembledCall)
    assert (main.call.part, sub.call.part) == ("", "Explore")


@pytest.mark.parametrize(
    ("name", "attributes", "succeeded"),
    [
        ("claude_code.compaction", {"trigger": "auto", "pre_tokens": 150_000, "post_tokens": 30_000}, True),
        ("claude_code.compaction", {"pre_tokens": 150_000, "post_tokens": 30_000, "success": "false"}, False),
        ("gemini_cli.chat_compression", {"tokens_before": 150_000, "tokens_after": 30_000}, True),
        ("qwen-code.chat_compression", {"tokens_before": 150_000, "tokens_after": 30_000}, True),
    ],
)
def test_compactions_of_coding_agents(name: str, attributes: dict[str, Any], *, succeeded: bool) -> None:
    (one,) = assemble(event(name, {**attributes, "session.id": "s-1"}))

    assert isinstance(one, AssembledCompaction)
    stated = one.compaction
    assert (stated.tokens_before, stated.tokens_after, stated.succeeded) == (150_000, 30_000, succeeded)
    assert one.conversation == "s-1"


BODY_REQUEST = {
    "model": "claude-sonnet-4-5", "system": [{"type": "text", "text": "You are Claude Code."}],
    "tools": [{"name": "Bash", "input_schema": {"type": "object"}}],
    "messages": [{"role": "user", "content": [{"type": "text", "text": "List the files."}]}],
}  # fmt: skip
BODY_RESPONSE = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
    "content": [{"type": "thinking", "thinking": "<REDACTED>"}, {"type": "text", "text": "There are two."}],
}  # fmt: skip
PART = {"session.id": "s-1", "query_source": "repl_main_thread", "model": "claude-sonnet-4-5"}


def bodies(request: dict[str, Any], response: dict[str, Any], read_file: ReadFile | None = None) -> AssembledCall:
    """Return the call that its usage, which comes first, and the events of its bodies make."""
    assembly = CallAssembly() if read_file is None else CallAssembly(read_file=read_file)
    for name, attributes in (
        ("api_request_body", {**PART, **request}),
        ("api_request", CLAUDE),
        ("api_response_body", {**PART, "request_id": "req_1", **response}),
    ):
        assembly.add(event(f"claude_code.{name}", attributes, at=4.0), 0.0)
    (one,) = assembly.due(0.0, everything=True)
    assert isinstance(one, AssembledCall)
    return one


def test_the_raw_bodies_of_claude_code_belong_to_the_call_that_has_the_usage() -> None:
    one = bodies({"body": json.dumps(BODY_REQUEST)}, {"body": json.dumps(BODY_RESPONSE)}).call

    assert (one.messages, one.system, one.tools) == tuple(
        BODY_REQUEST[name] for name in ("messages", "system", "tools")
    )
    assert [(part.kind, part.text) for part in one.reply or ()] == [("assistant_response", "There are two.")]
    assert one.usage is not None
    assert (one.usage.input_total, one.cost_dollars) == (50_912, 0.031)


def test_raw_bodies_are_read_from_the_files_that_their_events_name() -> None:
    files = {"/tmp/u.request.json": json.dumps(BODY_REQUEST), "/tmp/r.response.json": json.dumps(BODY_RESPONSE)}
    one = bodies({"body_ref": "/tmp/u.request.json"}, {"body_ref": "/tmp/r.response.json"}, files.get).call

    assert one.messages == BODY_REQUEST["messages"]
    assert [part.text for part in one.reply or ()] == ["There are two."]


def test_a_raw_body_that_was_cut_is_not_read() -> None:
    cut = json.dumps(BODY_REQUEST)[:60]
    one = bodies({"body": cut, "body_truncated": "true"}, {"body": json.dumps(BODY_RESPONSE)}).call

    assert one.messages is None
    assert [part.text for part in one.reply or ()] == ["There are two."]


@pytest.mark.parametrize(("response", "expected"), [("There are two.", ["There are two."]), ("<REDACTED>", [])])
def test_a_reply_of_claude_code_without_its_body(response: str, expected: list[str]) -> None:
    said = {**PART, "request_id": "req_1", "response": response}
    (one,) = assemble(
        event("claude_code.assistant_response", said, at=4.0), event("claude_code.api_request", CLAUDE, at=4.0)
    )

    assert isinstance(one, AssembledCall)
    assert [part.text for part in one.call.reply or ()] == expected
