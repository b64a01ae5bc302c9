"""Picoclaw's three paths: after a turn, before a call, after a refusal.

33, 34 and 38 are tested with the manager itself.
"""

from __future__ import annotations

import asyncio
import re
import threading
from typing import Any

import pytest
from builders import filler, is_valid, manager, sent, talk, tool_turn

from windowpane.agents.managers import AsyncContextWindowManager
from windowpane.core.events import ContentCompressed, OverflowDetected
from windowpane.manager.listeners import SourceRecord
from windowpane.manager.presets.picoclaw import COMPRESS_EVENT, SUMMARIZE_EVENT, levels, window
from windowpane.manager.presets.registry import preset_named
from windowpane.testing import RecordingSink, ScriptedModel, chat_reply, in_memory_dependencies

OVERFLOW = "maximum context length exceeded"


def picoclaw(sink: RecordingSink, records: list[SourceRecord], *, limit: int = 40_000, **options: Any) -> Any:
    made = manager(sink, limit=limit, preset="picoclaw", **options)
    made.on_record(records.append)
    return made


def compressed(sink: RecordingSink) -> list[ContentCompressed]:
    return [event for event in sink.of(ContentCompressed) if event.outcome == "accepted"]


def test_a_refused_call_drops_the_older_turns_and_notes_it_in_the_summary() -> None:
    sink, records = RecordingSink(), []
    with picoclaw(sink, records) as win:
        talk(win, "first question", "We decided to use alpha because it is small. " + filler(6_000))
        talk(win, "second question", filler(6_000, tag="b"))
        win.add_user("third question")
        win.on_turn_start()
        before, used = win.messages(), win.status().used_tokens
        decision = win.on_overflow(OVERFLOW)
        said = [message for message in win.messages() if "Summary of earlier" not in message["content"]]

        assert decision.retry
        assert len(before) == 5
        assert len(said) < 5
        assert said == [before[0], *before[-len(said) + 1 :]]
        assert win.status().used_tokens < used - 5_800
        assert filler(6_000)[:200] not in sent(win)
        assert "third question" in sent(win)
        assert "We decided to use alpha" in sent(win)
        assert is_valid(win)
    assert [record.fields["reason"] for record in records if record.name == COMPRESS_EVENT] == ["llm_retry"]
    assert set(records[0].fields) == {"reason", "dropped_messages", "remaining_messages"}
    assert compressed(sink)[0].trigger == "llm_retry"


def test_before_a_call_the_reason_is_the_budget() -> None:
    sink, records = RecordingSink(), []
    with picoclaw(sink, records, requested_output_tokens=10_000) as win:
        for n in range(4):
            talk(win, f"question {n}", filler(7_000, tag=f"a{n}x"))
        win.add_user("and now " + filler(3_000))
        decision = win.on_turn_start()

        assert decision.action == "compact"
        assert win.status().used_tokens + 10_000 <= 40_000
        assert is_valid(win)
    assert [record.fields["reason"] for record in records] == ["proactive_budget"]
    assert sink.of(OverflowDetected)[0].where == "proactive"


def test_one_message_is_not_reduced() -> None:
    sink, records = RecordingSink(), []
    with picoclaw(sink, records) as win:
        win.add_user("hello")
        win.on_turn_start()
        before = win.messages()
        decision = win.on_overflow(OVERFLOW)

        assert win.messages() == before
        assert not decision.retry
    assert records == []


def test_two_messages_that_fit_are_not_reduced() -> None:
    sink, records = RecordingSink(), []
    with picoclaw(sink, records) as win:
        talk(win, "hello", "hi")
        before = win.messages()
        win.on_turn_start()
        assert win.messages() == before
        decision = win.on_overflow(OVERFLOW)

        assert win.messages() == before
        assert not decision.retry
    assert records == []


def test_two_messages_that_do_not_fit_are_reduced_inside() -> None:
    """The source never compresses two messages however big; here the call is made possible."""
    sink, records = RecordingSink(), []
    with picoclaw(sink, records, limit=20_000) as win:
        talk(win, "hello", filler(14_000))
        win.add_user("go on " + filler(4_000))
        win.on_turn_start()

        assert win.status().used_tokens <= 15_000
        assert "go on" in sent(win)


def test_a_turn_with_a_huge_result_keeps_its_request() -> None:
    sink, records = RecordingSink(), []
    with picoclaw(sink, records, limit=8_192) as win:
        win.add_user("read the whole file")
        tool_turn(win, 0, result=filler(200_000))
        win.on_turn_start()

        assert "read the whole file" in sent(win)
        assert win.status().used_tokens <= 6_144
        assert is_valid(win)


def test_below_every_threshold_nothing_changes() -> None:
    sink, records = RecordingSink(), []
    with picoclaw(sink, records) as win:
        for n in range(5):
            talk(win, f"question {n}", f"answer {n}")
        win.settle()

        assert len(win.messages()) == 10
    assert records == []


