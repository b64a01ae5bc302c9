"""The fidelity of a compaction is measured after the hook that made it, off the agent's path."""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from dataclasses import replace

import pytest

from windowpane import ContextWindowManager, EngineSettings
from windowpane.core.events import ContentCompressed, FidelityEvaluated
from windowpane.core.vocabulary import ContentType
from windowpane.core.window.blocks import Block
from windowpane.effects.background_writer import BackgroundWriter
from windowpane.fidelity import probe
from windowpane.fidelity.facts import names_kept
from windowpane.manager.plans import acceptance
from windowpane.manager.plans.acceptance import MODEL_FIDELITY_FLOOR, SAMPLE_CHARACTERS, sample, sampled_fidelity
from windowpane.testing import RecordingSink, ScriptedModel, chat_reply, in_memory_dependencies

PATIENCE_SECONDS = 30.0


def compacted(sink: RecordingSink, evaluate: object) -> ContextWindowManager:
    """Return a manager whose first hook has compacted the conversation."""
    dependencies = replace(in_memory_dependencies(sink), evaluations=BackgroundWriter())
    settings = EngineSettings(evaluate=evaluate, policy=None)  # type: ignore[arg-type]
    window = ContextWindowManager(
        agent="agent", model="none", limit_tokens=10_000, dependencies=dependencies, settings=settings
    )
    for n in range(24):
        window.add_user(f"Read src/module_{n}.py and keep limit: {n}. " + "word " * 350)
        window.on_turn_end(chat_reply(f"I read src/module_{n}.py."))
    window.on_turn_start()
    return window


def test_a_hook_returns_before_its_compaction_is_evaluated() -> None:
    may_end = threading.Event()

    def slow(*args: object, **options: object) -> FidelityEvaluated:
        assert may_end.wait(PATIENCE_SECONDS)
        return probe.evaluate(*args, **options)  # type: ignore[arg-type]

    sink = RecordingSink()
    with compacted(sink, slow) as window:
        window.add_user("next")
        window.flush()
        assert sink.of(ContentCompressed)
        assert not sink.of(FidelityEvaluated)
        may_end.set()
        assert window.settle(PATIENCE_SECONDS)
        compressions = [event for event in sink.events if isinstance(event.data, ContentCompressed)]
        assert [one.of for one in sink.of(FidelityEvaluated)] == [event.event_id for event in compressions]


def test_closing_a_session_records_the_fidelity_of_its_last_compaction() -> None:
    sink = RecordingSink()
    compacted(sink, probe.evaluate).close()

    kinds = [event.type for event in sink.events]
    assert "fidelity.evaluated" in kinds
    assert kinds.index("fidelity.evaluated") < kinds.index("session.ended")


