"""Goal, constraints and success criteria are in every call word for word, from the first one on, and once."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import filler, is_valid, manager, talk

from windowpane.agents.managers import ContextWindowManager
from windowpane.core.events import ContentCompressed, WindowRolled
from windowpane.manager.files.checkpoints import FileCheckpoints
from windowpane.manager.messages import OPENING
from windowpane.testing import RecordingSink, chat_reply, in_memory_dependencies

TASK: dict[str, Any] = {
    "task_goal": 'Migrate "user-service"\nfrom axios to fetch.',
    "constraints": ["never touch config.ts"],
    "success_criteria": ["npm test passes"],
}
STATED = (
    '## Goal\nMigrate "user-service"\nfrom axios to fetch.\n- never touch config.ts\n- Success: npm test passes'
)


def texts(window: ContextWindowManager) -> list[str]:
    """Return the texts of what is sent to Anthropic, in order."""
    shown = []
    for message in window.messages("anthropic").messages:
        content = message["content"]
        shown += [content] if isinstance(content, str) else [str(part.get("text", "")) for part in content]
    return shown


@pytest.mark.parametrize("preset", [None, "cascade", "baseagent", "picoclaw", "ai_sdk_go"])
def test_the_task_is_in_every_call_once_at_the_same_position(preset: str | None) -> None:
    """The first bytes of every call stay the same, so that the provider's cache retains them."""
    sink = RecordingSink()
    options = {} if preset is None else {"preset": preset}
    heads = set()
    with manager(sink, limit=16_384, **TASK, **options) as window:
        window.add_system("You are careful.")
        window.add_user("Go.")
        for n in range(50):
            window.on_turn_start()
            sent = window.messages()
            heads.add(json.dumps(sent[:2]))
            assert [message["content"] for message in sent].count(STATED) == 1
            assert texts(window).count(STATED) == 1
            assert json.dumps(sent).count("from axios to fetch") == 1
            assert is_valid(window)
            window.on_turn_end(chat_reply(f"step {n}", calls=[(f"c{n}", "run", "{}")]))
            window.on_tool_result("run", filler(900, tag=f"r{n}x"), f"c{n}")
            if n % 8 == 7:
                window.add_user(f"And now {n}.")
    assert len(heads) == 1
    assert sink.of(ContentCompressed) or any(event.type == "blocks.evicted" for event in sink.events)


def test_constraints_are_sent_without_a_goal_too() -> None:
    with manager(RecordingSink(), constraints=["never touch x"]) as window:
        window.add_memory("a memory")
        window.add_user("Port it.")
        window.on_turn_start()

        assert [message["content"] for message in window.messages()] == [
            "a memory", "## Goal\n- never touch x", "Port it.",
        ]  # fmt: skip
        assert {block.exchange for block in window.blocks() if block.content_type == "user_message"} == {1}


def test_a_task_without_a_user_message_is_a_valid_call() -> None:
    with manager(RecordingSink(), **TASK) as window:
        window.add_system("You are careful.")
        window.on_turn_start()

        assert texts(window) == [STATED]
        assert [message["role"] for message in window.messages()] == ["system", "user"]
    with manager(RecordingSink()) as window:
        window.add_system("You are careful.")

        assert texts(window) == [OPENING]
    with manager(RecordingSink(), **TASK) as window:
        window.add_messages([{"role": "assistant", "content": "Hello, what shall I do?"}])

        assert texts(window) == [STATED, "Hello, what shall I do?"]


def test_the_task_outlasts_new_windows_and_sessions(tmp_path: Path) -> None:
    sink = RecordingSink()
    dependencies = replace(in_memory_dependencies(sink), checkpoints=FileCheckpoints(tmp_path, redact=str))
    options: dict[str, Any] = {
        "limit": 32_768,
        "dependencies": dependencies,
        "task_id": "task",
        "cascade": ["roll"],
    }
    with manager(sink, **options, **TASK) as window:
        window.add_user("Go.")
        for n in range(60):
            talk(window, f"And now {n}.", filler(800, tag=f"a{n}x"))
        assert sink.of(WindowRolled)
        assert texts(window).count(STATED) == 1
    with manager(sink, **options) as window:
        window.add_user("Go on.")
        assert window.task.resumed is not None
        assert texts(window).count(STATED) == 1
        assert json.dumps(window.messages()).count("from axios to fetch") == 1
        window.clear()
        assert texts(window) == [STATED]
