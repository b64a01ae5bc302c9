"""Background work between turns: who waits for it, what it meets, and its end with the session."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from message_rules import openai_faults

from windowpane.agents.managers import AsyncContextWindowManager, ContextWindowManager
from windowpane.core.events import BlocksEvicted, ContentCompressed, SessionEnded
from windowpane.manager.settings import DEFAULT_CASCADE, EngineSettings
from windowpane.manager.step import NOT_DONE, Step
from windowpane.testing import RecordingSink, chat_reply, in_memory_dependencies

SUMMARY = "## State and next steps\n- " + "; ".join(f"plan_{n} because of reason_{n}" for n in range(60))


class Writer:
    """A model that writes its summary on command; records on which hook's thread it was awaited."""

    def __init__(self) -> None:
        self.began, self.go_on = threading.Event(), threading.Event()
        self.calls = 0

    def __call__(self, system: str, user: str) -> str:
        self.calls += 1
        self.began.set()
        assert self.go_on.wait(30)
        return SUMMARY


class AsyncWriter:
    """`Writer` on an event loop."""

    def __init__(self) -> None:
        self.began, self.go_on = asyncio.Event(), asyncio.Event()

    async def __call__(self, system: str, user: str) -> str:
        self.began.set()
        await self.go_on.wait()
        return SUMMARY


def options(sink: RecordingSink, model: Callable[..., Any] | None, **more: Any) -> dict[str, Any]:
    dependencies = replace(in_memory_dependencies(sink), model=model)
    return {
        "agent": "a",
        "model": "m",
        "limit_tokens": 16_384,
        "dependencies": dependencies,
        "background": True,
        **more,
    }


def question(n: int) -> str:
    return f"Question {n}: " + f"word{n} " * 40


def answer(n: int, size: int = 120) -> dict[str, Any]:
    return chat_reply(f"We decided plan_{n} because of reason_{n}. " + f"talk{n} " * size)


def turn(window: ContextWindowManager, n: int, *, size: int = 120) -> None:
    window.add_user(question(n))
    window.on_turn_start()
    window.on_turn_end(answer(n, size))


def until_writing(window: ContextWindowManager, writer: Writer) -> int:
    """Turns until a summary is being written; how many."""
    for n in range(60):
        if writer.began.wait(0.2 if (window.status().utilization or 0) > 0.55 else 0):
            return n
        turn(window, n)
    raise AssertionError("the window is full and nothing was begun")


async def until_writing_async(window: AsyncContextWindowManager, writer: AsyncWriter) -> None:
    for n in range(60):
        await asyncio.sleep(0.01)
        if writer.began.is_set():
            return
        window.add_user(question(n))
        await window.on_turn_start()
        await window.on_turn_end(answer(n))
    raise AssertionError("the window is full and nothing was begun")


def sent_json(window: Any) -> str:
    return json.dumps(window.messages(), ensure_ascii=False)


def compressions(sink: RecordingSink) -> list[tuple[str, str, str]]:
    return [(event.strategy, event.trigger, event.outcome) for event in sink.of(ContentCompressed)]


def after_the_end(sink: RecordingSink) -> list[str]:
    """Types of the events that come after the session's end."""
    types = [event.type for event in sink.events]
    assert types.count(SessionEnded.type) == 1
    return types[types.index(SessionEnded.type) + 1 :]


# -- the end of a session while a summary is being written ------------------------------------------------------


def test_no_event_is_emitted_after_the_end_of_a_session(monkeypatch: pytest.MonkeyPatch) -> None:
    sink, writer = RecordingSink(), Writer()
    window = ContextWindowManager(**options(sink, writer))
    until_writing(window, writer)
    settle = window._settle_background
    monkeypatch.setattr(window, "_settle_background", lambda: settle(0.0))
    window.close()

    writer.go_on.set()
    assert settle()
    window.flush()

    assert after_the_end(sink) == []
    assert compressions(sink) == []


