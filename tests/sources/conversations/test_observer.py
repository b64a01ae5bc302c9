"""Consecutive message lists become the facts that made the one of the other."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from windowpane.alerts.engine import AlertEngine
from windowpane.core.events import (
    BlockAdded,
    BlocksEvicted,
    ContentCompressed,
    ContentRegretted,
    FidelityEvaluated,
    OverflowDetected,
    PressureMeasured,
    ReplyDiscarded,
    TurnEnded,
    TurnStarted,
)
from windowpane.models.wire.calls import parse_call
from windowpane.testing import chat_reply

SYSTEM = {"role": "system", "content": "You are careful."}
TASK = {"role": "user", "content": "Migrate user-service from axios to fetch"}


def tool_call(call_id: str, arguments: str = '{"path":"src/app.ts"}') -> dict[str, Any]:
    function = {"name": "read_file", "arguments": arguments}
    return {"role": "assistant", "content": None, "tool_calls": [
        {"id": call_id, "type": "function", "function": function}
    ]}  # fmt: skip


def result(call_id: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def work(agent: Any, turns: int, *, size: int = 400) -> list[dict[str, Any]]:
    """An agent that reads *turns* files; returns its messages, ready for the next call."""
    messages = [SYSTEM, TASK]
    for number in range(turns):
        agent.send(messages, chat_reply(calls=[(f"call_{number}", "read_file", '{"path":"src/app.ts"}')]))
        messages += [tool_call(f"call_{number}"), result(f"call_{number}", f"file {number} " + "x" * size)]
    return messages


def test_sent_messages_become_the_window(agent: Any) -> None:
    agent.send([SYSTEM, TASK], chat_reply("On it.", input_tokens=50, output_tokens=3))

    assert [kind for kind, _ in agent.window()] == [
        "system_prompt", "user_message", "assistant_response", "unattributed"
    ]  # fmt: skip
    assert agent.sink.of(TurnEnded)[0].usage.input_total == 50


def test_only_new_messages_are_added(agent: Any) -> None:
    messages = work(agent, 3)
    agent.send(messages, chat_reply("Done."))
    added = [event.block.content_type for event in agent.sink.of(BlockAdded)]

    assert added.count("tool_call") == 3
    assert added.count("tool_result") == 3
    assert added.count("user_message") == 1
    assert not agent.sink.of(BlocksEvicted)


def test_a_turn_is_one_model_call(agent: Any) -> None:
    """Each call opens one turn, measured before it, at its end with everything it sent, and with the reply."""
    work(agent, 4)

    assert len(agent.sink.of(TurnStarted)) == 4
    phases = [measured.phase for measured in agent.sink.of(PressureMeasured)]
    assert phases == ["before", "final", "next"] * 4


def test_a_history_that_started_elsewhere_is_one_turn(agent: Any) -> None:
    messages = [SYSTEM, TASK, tool_call("a"), result("a", "x" * 4_000)]
    agent.send(messages, chat_reply("Done."))
    measured = agent.sink.of(PressureMeasured)

    assert [one.phase for one in measured] == ["before", "final", "next"]
    assert measured[0].used_tokens > 1_000


def test_rebuilt_messages_are_the_same(agent: Any) -> None:
    messages = work(agent, 3)
    before = len(agent.sink.of(BlockAdded))
    agent.send(copy.deepcopy(messages), chat_reply("Done."))

    assert len(agent.sink.of(BlockAdded)) == before + 2  # the last result and the reply
    assert not agent.sink.of(BlocksEvicted)


def test_a_cleared_result_is_an_eviction(agent: Any) -> None:
    messages = work(agent, 4)
    messages[3]["content"] = "[cleared]"
    agent.send(messages, chat_reply("Done."))
    [evicted] = agent.sink.of(BlocksEvicted)

    assert evicted.policy == "agent"
    assert [(block.form, block.reason) for block in evicted.blocks] == [("mask", "cleared by the agent")]
    assert evicted.tokens_freed > 50
    assert agent.window()[3] == ("placeholder", "[cleared]")


def test_a_cleared_result_that_is_sent_again_is_a_regret(agent: Any) -> None:
    messages = work(agent, 3)
    whole = messages[3]["content"]
    messages[3]["content"] = "[cleared]"
    agent.send(messages, chat_reply("Hm."))
    messages[3]["content"] = whole
    agent.send([*messages, {"role": "assistant", "content": "Hm."}], chat_reply("Done."))

    assert [regret.match for regret in agent.sink.of(ContentRegretted)] == ["same_digest"]


@pytest.mark.parametrize("dropped", [1, 2, 3])
def test_a_call_that_dropped_the_oldest_messages_repeats_the_others(agent: Any, dropped: int) -> None:
    sent = [{"role": "user", "content": f"{number} " + "x" * 100} for number in range(6)]
    agent.send([SYSTEM, *sent], chat_reply("On it."))

    call = parse_call("chat", {"model": "m", "messages": [SYSTEM, *sent[dropped:], TASK, TASK]})

    assert agent.observer.repeated_messages(call) == range(1, 7 - dropped)


def test_messages_that_are_no_longer_sent_are_dropped(agent: Any) -> None:
    messages = work(agent, 6)
    kept = [*messages[:2], *messages[6:]]
    agent.send(kept, chat_reply("Done."))
    [evicted] = agent.sink.of(BlocksEvicted)

    assert [block.form for block in evicted.blocks] == ["drop"] * 4
    assert {block.reason for block in evicted.blocks} == {"left out by the agent"}
    assert [kind for kind, _ in agent.window()].count("tool_result") == 4


def test_a_summary_that_replaces_history_is_a_compression(agent: Any) -> None:
    messages = work(agent, 6)
    summary = {"role": "user", "content": "Summary: read five files, all use axios.get"}
    agent.send([SYSTEM, TASK, summary, *messages[-2:]], chat_reply("Done."))
    [compressed] = agent.sink.of(ContentCompressed)

    assert (compressed.method, compressed.strategy, compressed.scope) == ("agent", "compaction", "content")
    assert compressed.ratio is not None
    assert compressed.ratio > 10
    assert len(agent.sink.of(FidelityEvaluated)) == 1
    assert ("summary", summary["content"]) in agent.window()


def test_a_summary_that_replaces_everything_keeps_the_new_request_new(agent: Any) -> None:
    work(agent, 6)
    summary = {"role": "user", "content": "Summary of the work so far: five files read."}
    request = {"role": "user", "content": "Now write the tests"}
    agent.send([SYSTEM, summary, request], chat_reply("Done."))

    assert len(agent.sink.of(ContentCompressed)) == 1
    assert [kind for kind, _ in agent.window()][:3] == ["system_prompt", "summary", "user_message"]


def test_a_message_that_grows_adds_only_the_new_part(agent: Any) -> None:
    story = "Observation 1. "
    for number in range(2, 6):
        agent.send([SYSTEM, {"role": "user", "content": story}], chat_reply(f"Thought {number}"))
        story += f"Thought {number}. Observation {number}: " + "y" * 400
    agent.send([SYSTEM, {"role": "user", "content": story}], chat_reply("Done."))
    texts = [event.block.text for event in agent.sink.of(BlockAdded)]

    assert sum(len(text) for text in texts if text and "y" in text) < len(story) * 1.2


def test_a_rewritten_system_prompt_is_not_growth(agent: Any) -> None:
    for number in range(4):
        agent.send(
            [{"role": "system", "content": f"It is {number} o'clock. " + "x" * 400}, TASK], chat_reply("Hm.")
        )

    assert [kind for kind, _ in agent.window()].count("system_prompt") == 1
    assert agent.tracker.gauge.growth.velocity is not None
    assert agent.tracker.gauge.growth.velocity < 20


def test_thinking_that_is_not_sent_back_is_removed(agent_of: Callable[..., Any]) -> None:
    agent = agent_of(shape="anthropic")
    use = {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a"}}
    reply = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "thinking", "thinking": "Let me see"}, use],
    }
    agent.send([TASK], reply, system="Be careful")
    answered = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "text"}]}
    agent.send(
        [TASK, {"role": "assistant", "content": [use]}, answered], chat_reply("Done."), system="Be careful"
    )

    assert [len(discarded.block_ids) for discarded in agent.sink.of(ReplyDiscarded)] == [1]
    assert not agent.sink.of(BlocksEvicted), "what was never sent cannot have been evicted"
    assert [kind for kind, _ in agent.window()].count("tool_call") == 1
    assert "thinking" not in dict(agent.window())


def test_a_cache_marker_changes_nothing(agent_of: Callable[..., Any]) -> None:
    agent = agent_of(shape="anthropic")
    marked = [{"type": "text", "text": TASK["content"], "cache_control": {"type": "ephemeral"}}]
    agent.send([{"role": "user", "content": marked}], chat_reply("Fine."))
    agent.send(
        [TASK, {"role": "assistant", "content": "Fine."}, {"role": "user", "content": "Go on"}],
        chat_reply("Done."),
    )

    assert not agent.sink.of(BlocksEvicted)
    assert [kind for kind, _ in agent.window()].count("user_message") == 2


def test_reformatted_arguments_are_the_same_call(agent: Any) -> None:
    agent.send([SYSTEM, TASK], chat_reply(calls=[("c1", "read_file", '{"path":"a.ts","line":1}')]))
    again = tool_call("c1", json.dumps({"path": "a.ts", "line": 1}, indent=1))
    agent.send([SYSTEM, TASK, again, result("c1", "text")], chat_reply("Done."))

    assert not agent.sink.of(BlocksEvicted)


def test_tools_are_counted_once_and_a_change_is_a_rewrite(agent: Any) -> None:
    tool = {"type": "function", "function": {"name": "read_file", "description": "Reads a file"}}
    agent.send([SYSTEM, TASK], chat_reply("Hm."), tools=[tool])
    agent.send([SYSTEM, TASK], chat_reply("Hm."), tools=[copy.deepcopy(tool)])
    definition = next(block.id for block in agent.tracker.window if block.content_type == "tool_definition")

    tool["function"]["description"] = "Reads a file, whole"  # type: ignore[index]
    agent.send([SYSTEM, TASK], chat_reply("Hm."), tools=[tool])
    assert [block.replaces for block in agent.tracker.window if block.content_type == "tool_definition"] == [
        definition
    ]
    assert not agent.sink.of(BlocksEvicted)


def test_two_roles_in_one_session_evict_nothing_and_do_not_thrash(agent: Any) -> None:
    """Every other call has another system prompt and other tools, as of a planner and a worker."""
    roles = [
        ({"role": "system", "content": f"You are the {name}."},
         [{"type": "function", "function": {"name": tool, "description": tool * 50}} for tool in tools])
        for name, tools in (("planner", ("plan", "ask")), ("worker", ("edit",)))
    ]  # fmt: skip
    messages = [TASK]
    for call in range(12):
        system, tools = roles[call % 2]
        agent.send([system, *messages], chat_reply(f"Step {call} is done."), tools=tools)
        messages += [
            {"role": "assistant", "content": f"Step {call} is done."},
            {"role": "user", "content": f"Go on {call}"},
        ]
    agent.tracker.flush()

    assert not agent.sink.of(BlocksEvicted)
    assert agent.sink.of(PressureMeasured)[-1].eviction_rate == 0
    assert not agent.sink.of(ContentRegretted)
    assert not {one.data.alert for one in AlertEngine().evaluate(agent.sink.events)} & {
        "eviction_rate", "thrashing"
    }  # fmt: skip


def test_a_refused_call_is_an_overflow_and_the_retry_the_same_turn(agent: Any) -> None:
    messages = work(agent, 3)
    agent.send(messages)
    agent.observer.record_failure(ValueError("maximum context length is 9000 tokens, you requested 12000"))
    agent.send([*messages[:2], *messages[4:]], chat_reply("Done."))

    [overflow] = agent.sink.of(OverflowDetected)
    assert (overflow.where, overflow.limit_tokens, overflow.used_tokens) == ("provider", 9_000, 12_000)
    assert overflow.outcome == "rejected"
    assert len(agent.sink.of(TurnStarted)) == 4


def test_a_call_without_an_observed_end_ends_with_the_next(agent: Any) -> None:
    agent.send([SYSTEM, TASK])
    agent.send([SYSTEM, TASK, {"role": "assistant", "content": "Half"}, TASK], chat_reply("Done."))

    assert [ended.usage for ended in agent.sink.of(TurnEnded)] == [None, None]


def test_a_stored_response_is_continued(agent_of: Callable[..., Any]) -> None:
    agent = agent_of(shape="responses")
    agent.send("Hello", {"output": [], "id": "resp_1"}, instructions="Be brief")
    item = {"type": "function_call_output", "call_id": "c", "output": "text"}
    agent.send([item], {"output": []}, previous_response_id="resp_1", instructions="Be brief")

    assert [kind for kind, _ in agent.window()] == ["system_prompt", "user_message", "tool_result"]


def test_content_that_the_provider_cleared_is_evicted_once(agent_of: Callable[..., Any]) -> None:
    agent = agent_of(shape="anthropic")
    messages: list[dict[str, Any]] = [TASK]
    for number, cleared in enumerate((0, 0, 2, 2, 3)):
        use = {"type": "tool_use", "id": f"t{number}", "name": "read", "input": {"path": f"{number}"}}
        edit = {"type": "clear_tool_uses_20250919", "cleared_tool_uses": cleared, "cleared_input_tokens": 99}
        message = {"type": "message", "role": "assistant", "content": [use]}
        agent.send(messages, message | {"context_management": {"applied_edits": [edit] if cleared else []}})
        answered = {"type": "tool_result", "tool_use_id": f"t{number}", "content": f"{number} " + "x" * 400}
        messages = [*messages, {"role": "assistant", "content": [use]}, {"role": "user", "content": [answered]}]
    agent.send(messages)
    agent.send([TASK, *messages[3:]])
    window = agent.window()
    evicted = agent.sink.of(BlocksEvicted)

    assert [(event.policy, len(event.blocks)) for event in evicted][:2] == [("provider", 2), ("provider", 1)]
    assert evicted[0].blocks[0].reason == "cleared by the provider (clear_tool_uses_20250919)"
    assert [block.content_type for event in evicted[2:] for block in event.blocks] == ["tool_call"]
    assert [kind for kind, _ in window].count("tool_result") == 2


def test_images_are_counted_flat(agent: Any) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 100_000}}
    agent.send([SYSTEM, {"role": "user", "content": [{"type": "text", "text": "What is this?"}, image]}])

    assert agent.tracker.window.tokens < 200
    assert ("media", None) in agent.window()


def cached(prompt: int, read: int) -> dict[str, Any]:
    """A reply whose usage states what the prompt cache served."""
    usage = {"prompt_tokens": prompt, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": read}}
    return {"choices": [{"message": {"role": "assistant", "content": "ok"}}], "usage": usage}


ASKED = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "ok"}]
SENT = [{"role": "system", "content": "s" * 4_000}] + [
    {"role": "user" if turn % 2 == 0 else "assistant", "content": str(turn) * 2_000} for turn in range(6)
]


@pytest.mark.parametrize(
    ("change", "cause", "text"),
    [
        (
            lambda messages: [messages[0], {"role": "user", "content": "new" * 500}, *messages[1:]],
            "added",
            "newnew",
        ),
        (lambda messages: [messages[0], messages[2], messages[1], *messages[3:]], "reordered", None),
        (lambda messages: [{"role": "system", "content": "t" * 3_000}, *messages[1:]], "edited", "ss"),
        (lambda messages: [messages[0], *messages[2:]], "removed", "000"),
    ],
)
def test_a_cache_break_names_the_change_of_the_messages(agent, change, cause: str, text: str | None) -> None:
    agent.send(SENT, cached(16_000, 0))
    agent.send([*SENT, {"role": "user", "content": "q"}], cached(16_001, 15_872))
    agent.send([*change(SENT), *ASKED, {"role": "user", "content": "r"}], cached(16_100, 0))
    agent.tracker.flush()

    (broken,) = [event.data for event in agent.sink.events if event.type == "cache.broken"]
    added = {event.data.block.id: event.data.block for event in agent.sink.events if event.type == "block.added"}
    assert (broken.cause, broken.cached_tokens) == (cause, 15_872)
    assert text is None or (added[broken.block_id].text or "").startswith(text)


def test_a_tool_that_is_added_later_breaks_the_cache(agent) -> None:
    tool = {"type": "function", "function": {"name": "read", "parameters": {}}}
    agent.send(SENT, cached(16_000, 0), tools=[tool])
    agent.send([*SENT, {"role": "user", "content": "q"}], cached(16_001, 15_872), tools=[tool])
    other = {"type": "function", "function": {"name": "write", "parameters": {}}}
    agent.send([*SENT, *ASKED, {"role": "user", "content": "r"}], cached(16_100, 0), tools=[tool, other])
    agent.tracker.flush()

    (broken,) = [event.data for event in agent.sink.events if event.type == "cache.broken"]
    assert broken.cause == "added"
