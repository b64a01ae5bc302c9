"""Model calls of the reductions: bounded, in one call for several texts, priced, and never repeated in vain."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest
from message_rules import openai_faults
from tests.sampling import sampled

import windowpane
from windowpane.core.events import ContentCompressed, Usage
from windowpane.core.limits import WindowLimits
from windowpane.core.tracking import SessionInfo
from windowpane.manager.drivers import BlockingWindow
from windowpane.manager.model_calls import split_answer
from windowpane.manager.session import ManagedSession
from windowpane.manager.settings import SAFETY_NET, EngineSettings
from windowpane.manager.state import BURST
from windowpane.testing import RecordingSink, chat_reply, in_memory_dependencies

TURNS = 200
PART = re.compile(r"TEXT (\d+): ")


def work(
    sink: RecordingSink,
    *,
    cascade: tuple[str, ...],
    turns: int = TURNS,
    size: int = 700,
    user_messages: bool = False,
    model_cost_of: Callable[[Usage], float | None] | None = None,
    settings: EngineSettings | None = None,
    **parties: Any,
) -> None:
    """Run an agent whose every turn adds a tool result of *size* tokens to a window of 16,384."""
    dependencies = replace(in_memory_dependencies(sink), model_cost_of=model_cost_of, **parties)
    settings = replace(settings or EngineSettings(), cascade=(*cascade, *SAFETY_NET))
    session = ManagedSession(
        SessionInfo("s", "a", "m", "live", "s/1"),
        dependencies=dependencies,
        limits=WindowLimits.of(16_384, "given"),
        settings=settings,
    )
    with BlockingWindow(session) as window:
        window.add_user("Review all files.")
        for turn in range(turns):
            if user_messages:
                window.add_user(f"Go on with part {turn}.")
            window.on_turn_start()
            window.on_turn_end(chat_reply(f"Reading f{turn}.", calls=[(f"c{turn}", "read", "{}")]))
            window.on_tool_result("read", f"row_{turn} " + f"value_{turn} " * (4 * size // 10), f"c{turn}")
        assert openai_faults(window.messages()) == []


class Model:
    """A language model that names what each text of a prompt names, in parts where there are several."""

    def __init__(self, answer: str = "", *, in_parts: bool = True) -> None:
        self.answer = answer
        self.in_parts = in_parts
        self.prompts: list[str] = []

    def __call__(self, system: str, user: str) -> str:
        self.prompts.append(user)
        _, *numbered = PART.split(user) if self.in_parts else [user]
        parts = zip(numbered[::2], numbered[1::2], strict=True)
        texts = [f"=== TEXT {number} ===\n{self._answer_to(text)}\n" for number, text in parts]
        return "".join(texts) or self._answer_to(user)

    def _answer_to(self, text: str) -> str:
        return self.answer or "Found " + " ".join(sorted(set(re.findall(r"(?:row|value)_\d+", text))))


SUMMARIES = ("tool_result_summarization", "progressive_summarization")


@pytest.mark.parametrize(
    ("summary", "in_parts", "user_messages"), sampled(list(product(SUMMARIES, (True, False), (True, False))), 3)
)
def test_a_long_session_makes_a_bounded_number_of_model_calls(
    summary: str, in_parts: bool, user_messages: bool
) -> None:
    sink = RecordingSink()
    model = Model(in_parts=in_parts)
    work(sink, cascade=(summary, "compaction"), user_messages=user_messages, model=model)
    events = sink.of(ContentCompressed)

    assert any(event.outcome == "accepted" and event.method == "Model" for event in events)
    assert 1 < len(model.prompts) <= BURST + 0.25 * TURNS
    assert sum(event.model_calls for event in events) <= len(model.prompts)


@pytest.mark.parametrize("cascade", ["tool_result_summarization", "progressive_summarization", "compaction"])
@pytest.mark.parametrize("settings", [EngineSettings(), EngineSettings(evaluate=None)])
def test_a_model_that_answers_ok_to_everything_replaces_nothing(cascade: str, settings: EngineSettings) -> None:
    sink = RecordingSink()
    model = Model("ok")
    work(sink, cascade=(cascade,), turns=40, model=model, settings=settings)
    events = sink.of(ContentCompressed)

    assert model.prompts
    assert not [event for event in events if event.outcome == "accepted" and event.method == "Model"]


def test_one_call_summarizes_as_many_results_as_the_target_requires() -> None:
    sink = RecordingSink()
    model = Model()
    work(sink, cascade=("tool_result_summarization",), turns=30, model=model)
    accepted = [event for event in sink.of(ContentCompressed) if event.outcome == "accepted"]
    several = [prompt for prompt in model.prompts if len(PART.findall(prompt)) > 1]

    assert several
    assert len(accepted) > 2 * len(model.prompts)
    assert sum(event.model_calls for event in accepted) == len(model.prompts)


@pytest.mark.parametrize(
    ("answer", "parts"),
    [
        ("=== TEXT 1 ===\none\n=== TEXT 2 ===\ntwo", ["one", "two"]),
        ("Here they are.\n=== TEXT 2 ===\ntwo\n\n=== TEXT 1 ===  \none\nmore", ["one\nmore", "two"]),
        ("=== TEXT 1 ===\none\n=== TEXT 1 ===\nagain\n=== TEXT 2 ===\ntwo", ["", "two"]),
        ("=== TEXT 2 ===\ntwo\n=== TEXT 3 ===\nthree", ["", "two"]),
        ("a text in which === TEXT 1 === is quoted", ["", ""]),
        ("", ["", ""]),
    ],
)
def test_an_answer_is_split_by_its_headings(answer: str, parts: list[str]) -> None:
    assert split_answer(answer, 2) == parts


def test_a_result_whose_summary_was_refused_is_not_sent_again() -> None:
    sink = RecordingSink()
    model = Model("far too long " * 2_000)
    work(sink, cascade=("tool_result_summarization", "eviction"), turns=60, user_messages=True, model=model)
    sent = [row for prompt in model.prompts for row in set(re.findall(r"row_\d+", prompt))]

    assert {event.reason for event in sink.of(ContentCompressed)} >= {"not smaller"}
    assert len(sent) == len(set(sent)) > 1


@pytest.mark.parametrize("party", ["subagent", "model"])
def test_a_refused_summary_is_not_requested_again_for_the_same_conversation(party: str) -> None:
    sink = RecordingSink()
    calls: list[str] = []

    def useless(*prompt: str) -> str:
        calls.append(prompt[-1])
        return ""

    cascade = ("subagent_delegation",) if party == "subagent" else ("compaction",)
    settings = EngineSettings(summarizer=None)
    work(sink, cascade=cascade, turns=60, user_messages=True, settings=settings, **{party: useless})
    rows = [set(re.findall(r"row_\d+", call)) for call in calls]

    assert 1 <= len(calls) <= 8
    assert all(len(later) >= len(earlier) + 6 for earlier, later in pairwise(rows))


def test_the_price_of_the_calls_is_in_the_events() -> None:
    sink = RecordingSink()
    priced: list[Usage] = []

    def price(usage: Usage) -> float:
        priced.append(usage)
        return 0.5

    model = Model()
    work(sink, cascade=("tool_result_summarization",), turns=30, model=model, model_cost_of=price)
    costs = [event.cost_dollars for event in sink.of(ContentCompressed)]

    assert sum(cost for cost in costs if cost is not None) == 0.5 * len(model.prompts) > 0
    assert all(usage.input_tokens > 500 and usage.output_tokens > 0 for usage in priced)


@pytest.mark.parametrize(
    ("preset", "limit_tokens"),
    [("cascade", 128_000), ("baseagent", 200_000), ("picoclaw", 131_072), ("ai_sdk_go", None), (None, None)],
)
def test_a_model_of_unknown_size_has_the_window_of_the_preset(
    preset: str | None, limit_tokens: int | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = f"unheard-of-{preset}"
    with windowpane.ContextWindowManager(agent="a", model=model, preset=preset, data_folder=tmp_path) as window:
        window.add_user("Hello")
        decision = window.on_turn_start()

        assert window.status().limit_tokens == limit_tokens
    assert ("measured but not managed; pass limit_tokens=" in caplog.text) == (limit_tokens is None)
    assert ("unknown" in decision.reason) == (limit_tokens is None)
