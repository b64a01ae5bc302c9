"""The judge beside an agent: sampled, bounded, and never in its way."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from windowpane.agents.managers import AsyncContextWindowManager, ContextWindowManager
from windowpane.core.events import ContentCompressed, FidelityEvaluated
from windowpane.evaluation.suite.judges import string_match
from windowpane.exceptions import ConfigurationError
from windowpane.fidelity.judge.prompts import COMPARE
from windowpane.fidelity.judge.sampling import JudgeSampling, SampledJudge
from windowpane.testing import RecordingSink, chat_reply, in_memory_dependencies

WAIT_SECONDS = 120


def talk(n: int) -> str:
    return f"Question {n}: " + " ".join(f"word{n}x{m}" for m in range(150))


def reply(n: int) -> dict[str, Any]:
    filler = " ".join(f"talk{n}x{m}" for m in range(300))
    return chat_reply(f"Decided on plan_{n} because reason_{n} holds.\nport_{n}: {n}\n{filler}")


def drive(judge: SampledJudge, sink: RecordingSink, *, turns: int = 60) -> None:
    """A loop long enough to be compacted several times; waits for the judge before it ends."""
    with ContextWindowManager(
        agent="a", model="m", limit_tokens=8_192, dependencies=in_memory_dependencies(sink), judge=judge
    ) as window:
        for n in range(turns):
            window.add_user(talk(n))
            window.on_turn_start()
            window.on_turn_end(reply(n))
        assert judge._worker.wait(WAIT_SECONDS)


def judged(sink: RecordingSink) -> list[FidelityEvaluated]:
    return [found for found in sink.of(FidelityEvaluated) if found.method == "judge"]


def accepted(sink: RecordingSink) -> list[str]:
    return [
        event.event_id
        for event in sink.events
        if isinstance(event.data, ContentCompressed) and event.data.outcome == "accepted"
    ]


def test_every_compression_is_judged_at_a_rate_of_one() -> None:
    sink = RecordingSink()
    judge = SampledJudge(string_match, JudgeSampling(rate=1.0, capacity=50))

    drive(judge, sink)

    assert len(accepted(sink)) >= 2
    assert [found.of for found in judged(sink)] == accepted(sink)
    assert {found.judge for found in judged(sink)} == {"string-match (no model)"}
    assert all(found.score is not None for found in judged(sink))


def test_without_a_judge_nothing_is_judged() -> None:
    sink = RecordingSink()
    with ContextWindowManager(
        agent="a", model="m", limit_tokens=8_192, dependencies=in_memory_dependencies(sink)
    ) as window:
        for n in range(30):
            window.add_user(talk(n))
            window.on_turn_start()
            window.on_turn_end(reply(n))

    assert accepted(sink)
    assert judged(sink) == []


def test_the_sample_is_a_share_and_the_same_for_the_same_ids() -> None:
    def chosen(rate: float) -> list[str]:
        judge = SampledJudge(string_match, JudgeSampling(rate=rate))
        return [event_id for event_id in map(str, range(5_000)) if judge.chooses(event_id)]

    assert 400 < len(chosen(0.1)) < 600
    assert chosen(0.1) == chosen(0.1)
    assert set(chosen(0.1)) < set(chosen(0.5))
    assert (chosen(0.0), len(chosen(1.0))) == ([], 5_000)


@pytest.mark.parametrize(
    "changes", [{"rate": 1.1}, {"rate": -0.1}, {"questions": 0}, {"capacity": 0}, {"max_calls": 0}]
)
def test_a_sample_out_of_range_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(changes))):
        JudgeSampling(**changes)


class Held:
    """A judge that waits until it is released."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.asked = threading.Event()

    def __call__(self, system: str, user: str) -> str:
        self.asked.set()
        self.go.wait(WAIT_SECONDS)
        return "yes" if system == COMPARE else "UNKNOWN"


@pytest.fixture
def held() -> Any:
    """A judge that is released when the test ends, whatever happens."""
    judge = Held()
    yield judge
    judge.go.set()