def test_too_many_messages_are_summarised_after_the_turn() -> None:
    sink, records = RecordingSink(), []
    with picoclaw(sink, records) as win:
        for n in range(11):
            talk(win, f"question {n}: " + filler(60), f"answer {n}: " + filler(60))
        assert win.settle()
        conversation = [m for m in win.messages() if "Summary of earlier" not in str(m["content"])]

        assert [m["content"].split(":")[0] for m in conversation[-4:]] == [
            "question 9",
            "answer 9",
            "question 10",
            "answer 10",
        ]
        assert is_valid(win)
    assert [record.name for record in records] == [SUMMARIZE_EVENT]
    assert set(records[0].fields) == {"summarized_messages", "kept_messages", "summary_len", "omitted_oversized"}
    assert compressed(sink)[0].trigger == "summarize"


def test_too_much_history_is_summarised_after_the_turn() -> None:
    sink, records = RecordingSink(), []
    with picoclaw(sink, records, limit=10_000, requested_output_tokens=500) as win:
        talk(win, "a", filler(2_490))
        talk(win, "b", filler(2_490))
        talk(win, "c", filler(2_517))
        win.settle()
        assert records == []
        talk(win, "d", filler(10))
        win.settle()

    assert [record.name for record in records] == [SUMMARIZE_EVENT]


class Slow(ScriptedModel):
    """A model that keeps every question it is shown, waits until it may answer, and signals when it is called."""

    def __init__(self) -> None:
        super().__init__([""])
        self.began, self.may_answer = threading.Event(), threading.Event()

    def __call__(self, system: str, user: str) -> str:
        super().__call__(system, user)
        self.began.set()
        assert self.may_answer.wait(30)
        asked = re.findall(r"question \d+: please look at module_\d+", user)
        return "\n".join(["## State and next steps", *(f"- {question}" for question in asked)])


def call_model(win: Any, n: int) -> None:
    talk(win, f"question {n}: please look at module_{n}", f"answer {n}: " + filler(80))


def test_a_second_trigger_joins_the_first() -> None:
    sink, records = RecordingSink(), []
    model = Slow()
    with picoclaw(sink, records, model=model) as win:
        for n in range(11):
            call_model(win, n)
        assert model.began.wait(30)
        call_model(win, 11)
        call_model(win, 12)
        model.may_answer.set()
        assert win.settle()

        assert len(model.asked) == 1
        assert "answer 12" in sent(win)
    assert len(compressed(sink)) == 1


def test_messages_that_come_while_the_summary_is_written_stay() -> None:
    sink, records = RecordingSink(), []
    model = Slow()
    with picoclaw(sink, records, model=model) as win:
        for n in range(11):
            call_model(win, n)
        assert model.began.wait(30)
        for n in range(11, 15):
            call_model(win, n)
        model.may_answer.set()
        assert win.settle()
        left = sent(win)

        assert [n for n in range(15) if f"answer {n}:" in left] == list(range(9, 15))
        assert len(model.asked) == 1
        assert is_valid(win)


def test_the_summary_there_was_is_taken_up_by_the_next() -> None:
    sink, records = RecordingSink(), []
    with picoclaw(sink, records) as win:
        talk(win, "begin", "We decided to use sqlite_wal because of readers_and_writers.")
        for n in range(36):
            talk(win, f"question {n}: " + filler(60), f"answer {n}: " + filler(60))
            win.settle()
        summaries = [m for m in win.messages() if "Summary of earlier" in str(m["content"])]

        assert len(compressed(sink)) >= 3
        assert len(summaries) == 1
        assert "We decided to use sqlite_wal because of readers_and_writers" in summaries[0]["content"]


def test_the_work_after_a_turn_runs_as_a_task_on_an_event_loop() -> None:
    sink, records = RecordingSink(), []

    async def loop() -> int:
        dependencies = in_memory_dependencies(sink)
        async with AsyncContextWindowManager(
            agent="a", model="m", limit_tokens=40_000, preset="picoclaw", dependencies=dependencies
        ) as win:
            win.on_record(records.append)
            for n in range(11):
                win.add_user(f"question {n}: " + filler(60))
                await win.on_turn_start()
                await win.on_turn_end(chat_reply(f"answer {n}: " + filler(60)))
            before = len(compressed(sink))
            await win.settle()
            return before

    assert asyncio.run(loop()) == 0
    assert [record.name for record in records] == [SUMMARIZE_EVENT]


@pytest.mark.parametrize("over", [False, True])
def test_the_budget_formula_is_strict(over: bool) -> None:
    limits = window(40_000, "given", 10_000)
    at = levels(limits, 0.85)

    assert (30_000 + over >= at.evict) is over
    assert preset_named("picoclaw").limits(40_000, "given").reserved_tokens == 10_000
