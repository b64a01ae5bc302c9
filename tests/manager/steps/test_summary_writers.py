"""Writers of summaries: models that fail, refuse or are slow, and users who object."""

from __future__ import annotations

import re
import threading
from dataclasses import replace

import pytest
from builders import filler, is_valid, manager, sent, talk

from windowpane.core.events import ContentCompressed, PressureMeasured
from windowpane.effects.commands import CompactionProposal
from windowpane.manager.plans.acceptance import ProposedSummary, rejection_reason
from windowpane.testing import RecordingSink, ScriptedModel, chat_reply, in_memory_dependencies

TOO_LONG = RuntimeError("prompt is too long: maximum context length exceeded")


def test_a_budget_that_cannot_be_reached_ends() -> None:
    sink = RecordingSink()
    model = ScriptedModel([filler(30_000)])
    with manager(sink, limit=16_384, model=model) as window:
        for n in range(20):
            talk(window, f"question {n}", filler(1_500, tag=f"a{n}x"))

            assert is_valid(window)
    compactions = sink.of(ContentCompressed)

    assert any(event.outcome == "accepted" for event in compactions)
    assert 0 < len(model.asked) <= 2 * len(compactions)
    assert all(event.method == "extractive" for event in compactions if event.outcome == "accepted")


def test_a_summary_that_is_too_long_is_requested_again_and_then_made_without_the_model() -> None:
    sink = RecordingSink()
    model = ScriptedModel([filler(30_000, tag="long"), filler(30_000, tag="longer")])
    with manager(sink, limit=16_384, model=model) as window:
        for n in range(8):
            talk(window, f"question {n}", f"We decided plan_{n} because of it. " + filler(1_500, tag=f"a{n}x"))
        first, second = (int(re.findall(r"at most ([\d,]+) tokens", system)[-1]) for system, _ in model.asked[:2])

        assert second < first
        assert "Summary of earlier" in sent(window)
        assert "long1 " not in sent(window)
    event = next(event for event in sink.of(ContentCompressed) if event.outcome == "accepted")
    assert (event.method, event.model_calls, event.reason) == ("extractive", 2, "not smaller")


@pytest.mark.parametrize(("over", "reason"), [(0, ""), (1, "too little progress")])
def test_a_summary_that_meets_the_target_exactly_is_accepted(over: int, reason: str) -> None:
    """A target one token lower rejects it, as the freed tokens are not a tenth of the window either."""
    proposed_summary = ProposedSummary("summary", 1_000, 500, window_before=10_000, target_tokens=9_500 - over)

    assert rejection_reason(proposed_summary) == reason


class Short(ScriptedModel):
    """A model that refuses transcripts of more than so many messages."""

    def __init__(self, most: int) -> None:
        super().__init__([""])
        self.most = most

    def __call__(self, system: str, user: str) -> str:
        super().__call__(system, user)
        if user.count("[turn ") > self.most:
            raise TOO_LONG
        decided = [line for line in user.splitlines() if "We decided" in line or "question" in line]
        return "\n".join(["## Decisions and reasons", *(f"- {line[:200]}" for line in decided)])


def overfull(sink: RecordingSink, model: ScriptedModel) -> None:
    with manager(sink, limit=16_384, model=model) as window:
        for n in range(9):
            talk(
                window,
                f"question {n}",
                f"We decided plan_{n} because of reason_{n}. " + filler(1_300, tag=f"a{n}x"),
            )


def test_a_summarizer_that_overflows_receives_less_and_the_number_is_reported() -> None:
    sink = RecordingSink()
    model = Short(most=6)
    overfull(sink, model)
    event = next(event for event in sink.of(ContentCompressed) if event.model_calls)

    assert event.outcome == "accepted"
    assert event.method == "Short"
    assert event.model_calls > 1
    assert event.reason.endswith("groups were too much for the model")


def test_the_transcript_gets_shorter_step_by_step_and_is_never_sent_again() -> None:
    sink = RecordingSink()
    model = Short(most=0)
    overfull(sink, model)
    event = next(event for event in sink.of(ContentCompressed) if event.model_calls)
    shown = [user for _, user in model.asked[: event.model_calls]]
    lengths = [len(user) for user in shown]

    assert event.method == "extractive"
    assert event.reason == "model failed: RuntimeError"
    assert len(set(shown)) == len(shown)
    assert lengths == sorted(lengths, reverse=True)