def test_no_event_is_emitted_after_the_end_of_an_async_session() -> None:
    async def run(*, begun: bool) -> RecordingSink:
        sink, writer = RecordingSink(), AsyncWriter()
        window = AsyncContextWindowManager(**options(sink, writer))
        await until_writing_async(window, writer)
        if not begun:
            writer.go_on.set()
            await window.settle()
            window.add_user("word " * 8_000)
            await window.on_turn_end(answer(99))
        window.close()
        writer.go_on.set()
        await window.settle()
        window.flush()
        return sink

    assert after_the_end(asyncio.run(run(begun=True))) == []
    assert after_the_end(asyncio.run(run(begun=False))) == []


def test_a_listener_may_end_the_session_from_the_background() -> None:
    sink, writer = RecordingSink(), Writer()
    window = ContextWindowManager(**options(sink, writer))
    window.on("content.compressed", lambda event: window.close("enough"))
    until_writing(window, writer)
    writer.go_on.set()
    assert window.settle()

    assert [event.reason for event in sink.of(SessionEnded)] == ["enough"]
    assert after_the_end(sink) == []


def test_completing_waits_for_the_summary() -> None:
    sink, writer = RecordingSink(), Writer()
    window = ContextWindowManager(**options(sink, writer))
    until_writing(window, writer)
    threading.Timer(0.2, writer.go_on.set).start()
    window.complete("done")

    assert compressions(sink) == [("compaction", "pressure", "accepted")]
    assert after_the_end(sink) == []


def test_a_cancelled_wait_does_not_cancel_the_summary() -> None:
    async def run() -> RecordingSink:
        sink, writer = RecordingSink(), AsyncWriter()
        window = AsyncContextWindowManager(**options(sink, writer))
        await until_writing_async(window, writer)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(window.settle(), 0.01)
        asyncio.get_running_loop().call_later(0.05, writer.go_on.set)
        assert (await window.complete("done")).summary == "done"
        return sink

    sink = asyncio.run(run())
    assert compressions(sink) == [("compaction", "pressure", "accepted")]
    assert after_the_end(sink) == []


def test_a_cancelled_summary_blocks_nothing() -> None:
    async def run() -> RecordingSink:
        sink, writer = RecordingSink(), AsyncWriter()
        async with AsyncContextWindowManager(**options(sink, writer)) as window:
            await until_writing_async(window, writer)
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.wait(others)
            writer.go_on.set()
            window.add_user("one more")
            await window.on_turn_end(answer(99))
            await window.settle()
        return sink

    sink = asyncio.run(run())
    assert compressions(sink) == [("compaction", "pressure", "accepted")]


