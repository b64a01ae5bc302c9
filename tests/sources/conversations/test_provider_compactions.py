"""Compactions that a provider makes within a call, or on request, and the runs that one call is billed for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from windowpane.core.events import CompactionMeasured, ContentCompressed, PressureMeasured, TurnEnded

SUMMARY = "The user migrates user-service from axios to fetch; src/app.ts is done, src/api.ts is left."
BLOCK = {"type": "compaction", "content": SUMMARY}
TASK = {"role": "user", "content": "Migrate user-service from axios to fetch, file by file."}
GO_ON = {"role": "user", "content": "Go on."}


def run(kind: str, sent: int, received: int, **more: Any) -> dict[str, Any]:
    return {"type": kind, "input_tokens": sent, "output_tokens": received, **more}


def reply(*content: Any, sent: int = 0, received: int = 0, runs: list[Any] | None = None, **more: Any) -> Any:
    usage = {"input_tokens": sent, "output_tokens": received, "iterations": runs}
    return {"type": "message", "role": "assistant", "content": list(content), "usage": usage, **more}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


@pytest.fixture
def agent(agent_of: Callable[..., Any]) -> Any:
    return agent_of(shape="anthropic", limit=200_000)


def tokens_of(agent: Any) -> list[tuple[int, int]]:
    """Return the tokens sent and received of each run that is billed."""
    usages = [ended.usage for ended in agent.sink.of(TurnEnded)]
    return [(usage.input_total, usage.output_tokens) for usage in usages if usage is not None]


def test_a_call_that_pauses_after_the_compaction(agent: Any) -> None:
    task = {"role": "user", "content": "Migrate user-service, file by file. " * 4_000}
    agent.send([task], reply(text("app.ts is done."), sent=150_000, received=400))
    said = {"role": "assistant", "content": [text("app.ts is done.")]}
    paused = reply(BLOCK, runs=[run("compaction", 1_900, 300)], stop_reason="compaction")
    agent.send([task, said, GO_ON], paused)

    assert tokens_of(agent) == [(150_000, 400), (1_900, 300)]
    assert [kind for kind, _ in agent.window() if kind != "unattributed"] == ["summary"]
    finals = [one.used_tokens for one in agent.sink.of(PressureMeasured) if one.phase == "final"]
    assert finals[1] > 150_000  # the tokens of making the summary are not the size of the window

    agent.send([task, said, GO_ON, {"role": "assistant", "content": [BLOCK]}, GO_ON],
               reply(text("Now api.ts."), sent=3_000, received=90))  # fmt: skip

    assert [kind for kind, _ in agent.window() if kind != "unattributed"] == [
        "summary", "user_message", "assistant_response",
    ]  # fmt: skip
    (measured,) = agent.sink.of(CompactionMeasured)
    assert (measured.tokens_before, measured.tokens_after) == (150_000, 3_000)


def test_a_compaction_that_failed_is_billed_and_changes_nothing(agent: Any) -> None:
    agent.send([TASK], reply(text("app.ts is done."), sent=150_000, received=400))
    said = {"role": "assistant", "content": [text("app.ts is done.")]}
    failed = {"type": "compaction", "content": None}
    runs = [run("compaction", 150_400, 20), run("message", 150_410, 30)]
    agent.send([TASK, said, GO_ON], reply(failed, text("Now api.ts."), sent=150_410, received=30, runs=runs))

    assert tokens_of(agent)[1:] == [(150_400, 20), (150_410, 30)]
    assert [one.outcome for one in agent.sink.of(ContentCompressed)] == ["failed"]
    assert ("user_message", TASK["content"]) in agent.window()
    assert not agent.sink.of(CompactionMeasured)


def test_a_client_that_drops_the_summary_sends_everything_again(agent: Any) -> None:
    runs = [run("compaction", 150_400, 90), run("message", 3_000, 30)]
    agent.send([TASK], reply(BLOCK, text("Now api.ts."), sent=3_000, received=30, runs=runs))
    said = {"role": "assistant", "content": [text("Now api.ts.")]}
    agent.send([TASK, said, GO_ON], reply(text("Done."), sent=150_500, received=5))

    kinds = sorted(kind for kind, _ in agent.window() if kind != "unattributed")
    assert kinds == ["assistant_response", "assistant_response", "user_message", "user_message"]


def test_a_conversation_is_first_seen_after_its_compaction(agent: Any) -> None:
    earlier = {"role": "assistant", "content": [text("On it."), BLOCK, text("Now api.ts.")]}
    agent.send([TASK, earlier, GO_ON], reply(text("Done."), sent=3_000, received=5))

    assert [kind for kind, _ in agent.window() if kind != "unattributed"] == [
        "summary", "assistant_response", "user_message", "assistant_response",
    ]  # fmt: skip
    assert not agent.sink.of(ContentCompressed)


def test_a_compaction_that_was_not_observed_shows_in_the_next_call(agent: Any) -> None:
    agent.send([TASK], reply(text("app.ts is done."), sent=150_000, received=400))
    agent.send([{"role": "assistant", "content": [BLOCK]}, GO_ON], reply(text("Done."), sent=3_000, received=5))

    assert [one.outcome for one in agent.sink.of(ContentCompressed)] == ["accepted"]
    assert [(one.tokens_before, one.tokens_after) for one in agent.sink.of(CompactionMeasured)] == [
        (150_000, 3_000)
    ]


def test_several_runs_of_the_providers_tools_are_billed_and_the_last_is_the_window(agent: Any) -> None:
    """The sum of the runs, 223,140 tokens, is more than the window holds: a recording of Claude Code."""
    runs = [run("message", 109_982, 1_171), run("message", 113_158, 397)]
    agent.send([TASK], reply(text("Done."), sent=223_140, received=1_568, runs=runs))

    assert tokens_of(agent) == [(223_140, 1_568)]
    finals = [one.used_tokens for one in agent.sink.of(PressureMeasured) if one.phase == "final"]
    assert finals == [113_158]


def test_openai_compacts_on_request(agent_of: Callable[..., Any]) -> None:
    """`POST /responses/compact` returns the messages of the user and the summary, which are sent as they are."""
    agent = agent_of(shape="responses", limit=200_000)
    said = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "app.ts is done."}],
    }
    usage = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens": 400}
    agent.send([TASK], {"output": [said], "usage": {**usage, "input_tokens": 42_000}})
    question = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": TASK["content"]}]}
    summary = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA"}
    compacted = {
        "object": "response.compaction",
        "output": [question, summary],
        "usage": {**usage, "input_tokens": 42_897},
    }
    agent.send([TASK, said], compacted)
    agent.send([question, summary, GO_ON], {"output": [said], "usage": {**usage, "input_tokens": 2_500}})

    assert tokens_of(agent) == [(42_000, 400), (42_897, 400), (2_500, 400)]
    assert [(one.tokens_before, one.tokens_after) for one in agent.sink.of(CompactionMeasured)] == [
        (42_897, 2_500)
    ]
    assert [kind for kind, _ in agent.window() if kind != "unattributed"] == [
        "user_message", "summary", "user_message", "assistant_response",
    ]  # fmt: skip