def test_a_summarizer_s_failure_before_a_call_is_not_raised() -> None:
    sink = RecordingSink()
    with manager(sink, limit=16_384, model=ScriptedModel([OSError("gone")])) as window:
        for n in range(8):
            talk(window, f"question {n}", filler(1_500, tag=f"a{n}x"))
    event = next(event for event in sink.of(ContentCompressed) if event.outcome == "accepted")

    assert (event.method, event.reason) == ("extractive", "model failed: OSError")


def test_exactly_the_content_sent_to_the_summarizer_is_removed() -> None:
    sink = RecordingSink()
    began, may_answer = threading.Event(), threading.Event()

    class Slow(ScriptedModel):
        def __call__(self, system: str, user: str) -> str:
            began.set()
            assert may_answer.wait(30)
            return super().__call__(system, user)

    with manager(sink, limit=16_384, model=Slow([""])) as window:
        for n in range(3):
            talk(window, f"question {n}", filler(2_200, tag=f"a{n}x"))
        window.add_user("run it " + filler(500))
        window.on_turn_start()
        window.on_turn_end(chat_reply("running", calls=[("c", "run", "{}")]))
        window.add_memory(filler(3_200))
        hook = threading.Thread(target=window.on_turn_start)
        hook.start()
        assert began.wait(30)
        window.on_tool_result("run", "the result", "c")
        window.add_user("a late message")
        may_answer.set()
        hook.join(30)
        window.flush()
        event = next(event for event in sink.of(ContentCompressed) if event.outcome == "accepted")

        assert "the result" in sent(window)
        assert window.messages()[-1]["content"] == "a late message"
        assert not set(event.removed) & {block.id for block in window.blocks()}
        assert is_valid(window)


def test_a_compaction_can_be_vetoed() -> None:
    sink = RecordingSink()
    asked: list[CompactionProposal] = []

    def no(proposal: CompactionProposal) -> bool:
        asked.append(proposal)
        return False

    with manager(sink, limit=32_768) as window:
        window.before_compaction(no)
        for n in range(7):
            talk(window, f"question {n}", filler(3_000, tag=f"a{n}x"))
        window.add_user("next " + filler(4_000))
        window.on_turn_start()

        assert all(f"a{n}x1 " in sent(window) for n in range(7))
    assert sink.of(ContentCompressed) == []
    assert asked
    assert all(0 < proposal.tokens_after < proposal.tokens_before for proposal in asked)


def test_the_event_has_the_forecast_and_the_freed_tokens() -> None:
    sink = RecordingSink()
    asked: list[CompactionProposal] = []
    with manager(sink, limit=32_768) as window:
        window.before_compaction(asked.append)
        for n in range(7):
            talk(window, f"question {n}", filler(3_000, tag=f"a{n}x"))
        window.add_user("next " + filler(4_000))
        window.on_turn_start()
    event = next(event for event in sink.of(ContentCompressed) if event.outcome == "accepted")
    phases = {one.phase: one.used_tokens for one in sink.of(PressureMeasured)[-2:]}

    assert asked[0].tokens_before == event.tokens_before
    assert event.tokens_after <= asked[0].tokens_after
    assert phases["before"] - phases["after"] == event.tokens_before - event.tokens_after


NOUNS = """copper harbor lantern meadow orchid pepper quartz ribbon saddle timber umbrella velvet walnut yonder
zephyr anchor barrel candle dagger ember falcon garnet hammer island jasper kettle ladder marble needle oyster"""


@pytest.mark.parametrize(("archived", "method"), [(True, "ScriptedModel"), (False, "extractive")])
def test_a_model_s_summary_retains_half_of_the_facts_visibly_or_by_a_handle(archived: bool, method: str) -> None:
    """It has the names of the files, and none of the decisions."""
    sink = RecordingSink()
    names = ", ".join(f"module_{n}.py" for n in range(40))
    model = ScriptedModel([f"The work went on with {names} and is on track."])
    dependencies = in_memory_dependencies(sink)
    dependencies = replace(dependencies, model=model, archive=dependencies.archive if archived else None)
    with manager(sink, limit=16_384, dependencies=dependencies, cascade=["compaction"]) as window:
        window.add_user("go")
        for n in range(10):
            drawn, store, slow = NOUNS.split()[3 * n : 3 * n + 3]
            said = f"Read module_{n}.py. I decided on {drawn} to hold each {store} because {slow} failed."
            talk(window, "Go on.", f"{said} {filler(1_400, tag='a')}")
    event = next(event for event in sink.of(ContentCompressed) if event.outcome == "accepted")

    assert event.method == method
    assert ("of the facts" in event.reason) is not archived