def test_a_slow_judge_delays_no_session_and_the_queue_is_bounded(held: Held) -> None:
    sink = RecordingSink()
    judge = SampledJudge(held, JudgeSampling(rate=1.0, capacity=1))

    with ContextWindowManager(
        agent="a", model="m", limit_tokens=8_192, dependencies=in_memory_dependencies(sink), judge=judge
    ) as window:
        for n in range(80):
            window.add_user(talk(n))
            window.on_turn_start()
            window.on_turn_end(reply(n))

    assert held.asked.wait(WAIT_SECONDS)
    assert len(accepted(sink)) >= 4
    assert judge.dropped >= 1
    assert judged(sink) == []


def test_a_judgment_of_a_session_that_has_ended_is_let_go(held: Held) -> None:
    sink = RecordingSink()
    judge = SampledJudge(held, JudgeSampling(rate=1.0))
    with ContextWindowManager(
        agent="a", model="m", limit_tokens=8_192, dependencies=in_memory_dependencies(sink), judge=judge
    ) as window:
        for n in range(30):
            window.add_user(talk(n))
            window.on_turn_start()
            window.on_turn_end(reply(n))
    assert held.asked.wait(WAIT_SECONDS)

    held.go.set()

    assert judge._worker.wait(WAIT_SECONDS)
    assert sink.events[-1].type == "session.ended"


def test_a_judge_that_raises_is_reported_in_the_event() -> None:
    def broken(system: str, user: str) -> str:
        raise ConnectionError("no route")

    sink = RecordingSink()

    drive(SampledJudge(broken, JudgeSampling(rate=1.0, capacity=50)), sink)

    assert judged(sink)
    assert all(found.score is None and "ConnectionError" in found.reason for found in judged(sink))


def test_a_listener_receives_the_judgment() -> None:
    sink = RecordingSink()
    heard: list[str] = []
    judge = SampledJudge(string_match, JudgeSampling(rate=1.0, capacity=50))
    with ContextWindowManager(
        agent="a", model="m", limit_tokens=8_192, dependencies=in_memory_dependencies(sink), judge=judge
    ) as window:
        window.on("fidelity.evaluated", lambda event: heard.append(event.data.method))
        for n in range(30):
            window.add_user(talk(n))
            window.on_turn_start()
            window.on_turn_end(reply(n))
        assert judge._worker.wait(WAIT_SECONDS)

    assert "judge" in heard


def test_no_call_is_made_once_they_are_used_up() -> None:
    asked: list[str] = []

    def counting(system: str, user: str) -> str:
        asked.append(user)
        return string_match(system, user)

    sink = RecordingSink()
    judge = SampledJudge(counting, JudgeSampling(rate=1.0, capacity=50, max_calls=5))

    drive(judge, sink)

    assert len(asked) == judge.calls == 5
    assert judge.dropped == len(accepted(sink)) - len(judged(sink))
    assert [found.score for found in judged(sink)] == [None] * len(judged(sink))
    assert all("5 calls of the judge are used up" in found.reason for found in judged(sink))


def test_a_chain_of_compactions_is_judged_against_its_start() -> None:
    questions: list[set[str]] = []

    def judge(system: str, user: str) -> str:
        if system != COMPARE:
            questions[-1].add(user.rsplit("Question: ", 1)[-1])
        return string_match(system, user)

    sampled = SampledJudge(judge, JudgeSampling(rate=1.0, capacity=50))
    evaluate: Callable[..., Any] = sampled.evaluate

    def counted(*arguments: Any) -> Any:
        questions.append(set())
        return evaluate(*arguments)

    sampled.evaluate = counted  # type: ignore[method-assign]
    drive(sampled, RecordingSink())

    assert len(questions) >= 2
    assert questions[0] & questions[1]
    assert questions[1] - questions[0]


def test_an_async_session_is_judged_too() -> None:
    sink = RecordingSink()
    judge = SampledJudge(string_match, JudgeSampling(rate=1.0, capacity=50))

    async def loop() -> None:
        async with AsyncContextWindowManager(
            agent="a", model="m", limit_tokens=8_192, dependencies=in_memory_dependencies(sink), judge=judge
        ) as window:
            for n in range(30):
                window.add_user(talk(n))
                await window.on_turn_start()
                await window.on_turn_end(reply(n))
            assert await asyncio.to_thread(judge._worker.wait, WAIT_SECONDS)

    asyncio.run(loop())

    assert judged(sink)