def test_an_interrupted_hook_does_not_block_later_ones() -> None:
    async def run() -> RecordingSink:
        sink, writer = RecordingSink(), AsyncWriter()
        window = AsyncContextWindowManager(**options(sink, writer, background=False))
        task = None
        for n in range(60):
            window.add_user(question(n))
            task = asyncio.ensure_future(window.on_turn_start())
            asked = asyncio.ensure_future(writer.began.wait())
            await asyncio.wait({task, asked}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                break
            await window.on_turn_end(answer(n))
        assert task is not None
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as kept:
            await task
        writer.go_on.set()
        await window.on_turn_start()
        assert kept.tb is not None
        await window.on_turn_end(answer(99))
        window.close()
        return sink

    assert compressions(asyncio.run(run())) == [("compaction", "pressure", "accepted")]


# -- when it starts ---------------------------------------------------------------------------------------------


def exactly(tokens: int, tag: str) -> str:
    """A text of as many tokens, unlike others."""
    return "".join(f"{tag}-{n:05d} "[:8] + "." * 8 for n in range(tokens // 4 + 1))[: tokens * 4]


def filled(window: ContextWindowManager, *, sent: int, replied: int) -> None:
    """Turns of 5,000 tokens up to 60,000, then one that is sent with *sent* tokens and ends with *replied*."""

    n = 0
    while window._engine.used() < 60_000:
        window.add_user(exactly(500, f"q{n:02d}"))
        window.on_turn_start()
        window.on_turn_end(chat_reply(exactly(4_500, f"a{n:02d}")))
        n += 1
    window.add_user(exactly(sent - window._engine.used(), "last"))
    assert window._engine.used() == sent
    window.on_turn_start()
    if replied:
        window.on_turn_end(chat_reply(exactly(replied - sent, "more")))


RATIO = "WINDOWPANE_COMPRESSION__COMPACTION_UTILIZATION_THRESHOLD"


@pytest.mark.parametrize(
    ("chosen", "sent", "replied", "begins"),
    [
        (None, 75_100, 79_900, False),
        (None, 75_100, 80_100, True),
        ("0.80", 75_100, 79_000, False),
        ("0.80", 79_000, 80_100, True),
        ("0.92", 84_000, 85_100, True),
        ("0.92", 79_000, 84_000, False),
    ],
)
def test_it_starts_at_the_configured_level(
    monkeypatch: pytest.MonkeyPatch, chosen: str | None, sent: int, replied: int, *, begins: bool
) -> None:
    if chosen:
        monkeypatch.setenv(RATIO, chosen)
    sink, writer = RecordingSink(), Writer()
    writer.go_on.set()
    with ContextWindowManager(**options(sink, writer, limit_tokens=100_000)) as window:
        filled(window, sent=sent, replied=0)
        assert writer.calls == 0, "the hook waited"
        window.on_turn_end(chat_reply("x" * 4 * (replied - sent)))
        assert window.settle()
        assert (writer.calls > 0) is begins


@pytest.mark.parametrize(
    ("chosen", "sent", "waits"), [(None, 89_900, False), (None, 90_100, True), ("0.80", 84_900, False)]
)
def test_a_call_waits_only_in_red(
    monkeypatch: pytest.MonkeyPatch, chosen: str | None, sent: int, *, waits: bool
) -> None:
    if chosen:
        monkeypatch.setenv(RATIO, chosen)
    sink, writer = RecordingSink(), Writer()
    writer.go_on.set()
    with ContextWindowManager(**options(sink, writer, limit_tokens=100_000)) as window:
        filled(window, sent=sent, replied=0)
        assert (writer.calls > 0) is waits


@pytest.mark.parametrize(("asked", "begins"), [(1_400, False), (2_600, True)])
def test_it_counts_the_room_that_system_prompt_and_tools_leave(asked: int, *, begins: bool) -> None:
    """Of 100,000 tokens they take 55,000: it starts at 80,000 and ends at 69,000, so that a tail stays."""
    sink, writer = RecordingSink(), Writer()
    writer.go_on.set()
    with ContextWindowManager(**options(sink, writer, limit_tokens=100_000)) as window:
        window.add_system("s" * 4 * 55_000)
        turns = 0
        while window._engine.used() < 77_000:
            window.add_user(exactly(100, f"q{turns:02d}"))
            window.on_turn_start()
            window.on_turn_end(chat_reply(exactly(1_900, f"a{turns:02d}")))
            turns += 1
        assert window.settle()
        assert writer.calls == 0
        window.add_user(exactly(78_000 + asked - window._engine.used(), "last"))
        window.on_turn_start()
        window.on_turn_end(chat_reply(exactly(100, "more")))
        assert window.settle()
        assert (writer.calls > 0) is begins
        if begins:
            assert "a01-0010" not in sent_json(window), "only the start of a message is in a summary"
        assert f"a{turns - 1:02d}-0000" in sent_json(window)


# -- what it meets ----------------------------------------------------------------------------------------------


def test_an_overflow_does_not_cut_content_that_can_be_summarized() -> None:
    sink = RecordingSink()
    writer = Writer()

    def model(system: str, user: str) -> str:
        return SUMMARY if writer.calls else writer(system, user)

    window = ContextWindowManager(**options(sink, model))
    until_writing(window, writer)
    window.add_user("LATE question")
    window.on_turn_start()
    decision = window.on_overflow("prompt is too long: 20000 tokens > 16384 maximum")
    assert decision.retry
    window.flush()
    assert compressions(sink) == [("compaction", "overflow", "accepted")]

    writer.go_on.set()
    assert window.settle()
    assert compressions(sink) == [("compaction", "overflow", "accepted")]
    assert "LATE question" in sent_json(window)
    assert openai_faults(window.messages()) == []
    window.on_turn_end(answer(99))
    window.close()


def test_history_over_its_budget_delays_no_call() -> None:
    sink, writer = RecordingSink(), Writer()
    chosen = {"enforce": "component", "budget": {"message_history": 0.2}, "limit_tokens": 100_000}
    window = ContextWindowManager(**options(sink, writer, **chosen))
    turns = 0
    while not writer.began.wait(0.2 if (window.status().utilization or 0) > 0.2 else 0):
        assert turns < 120, "history is over its budget and nothing was begun"
        turn(window, turns)
        turns += 1
    for n in range(turns, turns + 3):
        turn(window, n)
    assert compressions(sink) == []

    writer.go_on.set()
    assert window.settle()
    assert compressions(sink)[0] == ("compaction", "budget", "accepted")
    window.close()


def test_an_enforced_budget_removes_nothing_that_is_being_summarized() -> None:
    sink, writer = RecordingSink(), Writer()
    shares = {"tool_results": 0.12, "message_history": 0.9 - 0.12}
    window = ContextWindowManager(**options(sink, writer, enforce="component", budget=shares))
    window.add_user("go")
    for n in range(4):
        window.on_turn_start()
        window.on_turn_end(chat_reply(None, calls=[(f"c{n}", "run", "{}")]))
        window.on_tool_result("run", f"row_{n} in src/f{n}.py " * 66, f"c{n}")
    until_writing(window, writer)
    for n in range(4, 8):
        window.on_turn_start()
        window.on_turn_end(chat_reply(None, calls=[(f"c{n}", "run", "{}")]))
        window.on_tool_result("run", f"row_{n} in src/f{n}.py " * 66, f"c{n}")
    window.on_turn_start()
    window.on_turn_end(chat_reply("ok"))
    window.flush()
    assert window._engine.tracker.window.tokens_by_component["tool_results"] > 0.12 * 16_384
    assert sink.of(BlocksEvicted) == []

    writer.go_on.set()
    assert window.settle()
    assert compressions(sink)[0] == ("compaction", "pressure", "accepted")
    window.close()


def test_a_red_window_starts_a_second_summary_and_the_first_still_counts() -> None:
    sink = RecordingSink()
    writer = Writer()

    def model(system: str, user: str) -> str:
        return SUMMARY if writer.calls else writer(system, user)

    window = ContextWindowManager(**options(sink, model))
    until_writing(window, writer)
    window.add_user("A long one: " + "word " * 6_000)
    assert window.on_turn_start().action == "roll"
    assert window._engine.reduction.compactions_running == 1

    writer.go_on.set()
    assert window.settle()
    assert window._engine.reduction.compactions_running == 0
    assert [trigger for _, trigger, _ in compressions(sink)] == ["roll"]
    window.close()


def test_a_red_window_does_not_wait_for_a_second_summary() -> None:
    sink, writer = RecordingSink(), Writer()
    window = ContextWindowManager(**options(sink, writer, limit_tokens=100_000))
    filled(window, sent=80_000, replied=81_000)
    assert writer.began.wait(10)
    before = window.blocks()
    window.set_policy("fifo")
    window.add_user(exactly(93_000 - window._engine.used(), "much"))
    assert window.on_turn_start().action == "none"
    assert window.blocks()[: len(before)] == before
    assert writer.calls == 1

    writer.go_on.set()
    assert window.settle()
    assert compressions(sink) == [("compaction", "pressure", "accepted")]
    assert window._engine.used() < 70_000
    window.close()


def test_a_step_that_cannot_report_whether_it_is_due_is_skipped() -> None:
    def due(engine: object, levels: object) -> bool:
        raise RuntimeError("broken")

    def run(engine: object, limits: object, levels: object) -> Any:
        yield from ()
        return NOT_DONE

    sink = RecordingSink()
    broken = Step("evict", due, run)
    control = EngineSettings(cascade=(broken, *DEFAULT_CASCADE), after_turn=(broken,))
    with ContextWindowManager(**options(sink, None, settings=control)) as window:
        for n in range(40):
            turn(window, n)
    assert compressions(sink)[0] == ("compaction", "pressure", "accepted")
