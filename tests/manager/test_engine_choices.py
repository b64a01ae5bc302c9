"""Choices of a user: strategies, their order, subsystems, callbacks, and calls that wait."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from message_rules import anthropic_faults, openai_faults

from windowpane.agents.managers import AsyncContextWindowManager, ContextWindowManager
from windowpane.config.loading import load_config
from windowpane.core.events import (
    BlocksEvicted,
    BreakerOpened,
    BudgetBlocked,
    ContentCompressed,
    FidelityEvaluated,
    NoteWritten,
    SessionEnded,
    SubagentDelegated,
    SubagentReturned,
)
from windowpane.core.limits import WindowLimits
from windowpane.core.tracking import SessionInfo
from windowpane.effects.commands import CompactionProposal
from windowpane.exceptions import ConfigurationError, IrreducibleContextError
from windowpane.manager.drivers import BlockingWindow
from windowpane.manager.files.notes import FileNotes
from windowpane.manager.plans.policies import SCORERS
from windowpane.manager.plans.subagent_delegation import Subtask
from windowpane.manager.session import ManagedSession
from windowpane.manager.settings import DEFAULT_CASCADE, SAFETY_NET, EngineSettings
from windowpane.manager.steps.cascade import STEPS, cascade_from_thresholds
from windowpane.testing import MemoryArchive, RecordingSink, ScriptedModel, chat_reply, in_memory_dependencies


def manager(sink: RecordingSink, *, limit: int = 16_384, **options: Any) -> ContextWindowManager:
    dependencies = options.pop("dependencies", None) or in_memory_dependencies(sink)
    return ContextWindowManager(agent="a", model="m", limit_tokens=limit, dependencies=dependencies, **options)


def engine_manager(sink: RecordingSink, settings: EngineSettings, **dependencies: Any) -> BlockingWindow:
    """A manager with separate settings, without the defaults that a user's has."""
    return BlockingWindow(
        ManagedSession(
            SessionInfo("s", "a", "m", "live", "s/1"),
            dependencies=replace(in_memory_dependencies(sink), **dependencies),
            limits=WindowLimits.of(16_384, "given"),
            settings=settings,
        )
    )


def talk(window: Any, turns: int, *, size: int = 260, first: int = 0) -> None:
    for n in range(first, first + turns):
        window.add_user(f"Question {n}: " + f"word{n} " * 40)
        try:
            window.on_turn_start()
        except IrreducibleContextError:
            continue
        window.on_turn_end(chat_reply(f"We decided plan_{n} because of reason_{n}. " + f"talk{n} " * size))


