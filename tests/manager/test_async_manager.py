"""The manager on an event loop, and language models that write summaries, sync and async."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from dataclasses import replace
from typing import Any

from message_rules import anthropic_faults, openai_faults

from windowpane.agents.managers import AsyncContextWindowManager, ContextWindowManager
from windowpane.core.events import BlocksEvicted, ContentCompressed
from windowpane.manager.plans.summary import HEADINGS
from windowpane.testing import MemoryArchive, RecordingSink, ScriptedModel, chat_reply, in_memory_dependencies

SUMMARY = f"{HEADINGS['state']}\n- next: auth.ts"


def faithful(user: str) -> str:
    """The summary of a model that keeps every decision it is shown."""
    decisions = re.findall(r"We decided plan_\d+ because of reason_\d+", user)
    questions = re.findall(r"Question \d+: (\w+ \w+ \w+)", user)
    lines = [HEADINGS["decisions"], *(f"- {decision}" for decision in decisions), SUMMARY]
    return "\n".join([*lines, *(f"- asked: {question}" for question in questions)])


class FaithfulModel(ScriptedModel):
    def __init__(self) -> None:
        super().__init__([""])

    def __call__(self, system: str, user: str) -> str:
        super().__call__(system, user)
        return faithful(user)


def talk(window: Any, n: int) -> None:
    window.add_user(f"Question {n}: " + f"word{n} " * 150)


def reply(n: int) -> dict[str, Any]:
    return chat_reply(f"We decided plan_{n} because of reason_{n}. " + f"talk{n} " * 260)


def test_an_async_loop_is_managed_like_a_sync_one() -> None:
    async def on_a_loop(sink: RecordingSink) -> None:
        async with AsyncContextWindowManager(
            agent="a", model="m", limit_tokens=16_384, dependencies=in_memory_dependencies(sink)
        ) as window:
            for n in range(40):
                talk(window, n)
                await window.on_turn_start()
                await window.on_turn_end(chat_reply(None, calls=[(f"c{n}", "run", "{}")]))
                await window.on_tool_result("run", f"found {n} " + "out " * 300, f"c{n}")
                assert openai_faults(window.messages()) == []

    def on_a_thread(sink: RecordingSink) -> None:
        with ContextWindowManager(
            agent="a", model="m", limit_tokens=16_384, dependencies=in_memory_dependencies(sink)
        ) as window:
            for n in range(40):
                talk(window, n)
                window.on_turn_start()
                window.on_turn_end(chat_reply(None, calls=[(f"c{n}", "run", "{}")]))
                window.on_tool_result("run", f"found {n} " + "out " * 300, f"c{n}")

    one, other = RecordingSink(), RecordingSink()
    asyncio.run(on_a_loop(one))
    on_a_thread(other)

    assert one.of(BlocksEvicted) == other.of(BlocksEvicted) != []
    assert one.of(ContentCompressed) == other.of(ContentCompressed)


def test_an_async_model_writes_the_summary() -> None:
    sink = RecordingSink()

    async def model(system: str, user: str) -> str:
        await asyncio.sleep(0)
        return faithful(user)

    async def run() -> None:
        dependencies = replace(in_memory_dependencies(sink), model=model)
        async with AsyncContextWindowManager(
            agent="a", model="m", limit_tokens=16_384, dependencies=dependencies
        ) as window:
            for n in range(40):
                talk(window, n)
                await window.on_turn_start()
                await window.on_turn_end(reply(n))

    asyncio.run(run())
    accepted = [event for event in sink.of(ContentCompressed) if event.outcome == "accepted"]

    assert accepted
    assert accepted[0].model_calls == 1


def with_model(model: ScriptedModel) -> tuple[RecordingSink, list[Any]]:
    sink = RecordingSink()
    with ContextWindowManager(
        agent="a",
        model="m",
        limit_tokens=16_384,
        task_goal="Migrate",
        dependencies=in_memory_dependencies(sink, model=model),
    ) as window:
        for n in range(40):
            talk(window, n)
            window.on_turn_start()
            window.on_turn_end(reply(n))
        messages = window.messages()
        assert openai_faults(messages) == []
        assert anthropic_faults(window.messages("anthropic").messages) == []
    return sink, messages


def test_a_model_s_summary_gets_the_goal_word_for_word() -> None:
    """The model is not trusted with the goal: it is put in by us."""
    sink, messages = with_model(FaithfulModel())
    accepted = [event for event in sink.of(ContentCompressed) if event.outcome == "accepted"]

    assert accepted
    assert any(event.method == "FaithfulModel" for event in accepted)
    assert f"{HEADINGS['goal']}\\nMigrate" in json.dumps(messages, ensure_ascii=False)


def test_a_useless_answer_is_replaced() -> None:
    model = ScriptedModel([""])
    sink, _ = with_model(model)
    accepted = [event for event in sink.of(ContentCompressed) if event.outcome == "accepted"]

    assert accepted[0].method == "extractive"
    assert accepted[0].model_calls == 1
    assert accepted[0].reason == "empty"


def test_a_model_that_fails_never_reaches_the_agent() -> None:
    sink, _ = with_model(ScriptedModel([RuntimeError("quota")]))
    accepted = [event for event in sink.of(ContentCompressed) if event.outcome == "accepted"]

    assert accepted[0].method == "extractive"
    assert "RuntimeError" in accepted[0].reason


def test_large_tool_results_are_summarized_if_masking_is_not_enough() -> None:
    sink = RecordingSink()
    dependencies = in_memory_dependencies(sink, model=ScriptedModel(["Found value_of_interest in src/deep.py"]))
    with ContextWindowManager(agent="a", model="m", limit_tokens=32_768, dependencies=dependencies) as window:
        window.add_user("go")
        for n in range(6):
            window.on_turn_start()
            window.on_turn_end(chat_reply(None, calls=[(f"c{n}", "run", "{}")]))
            window.on_tool_result("run", f"value_of_interest in src/deep.py {n} " * 900, f"c{n}")
        window.on_turn_start()
        assert openai_faults(window.messages()) == []
        assert "[summary; original: wp:" in json.dumps(window.messages())

    summarized = [e for e in sink.of(ContentCompressed) if e.strategy == "tool_result_summarization"]
    accepted = [event for event in summarized if event.outcome == "accepted"]
    assert len(accepted) > 1
    assert all((event.ratio or 0) > 10 for event in accepted)
    assert {event.reason for event in summarized if event not in accepted} <= {"empty"}, "one answer to two texts"


def test_a_model_that_is_down_is_not_called_for_every_result() -> None:
    sink = RecordingSink()
    model = ScriptedModel([RuntimeError("down")])
    dependencies = in_memory_dependencies(sink, model=model)
    with ContextWindowManager(agent="a", model="m", limit_tokens=32_768, dependencies=dependencies) as window:
        window.add_user("go")
        for n in range(8):
            before = len(model.asked)
            window.on_turn_start()
            assert len(model.asked) - before <= 3
            window.on_turn_end(chat_reply(None, calls=[(f"c{n}", "run", "{}")]))
            window.on_tool_result("run", f"row_{n} of src/deep.py " * 1_460, f"c{n}")

    assert model.asked


def test_content_added_while_a_summary_is_written_survives() -> None:
    sink = RecordingSink()
    arrived = threading.Event()

    class SlowModel(FaithfulModel):
        def __call__(self, system: str, user: str) -> str:
            if not arrived.is_set():
                arrived.set()
                late = threading.Thread(target=window.add_memory, args=("LATE-FACT from another thread",))
                late.start()
                late.join(10)
                assert not late.is_alive(), "the lock was held across the model call"
            return super().__call__(system, user)

    dependencies = in_memory_dependencies(sink, model=SlowModel())
    window = ContextWindowManager(agent="a", model="m", limit_tokens=16_384, dependencies=dependencies)
    for n in range(40):
        talk(window, n)
        window.on_turn_start()
        if arrived.is_set():
            break
        window.on_turn_end(reply(n))

    assert arrived.is_set()
    assert "LATE-FACT" in json.dumps(window.messages())
    assert openai_faults(window.messages()) == []


def test_a_plan_made_for_an_older_window_is_made_again() -> None:
    sink = RecordingSink()

    class Interrupting(MemoryArchive):
        def put(self, session_id: str, handle: str, text: str) -> None:
            if not self.texts:
                self.texts["first"] = ""
                late = threading.Thread(target=window.add_user, args=("WAIT, also do this",))
                late.start()
                late.join(10)
                assert not late.is_alive(), "the lock was held across the archive"
            super().put(session_id, handle, text)

    dependencies = replace(in_memory_dependencies(sink), archive=Interrupting())
    window = ContextWindowManager(agent="a", model="m", limit_tokens=100_000, dependencies=dependencies)
    window.add_user("go")
    for n in range(14):
        window.on_turn_start()
        window.on_turn_end(chat_reply(None, calls=[(f"c{n}", "run", "{}")]))
        window.on_tool_result("run", f"r{n} " * 8_000, f"c{n}")
    window.on_turn_start()
    window.flush()

    assert "WAIT, also do this" in json.dumps(window.messages())
    assert sink.of(BlocksEvicted)
    assert openai_faults(window.messages()) == []