def test_the_acceptance_check_of_a_models_summary_does_not_hold_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool that ends on another thread meanwhile is recorded at once."""
    sink = RecordingSink()
    waited: list[bool] = []

    def slow(removed: Sequence[Block], visible: Sequence[Block]) -> float | None:
        if threading.current_thread() is hook_thread:
            other = threading.Thread(target=window.add_user, args=("meanwhile",), daemon=True)
            other.start()
            other.join(PATIENCE_SECONDS / 10)
            waited.append(other.is_alive())
        return names_kept(removed, visible)

    monkeypatch.setattr(acceptance, "names_kept", slow)

    hook_thread = threading.current_thread()
    model = ScriptedModel(["## Decisions and reasons\n- Read every module and keep the limits."])
    dependencies = replace(in_memory_dependencies(sink), evaluations=BackgroundWriter(), model=model)
    settings = EngineSettings(policy=None)
    with ContextWindowManager(
        agent="agent", model="none", limit_tokens=10_000, dependencies=dependencies, settings=settings
    ) as window:
        for n in range(24):
            window.add_user(f"Read src/module_{n}.py and keep limit: {n}. " + "word " * 350)
            window.on_turn_end(chat_reply(f"I read src/module_{n}.py."))
        window.on_turn_start()

    assert model.asked
    assert waited
    assert not any(waited)


def test_an_evaluator_that_fails_harms_nothing() -> None:
    def broken(*_args: object, **_options: object) -> FidelityEvaluated:
        raise ZeroDivisionError

    sink = RecordingSink()
    compacted(sink, broken).close()

    assert sink.of(ContentCompressed)
    assert not sink.of(FidelityEvaluated)


def repetitive_lines(count: int, *, kind: ContentType, number: int) -> Block:
    chance = random.Random(number)
    words = ["alpha", "bravo", "charlie", "delta", "foxtrot", "golf", "hotel", "india", "juliet", "kilo", "lima"]
    text = "\n".join(" ".join(chance.choices(words, k=8)).capitalize() + "." for _ in range(count))
    return Block(f"b{number}", kind, len(text) // 4, 1, f"b{number}", 1, str(number), len(text), "estimate", text)


def test_the_acceptance_check_reads_a_bounded_part_of_a_long_conversation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It decides while the agent waits; the fidelity of the whole is measured afterwards."""
    read: dict[str, list[int]] = {"hook": [], "after": []}

    def checked(removed: Sequence[Block], visible: Sequence[Block]) -> float | None:
        read["hook"].append(sum(len(block.text or "") for block in removed))
        return names_kept(removed, visible)

    def counted(removed: Sequence[Block], visible: Sequence[Block], **options: object) -> FidelityEvaluated:
        read["after"].append(sum(len(block.text or "") for block in removed))
        return probe.evaluate(removed, visible, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(acceptance, "names_kept", checked)

    sink = RecordingSink()
    model = ScriptedModel(["## Decisions and reasons\n- Read src/module_1.py and keep limit: 1, word by word."])
    dependencies = replace(in_memory_dependencies(sink), evaluations=BackgroundWriter(), model=model)
    settings = EngineSettings(evaluate=counted, policy=None)
    with ContextWindowManager(
        agent="agent", model="none", limit_tokens=40_000, dependencies=dependencies, settings=settings
    ) as window:
        for n in range(28):
            window.add_user(f"Read src/module_{n}.py and keep limit: {n}. " + "word " * 1_200)
            window.on_turn_end(chat_reply(f"I read src/module_{n}.py."))
        window.on_turn_start()

    assert sink.of(ContentCompressed)
    assert 0 < max(read["hook"]) <= SAMPLE_CHARACTERS
    assert max(read["after"]) > 2 * SAMPLE_CHARACTERS


def test_a_sample_is_the_newest_content_and_half_of_it_is_written() -> None:
    blocks = [
        repetitive_lines(40, kind="tool_result" if n % 2 else "assistant_response", number=n) for n in range(40)
    ]
    sampled = sample(blocks, characters=16_000)

    written = sum(len(block.text or "") for block in sampled if block.content_type == "assistant_response")
    assert 7_000 < written <= 8_000
    assert 14_000 < sum(len(block.text or "") for block in sampled) <= 16_000
    assert [block.id for block in sampled] == [block.id for block in blocks[-len(sampled) :]]
    assert sample(blocks, characters=1_000_000) == tuple(blocks)


def test_a_sample_of_one_long_block_reaches_to_its_end() -> None:
    long = repetitive_lines(1_000, kind="tool_result", number=1)
    lines = (long.text or "").split("\n")
    (sampled,) = sample([long], characters=10_000)

    chosen = (sampled.text or "").split("\n")
    assert 7_000 < len(sampled.text or "") <= 10_000
    assert lines.index(chosen[-2]) > 900
    assert sampled.tokens < long.tokens / 4


def test_a_large_block_without_text_does_not_switch_the_acceptance_check_off() -> None:
    """A sample is small beside an image or a system prompt whose text is not recorded."""
    texts = [repetitive_lines(400, kind="assistant_response", number=n) for n in range(20)]
    tokens = sum(block.tokens for block in texts)
    image = replace(texts[0], id="image", text=None, tokens=tokens // 3)
    summary = replace(texts[0], content_type="summary", text="The weather in src/paris.py was fine.")

    fidelity = sampled_fidelity([image, *texts], summary)
    assert fidelity is not None
    assert fidelity < MODEL_FIDELITY_FLOOR
    assert sampled_fidelity([replace(image, tokens=2 * tokens), *texts], summary) is None