def results(window: Any, turns: int, *, size: int = 900, text: Callable[[int], str] | None = None) -> None:
    for n in range(turns):
        window.on_turn_start()
        window.on_turn_end(chat_reply(None, calls=[(f"c{n}", "run", "{}")]))
        window.on_tool_result("run", text(n) if text else f"row_{n} in src/f{n}.py " * (size // 6), f"c{n}")


def sent_json(window: Any) -> str:
    return json.dumps(window.messages(), ensure_ascii=False)


def valid(window: Any) -> bool:
    return openai_faults(window.messages()) == [] == anthropic_faults(window.messages("anthropic").messages)


def accepted(sink: RecordingSink) -> list[ContentCompressed]:
    return [event for event in sink.of(ContentCompressed) if event.outcome == "accepted"]


def strategies(sink: RecordingSink) -> list[str]:
    return [event.strategy for event in accepted(sink)]


def names_of(_system: str, user: str) -> str:
    """A model that names what the text names."""
    return " ".join(sorted(set(re.findall(r"row_\d+|src/f\d+\.py", user))))


def report(assignment: str) -> str:
    """A sub-agent that reads what it was given."""
    return "\n".join(f"- {line}" for line in re.findall(r"We decided plan_\d+ because of reason_\d+", assignment))


# -- strategies and their order -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "step", ["tool_result_summarization", "progressive_summarization", "compaction", "subagent_delegation"]
)
def test_a_strategy_works_alone(step: str) -> None:
    sink = RecordingSink()
    dependencies = in_memory_dependencies(sink, model=names_of if step == "tool_result_summarization" else None)
    with manager(sink, dependencies=dependencies, cascade=[step], subagent=report) as window:
        window.add_user("go")
        if step in ("tool_result_summarization", "progressive_summarization"):
            results(window, 12, size=1_400)
        else:
            talk(window, 30)
        assert valid(window)

    assert step in strategies(sink)
    assert set(strategies(sink)) <= {step, "truncation", "compaction"}


def test_the_cascade_is_ordered_by_cost_and_stops_early() -> None:
    sink = RecordingSink()
    model = ScriptedModel(["never needed"])
    with manager(sink, dependencies=in_memory_dependencies(sink, model=model), limit=32_768) as window:
        window.add_user("go")
        results(window, 30, size=2_000)

    assert sink.of(BlocksEvicted)
    assert model.asked == []
    assert (
        DEFAULT_CASCADE.index("eviction")
        < DEFAULT_CASCADE.index("note_taking")
        < DEFAULT_CASCADE.index("tool_result_summarization")
    )
    assert DEFAULT_CASCADE.index("tool_result_summarization") < DEFAULT_CASCADE.index("compaction")
    assert (
        DEFAULT_CASCADE.index("compaction")
        < DEFAULT_CASCADE.index("subagent_delegation")
        < DEFAULT_CASCADE.index("roll")
    )
    assert DEFAULT_CASCADE[-3:] == SAFETY_NET


@pytest.mark.parametrize(("cascade", "evicts"), [(["eviction", "compaction"], False), (["eviction"], True)])
def test_an_eviction_that_misses_its_target_waits_for_a_compaction(cascade: list[str], *, evicts: bool) -> None:
    """A few old results and much conversation: evicting the results alone cannot reach the target."""
    sink = RecordingSink()
    with manager(sink, limit=32_768, cascade=cascade) as window:
        window.add_user("go")
        results(window, 6, size=2_000)
        talk(window, 40, size=400)

    assert bool(sink.of(BlocksEvicted)) is evicts
    assert ("compaction" in strategies(sink)) is not evicts


def test_an_unknown_step_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="compaction"):
        manager(RecordingSink(), cascade=["compress harder"])


def test_a_cascade_from_the_file_starts_each_strategy_at_its_level() -> None:
    cascade = cascade_from_thresholds({"tool_result_summarization": 0.80, "compaction": 0.92})
    names = [step if isinstance(step, str) else "" for step in cascade]

    assert names == ["eviction", "", "", "roll", *SAFETY_NET]


