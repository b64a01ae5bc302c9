"""Progressive summarization in a managed session: content shortens with age, and everything stays valid."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from message_rules import anthropic_faults, openai_faults

from windowpane.core.events import BlocksEvicted, ContentCompressed, FidelityEvaluated
from windowpane.core.limits import WindowLimits
from windowpane.core.tracking import SessionInfo
from windowpane.manager.drivers import BlockingWindow
from windowpane.manager.session import ManagedSession
from windowpane.manager.settings import EngineSettings
from windowpane.testing import MemoryArchive, RecordingSink, ScriptedModel, chat_reply, in_memory_dependencies

DEFAULT_CASCADE = (
    "progressive_summarization",
    "eviction",
    "compaction",
    "roll",
    "hard_eviction",
    "truncation",
    "last_eviction",
)


def manager(sink: RecordingSink, *, archive: MemoryArchive | None = None, **dependencies: Any) -> BlockingWindow:
    made = replace(in_memory_dependencies(sink), archive=archive or MemoryArchive(), **dependencies)
    return BlockingWindow(
        ManagedSession(
            SessionInfo("s", "a", "m", "live", "s/1"),
            dependencies=made,
            limits=WindowLimits.of(16_384, "given"),
            settings=EngineSettings(cascade=DEFAULT_CASCADE),
        )
    )


def turn(window: BlockingWindow, n: int) -> None:
    window.on_turn_start()
    text = f"Decided on plan_{n} because reason_{n} holds. " + f"thought{n} " * 40
    window.on_turn_end(chat_reply(text, calls=[(f"c{n}", "read_file", json.dumps({"path": f"src/f{n}.py"}))]))
    window.on_tool_result("read_file", f"ValueError: bad input {n}\n" + f"line of f{n} " * 220, f"c{n}")


def aged(sink: RecordingSink) -> list[ContentCompressed]:
    return [found for found in sink.of(ContentCompressed) if found.strategy == "progressive_summarization"]


def test_old_content_is_shortened_and_messages_stay_valid() -> None:
    sink = RecordingSink()
    with manager(sink) as window:
        window.add_user("Review all files.")
        for n in range(25):
            turn(window, n)
            assert openai_faults(window.messages()) == []
            assert anthropic_faults(window.messages("anthropic").messages) == []

    assert len(aged(sink)) > 10
    assert all(found.tokens_after < found.tokens_before for found in aged(sink))
    probed = {found.of for found in sink.of(FidelityEvaluated)}
    assert {event.event_id for event in sink.events if event.data in aged(sink)} <= probed


def test_a_block_passes_through_the_levels() -> None:
    sink, archive = RecordingSink(), MemoryArchive()
    with manager(sink, archive=archive) as window:
        window.add_user("Review all files.")
        for n in range(40):
            turn(window, n)
        texts = [block.text or "" for block in window.blocks()]

    assert any(text.startswith(("[one line]", "[title]")) for text in texts)
    assert any("ValueError: bad input" in text for text in archive.texts.values())


@pytest.mark.parametrize("answer", ["ValueError in f.py", ConnectionError("no route"), "far too long " * 400])
def test_a_model_may_write_the_shorter_form(answer: str | Exception) -> None:
    """Its text is used if it fits the level, otherwise the extractive one, and the session continues."""
    sink = RecordingSink()
    model = ScriptedModel([answer])
    with manager(sink, model=model) as window:
        window.add_user("Review all files.")
        for n in range(20):
            turn(window, n)

    methods = {found.method for found in aged(sink)}
    assert model.asked
    assert ("ScriptedModel" in methods) == (answer == "ValueError in f.py")
    assert "extractive" in methods


def test_the_default_cascade_does_not_shorten_by_age() -> None:
    assert "progressive_summarization" not in EngineSettings().cascade
    sink = RecordingSink()
    session = ManagedSession(
        SessionInfo("s", "a", "m", "live", "s/1"),
        dependencies=in_memory_dependencies(sink),
        limits=WindowLimits.of(16_384, "given"),
    )
    with BlockingWindow(session) as window:
        window.add_user("Review all files.")
        for n in range(20):
            turn(window, n)

    assert aged(sink) == []
    assert sink.of(BlocksEvicted)