@pytest.mark.parametrize(
    ("cascade", "problem"),
    [
        ({0.75: "compaction", 0.85: "tool_result_summarization"}, "rise with cost"),
        ({0.75: "progressive_summarization", 0.85: "progressive_summarization"}, "twice"),
        ({0.75: "magic"}, "magic|subagent_delegation"),
        ({1.75: "progressive_summarization"}, "1"),
    ],
)
def test_a_cascade_that_contradicts_itself_is_refused(cascade: dict[float, str], problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        load_config(environ={}, arguments={"compression": {"cascade": cascade}})


# -- notes and sub-agents -------------------------------------------------------------------------------------


def test_sufficient_notes_replace_the_conversation() -> None:
    sink = RecordingSink()
    with manager(sink) as window:
        window.add_user("go")
        for n in range(60):
            window.task.add_note(
                f"We decided plan_{n} because of reason_{n}.", category="decisions", importance="high"
            )
        talk(window, 60)

        assert strategies(sink).count("note_taking") > 1
        assert "plan_3 because of reason_3" in sent_json(window)
    assert len(sink.of(NoteWritten)) == 60


def test_insufficient_notes_do_not() -> None:
    sink = RecordingSink()
    with manager(sink) as window:
        window.add_user("go")
        window.task.add_note("Remember the milk.", importance="critical")
        talk(window, 24)

        assert "note_taking" not in strategies(sink)
        assert "compaction" in strategies(sink)
        assert "Remember the milk." in sent_json(window)
    rejected = [event for event in sink.of(ContentCompressed) if event.strategy == "note_taking"]
    assert len(rejected) == 1
    assert rejected[0].reason.startswith("fidelity")


def test_insufficient_notes_stop_no_other_strategy() -> None:
    sink = RecordingSink()
    with manager(sink, cascade=["note_taking"]) as window:
        window.add_user("go")
        for n in range(40):
            window.task.add_note(f"Remember milk number {n}.")
            window.on_turn_start()
            window.on_turn_end(chat_reply(f"We decided plan_{n} because of reason_{n}. " + f"talk{n} " * 200))
        assert not window.status().breaker_open
    refused = [event for event in sink.of(ContentCompressed) if event.strategy == "note_taking"]
    assert len(refused) > 3
    assert {event.outcome for event in refused} == {"rejected"}
    assert sink.of(BreakerOpened) == []


def test_payloads_of_removed_content_are_discarded() -> None:
    sink = RecordingSink()
    with manager(sink) as window:
        window.add_user("go")
        results(window, 6, size=300, text=lambda n: f"found {n} matches in src/module_{n}/file_{n}.py " * 30)
        talk(window, 40)
        assert "compaction" in strategies(sink)
        inside = {block.id for block in window.blocks()}
        assert set(window._engine.payloads) <= inside
        assert set(window._engine.references.in_use(0)) <= inside


def test_notes_that_were_never_offered_are_not_found_wanting() -> None:
    sink = RecordingSink()
    asked: list[str] = []

    def callback(proposal: CompactionProposal) -> bool:
        asked.append(proposal.strategy)
        return len(asked) > 4

    with manager(sink) as window:
        window.before_compaction(callback)
        window.add_user("go")
        for n in range(24):
            window.task.add_note(
                f"We decided plan_{n} because of reason_{n}.", category="decisions", importance="high"
            )
        talk(window, 24)

    assert asked[:4] == ["note_taking", "note_taking", "note_taking", "compaction"]
    assert strategies(sink)[0] == "note_taking"


def test_notes_survive_in_a_file_that_people_can_read(tmp_path: Path) -> None:
    path = tmp_path / "agent_notes.md"
    store = FileNotes(path, redact=lambda text: text.replace("hunter2", "[redacted]"))
    sink = RecordingSink()
    with manager(sink, dependencies=replace(in_memory_dependencies(sink), notes=store)) as window:
        window.task.add_note("api.ts:42 fails", category="bugs", importance="critical")
        window.task.add_note("password hunter2")
        window.task.add_note("half way", category="task_progress")
    with manager(sink, dependencies=replace(in_memory_dependencies(sink), notes=store)) as window:
        assert "[critical] api.ts:42 fails" in window.task.notes
        assert "half way" in window.task.notes
    assert path.read_text().splitlines()[0] == "# Notes"
    assert "hunter2" not in path.read_text()


def test_a_subtask_is_delegated_if_it_is_large_enough() -> None:
    sink = RecordingSink()
    with manager(sink, subagent=lambda assignment: "found it " * 5_000) as window:
        back = window.delegate(Subtask("Find the leak.", expected_tool_calls=30))
        small = window.delegate(Subtask("What time is it?", expected_tool_calls=1))
    assert back is not None
    assert 0 < back.tokens <= 2_000
    assert small is None
    assert len(sink.of(SubagentDelegated)) == 1
    assert sink.of(SubagentReturned)[0].outcome == "truncated"

    def broken(assignment: str) -> str:
        raise RuntimeError("secret detail")

    with manager(RecordingSink(), subagent=broken) as window:
        failed = window.delegate(Subtask("Find the leak.", expected_tool_calls=30))
    assert failed is not None
    assert failed.text == ""
    with manager(RecordingSink()) as window:
        assert window.delegate(Subtask("Find the leak.", expected_tool_calls=30)) is None


def test_an_async_sub_agent_works_on_an_event_loop() -> None:
    async def subagent(assignment: str) -> str:
        await asyncio.sleep(0)
        return "done"

    async def run() -> Any:
        window = AsyncContextWindowManager(
            agent="a",
            model="m",
            limit_tokens=16_384,
            dependencies=in_memory_dependencies(RecordingSink()),
            subagent=subagent,
        )
        return await window.delegate(Subtask("Find the leak.", expected_tokens=60_000))

    assert asyncio.run(run()).text == "done"


# -- merging --------------------------------------------------------------------------------------------------


def alike(n: int) -> str:
    body = "\n".join(f"line {m} of the same listing, value_{m} = {m}" for m in range(110))
    return f"{body}\nonly_in_{n} = {n}"


def test_similar_results_are_merged_into_one() -> None:
    sink = RecordingSink()
    with manager(sink, policy="semantic_merge") as window:
        window.add_user("go")
        results(window, 14, text=alike)
        assert valid(window)
        merged = [event for event in sink.of(ContentCompressed) if event.strategy == "semantic_merge"]
        assert [event.outcome for event in merged][:1] == ["accepted"]
        assert "only_in_0 = 0" in sent_json(window)
        assert "merged into that of turn" in sent_json(window)
        assert sent_json(window).count("value_50 = 50") < 8
    assert merged[0].method == "extractive"
    assert (merged[0].ratio or 0) > 2


def test_a_model_may_write_the_merged_text_and_an_embedder_may_decide_similarity() -> None:
    sink = RecordingSink()
    facts = " ".join(f"value_{m} = {m}" for m in range(110))
    model = ScriptedModel([f"All listings: {facts}"])
    with manager(
        sink,
        policy="semantic_merge",
        dependencies=in_memory_dependencies(sink, model=model),
        embedder=lambda text: [1.0, 0.5],
    ) as window:
        window.add_user("go")
        results(window, 14, text=alike)
    merged = [event for event in sink.of(ContentCompressed) if event.strategy == "semantic_merge"]

    assert merged[0].method == "ScriptedModel"
    assert merged[0].model_calls == 1


# -- who is asked, and what waits -----------------------------------------------------------------------------


def test_a_compaction_can_be_vetoed_and_the_callback_receives_its_forecast() -> None:
    """While the callback objects nothing is compacted; content is still removed if the call would not fit."""
    sink = RecordingSink()
    proposals: list[CompactionProposal] = []
    with manager(sink) as window:

        def callback(proposal: CompactionProposal) -> bool:
            proposals.append(proposal)
            return len(proposals) > 3

        window.before_compaction(callback)
        talk(window, 40)
        assert valid(window)
    accepted = [event for event in sink.of(ContentCompressed) if event.outcome == "accepted"]

    assert len(proposals) > 3
    assert accepted
    assert proposals[0].tokens_before > proposals[0].tokens_after > 0
    assert accepted[0].tokens_after <= proposals[3].tokens_after + 1_000


def test_a_callback_that_fails_stops_nothing() -> None:
    sink = RecordingSink()

    def callback(proposal: CompactionProposal) -> bool:
        raise RuntimeError("broken")

    with manager(sink) as window:
        window.before_compaction(callback)
        talk(window, 24)
    assert "compaction" in strategies(sink)


def test_a_call_that_waits_for_approval_is_never_removed() -> None:
    sink = RecordingSink()
    with manager(sink) as window:
        window.add_user("deploy it")
        window.on_turn_start()
        window.on_turn_end(chat_reply(None, calls=[("deploy-1", "deploy", '{"target": "prod"}')]))
        window.pending.hold("deploy-1")
        talk(window, 40)

        assert strategies(sink)
        assert "deploy-1" in sent_json(window)
        assert "[pending: waits for approval]" in sent_json(window)
        assert valid(window)
        window.on_tool_result("deploy", "approved and deployed", "deploy-1")
        assert "approved and deployed" in sent_json(window)
        assert "[pending" not in sent_json(window)
        assert valid(window)
        talk(window, 40, first=40)
        assert "deploy-1" not in sent_json(window)
        assert valid(window)


def test_a_long_call_keeps_its_position_with_an_interim_result() -> None:
    sink = RecordingSink()
    with manager(sink) as window:
        window.add_user("train it")
        window.on_turn_start()
        window.on_turn_end(chat_reply(None, calls=[("t1", "train", "{}"), ("dead", "run", "{}")]))
        window.on_tool_result("train", "epoch 1", "t1", interim=True)
        window.on_tool_result("train", "epoch 2", "t1", interim=True)
        talk(window, 40)

        assert "epoch 2" in sent_json(window)
        assert "epoch 1" not in sent_json(window)
        window.on_tool_result("train", "loss 0.1", "t1")
        assert sent_json(window).count("loss 0.1") == 1
        assert "epoch 2" not in sent_json(window)
        assert valid(window)


def summed_up(answer: str, *, again: bool = True) -> tuple[ScriptedModel, list[ContentCompressed], str]:
    """Results of 4,000 and 1,500 tokens in a window that is too full, once or *again*: who was asked what."""
    sink, model = RecordingSink(), ScriptedModel([answer])
    dependencies = in_memory_dependencies(sink, model=model)
    with manager(sink, dependencies=dependencies, cascade=["tool_result_summarization"]) as window:
        window.add_user("go")
        for n, size in enumerate((4_000, 1_500, 1_500)):
            window.on_turn_start()
            window.on_turn_end(chat_reply(None, calls=[(f"c{n}", "run", "{}")]))
            window.on_tool_result("run", f"row_{n} " + "." * 4 * size, f"c{n}")
        window.on_turn_start()
        window.on_turn_end(chat_reply("." * 4 * 2_600))
        window.on_turn_start()
        if again:
            window.on_turn_end(chat_reply("." * 4 * 2_500))
            window.on_turn_start()
        window.flush()
        return model, sink.of(ContentCompressed), sent_json(window)


def test_a_model_summarizes_no_more_results_than_necessary() -> None:
    model, events, shown = summed_up("row_0 found", again=False)
    assert [event.outcome for event in events] == ["accepted"]
    assert ["row_0" in user for _, user in model.asked] == [True]
    assert "row_0 found" in shown
    assert "row_1 ..." in shown


def test_a_summarized_result_is_not_summarized_again() -> None:
    model, events, _ = summed_up("row_0 found " + "fact " * 2_000)
    assert [event.strategy for event in events] == ["tool_result_summarization"] * len(events)
    assert len(events) > 1
    assert sum("row_0" in user for _, user in model.asked) == 1


def test_a_summary_of_a_result_that_is_not_smaller_is_not_used() -> None:
    _, events, shown = summed_up("row_0 found " + "fact " * 4_000)
    assert events[0].outcome == "rejected"
    assert events[0].reason == "not smaller"
    assert "row_0 ..." in shown
    assert "fact" not in shown


def test_a_result_replaces_an_interim_one_that_was_shortened() -> None:
    """The placeholder of a running call may be cut if the call would not fit; it remains a placeholder."""
    sink = RecordingSink()
    with manager(sink) as window:
        window.add_user("train it")
        window.on_turn_start()
        window.on_turn_end(chat_reply(None, calls=[("t1", "train", "{}")]))
        window.on_tool_result("train", "INTERIM " + "epoch loss " * 2_500, "t1", interim=True)
        window.add_user("word " * 5_500)
        window.on_turn_start()
        window.on_turn_end(chat_reply("ok"))
        assert "truncation" in strategies(sink)
        window.on_tool_result("train", "FINAL loss 0.1", "t1")

        assert "FINAL loss 0.1" in sent_json(window)
        assert "INTERIM" not in sent_json(window)
        assert valid(window)


@pytest.mark.parametrize("kept", ["held", "protected"])
def test_a_model_summarizes_no_protected_result(kept: str) -> None:
    sink = RecordingSink()
    model = ScriptedModel(["a short finding"])
    control = EngineSettings(protected_types=frozenset({"tool_result"} if kept == "protected" else ()))
    dependencies = in_memory_dependencies(sink, model=model)
    with manager(
        sink, dependencies=dependencies, settings=control, cascade=["tool_result_summarization"]
    ) as window:
        window.add_user("train it")
        window.on_turn_start()
        window.on_turn_end(chat_reply(None, calls=[("t1", "train", "{}")]))
        window.on_tool_result("train", "INTERIM " + "epoch loss " * 1_200, "t1", interim=kept == "held")
        talk(window, 14)

    assert "tool_result_summarization" not in [event.strategy for event in sink.of(ContentCompressed)]


@pytest.mark.parametrize("chosen", [{}, {"cascade": ["eviction", "compaction", "subagent_delegation"]}])
def test_background_compaction_removes_only_the_content_it_covers(
    chosen: dict[str, Any],
) -> None:
    sink = RecordingSink()
    began, go_on = threading.Event(), threading.Event()
    asked: list[str] = []

    def model(system: str, user: str) -> str:
        asked.append(user)
        began.set()
        assert go_on.wait(30)
        return "## State and next steps\n- " + "; ".join(f"plan_{n} because of reason_{n}" for n in range(40))

    dependencies = replace(in_memory_dependencies(sink), model=model)
    window = manager(sink, dependencies=dependencies, subagent=report, background=True, **chosen)
    turns = 0
    while not began.wait(0.2 if (window.status().utilization or 0) > 0.55 else 0):
        assert turns < 60, "the window is full and nothing was begun"
        talk(window, 1, first=turns, size=120)
        turns += 1
    talk(window, 1, first=turns, size=20)
    window.add_user("LATE-ONE arrived meanwhile")
    window.add_memory("LATE-TWO arrived meanwhile")
    assert strategies(sink) == []

    go_on.set()
    assert window.settle()

    assert len(asked) == 1
    assert [(event.strategy, event.method) for event in accepted(sink)] == [("compaction", "function")]
    assert sent_json(window).count("LATE-ONE") == sent_json(window).count("LATE-TWO") == 1
    assert f"Question {turns}:" in sent_json(window)
    assert valid(window)
    window.close()


def test_a_call_that_may_not_fit_waits_for_its_compaction() -> None:
    sink = RecordingSink()
    with manager(sink, background=True) as window:
        for turn in range(60):
            if (window.status().utilization or 0) > 0.50:
                break
            talk(window, 1, first=turn, size=120)
        assert strategies(sink) == []
        window.add_user("A long one: " + "word " * 5_000)

        assert window.on_turn_start().action in ("compact", "roll")
        window.on_turn_end(chat_reply("ok"))
        assert "compaction" in strategies(sink)
        assert valid(window)


# -- budgets by component -------------------------------------------------------------------------------------


def test_an_enforced_component_is_reduced_by_itself() -> None:
    sink = RecordingSink()
    with manager(sink, limit=100_000, enforce="component") as window:
        window.add_user("go")
        results(window, 6, size=2_900)
        for n in range(6):
            window.add_memory(f"memory {n} " * 600)
        for _ in range(6):
            window.on_turn_start()
            window.on_turn_end(chat_reply("ok"))
            window.add_user("more")
        status = window.status()

        assert status.zone == "green"
        assert status.components["tool_results"].used_tokens <= 12_000
        assert status.components["memory_injection"].used_tokens <= 8_000
        assert valid(window)
    assert {event.policy for event in sink.of(BlocksEvicted)} == {"tool_results", "memory_injection"}
    assert all(event.action for event in sink.of(BudgetBlocked))


def test_a_component_that_cannot_be_reduced_is_not_tried_every_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts: list[int] = []
    lifetime = SCORERS["type_ttl"]

    def counted(items: Any, snapshot: Any) -> Any:
        attempts.append(snapshot.turn)
        return lifetime(items, snapshot)

    monkeypatch.setitem(SCORERS, "type_ttl", counted)
    with manager(
        RecordingSink(), limit=100_000, enforce="component", budget={"memory_injection": 0.01}
    ) as window:
        window.add_user("go")
        window.add_memory("memory " * 2_000, pinned=True)
        for turn in range(1, 11):
            if turn == 7:
                window.add_memory("more " * 400, pinned=True)
            window.on_turn_start()
            window.on_turn_end(chat_reply("ok"))
    assert sorted(set(attempts)) == [1, 5, 7]


# -- leaving things out ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "dependencies"),
    [
        (EngineSettings(policy=None), {}),
        (EngineSettings(summarizer=None), {}),
        (EngineSettings(evaluate=None), {}),
        (EngineSettings(), {"archive": None}),
        (EngineSettings(), {"checkpoints": None}),
        (EngineSettings(cascade=SAFETY_NET), {}),
        (EngineSettings(references=False), {}),
        (
            EngineSettings(policy=None, summarizer=None, evaluate=None, cascade=SAFETY_NET),
            {"archive": None, "checkpoints": None, "clock": None},
        ),
    ],
    ids=["policy", "summarizer", "evaluator", "archive", "checkpoints", "cascade", "references", "all"],
)
def test_any_subsystem_can_be_disabled_and_the_rest_works(
    settings: EngineSettings, dependencies: dict[str, Any]
) -> None:
    sink = RecordingSink()
    with engine_manager(sink, settings, **dependencies) as window:
        window.add_user("go")
        results(window, 12, size=1_200)
        talk(window, 20)
        window.task.complete("a step")
        assert valid(window)
        assert window.status().used_tokens <= 16_384
        assert bool(window.eviction_candidates()) is (settings.policy is not None)
    if settings.evaluate is None:
        assert sink.of(FidelityEvaluated) == []
    if settings.policy is None:
        assert sink.of(BlocksEvicted) == []


def test_a_user_s_summarizer_is_used() -> None:
    sink = RecordingSink()

    def mine(facts: Any, *, goal: str, **rest: Any) -> str:
        return f"## Goal\n{goal}\n## State and next steps\n- MINE"

    with engine_manager(sink, EngineSettings(summarizer=mine, policy=None)) as window:
        talk(window, 30)
        assert "MINE" in sent_json(window)


class FullArchive(MemoryArchive):
    """An archive on a disk without room."""

    def put(self, session_id: str, handle: str, text: str) -> None:
        raise OSError("no space left")


@pytest.mark.parametrize("archive", [MemoryArchive(), FullArchive()], ids=["kept", "not kept"])
def test_a_summary_names_an_original_only_if_it_is_archived(archive: MemoryArchive) -> None:
    sink = RecordingSink()
    kept = type(archive) is MemoryArchive
    with manager(sink, dependencies=replace(in_memory_dependencies(sink), archive=archive)) as window:
        window.add_user("Migrate the service.")
        window.on_turn_start()
        window.on_turn_end(chat_reply("We decided plan_x because of reason_x."))
        long = "LONG " + " ".join(f"detail_{n}" for n in range(900))
        window.add_user(long)
        window.on_turn_start()
        window.on_turn_end(chat_reply("ok"))
        window.add_user("Go on.")
        turns = 0
        while "compaction" not in strategies(sink):
            assert turns < 40
            window.on_turn_start()
            window.on_turn_end(
                chat_reply(f"We decided plan_{turns} because of reason_{turns}. " + f"talk{turns} " * 200)
            )
            window.flush()
            turns += 1
        handles = re.findall(r"wp:\w+", sent_json(window))

        assert bool(handles) is kept
        assert all(window.retrieve(handle) for handle in handles)
        shortened = [block for block in window.blocks() if (block.text or "").startswith("LONG")]
        assert [len(block.text or "") < len(long) for block in shortened] == [True]
        assert window.retrieve(shortened[0].handle or "") == (long if kept else None)


def test_a_failing_summarizer_does_not_stop_a_task_from_ending() -> None:
    sink = RecordingSink()

    def broken(facts: Any, **rest: Any) -> str:
        raise RuntimeError("broken")

    with engine_manager(sink, EngineSettings(summarizer=broken)) as window:
        talk(window, 3)
        completion = window.complete()

    assert "plan_1 because of reason_1" in completion.summary
    assert completion.report is not None
    assert len(sink.of(SessionEnded)) == 1


def test_every_step_has_a_name_and_can_be_omitted() -> None:
    for name in STEPS:
        with manager(RecordingSink(), cascade=[name]) as window:
            talk(window, 12)
            assert valid(window)
