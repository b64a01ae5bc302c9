"""A task's id has the name of what the agent started the task for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from windowpane.report.task_names import named_target
from windowpane.store.reads.project_reader import EventReader


def store(arguments: str | None) -> EventReader:
    """A session in which content of turns 8, 13 and 66 holds an id; a call with *arguments* led to the first."""
    held = [
        SimpleNamespace(content_type=kind, turn=turn, block_id=f"b{turn}")
        for turn, kind in ((66, "thinking"), (13, "tool_result"), (8, "tool_result"))
    ]
    lives = {"b8": SimpleNamespace(called_by=SimpleNamespace(digest="d7"))}
    return cast(
        "EventReader",
        SimpleNamespace(
            find_content=lambda _query: SimpleNamespace(hits=[SimpleNamespace(occurrences=held)]),
            block_life=lambda _session, block_id: lives[block_id],
            content=lambda _digest: arguments,
        ),
    )


@pytest.mark.parametrize(
    ("arguments", "name"),
    [('{"description": "Security review", "prompt": "…"}', "Security review"), ("[1]", None), (None, None)],
)
def test_an_id_is_named_by_the_call_that_started_its_task(arguments: str | None, name: str | None) -> None:
    assert named_target(store(arguments), "s", "aa176f6") == name


@pytest.mark.parametrize("target", [None, "src/app.py", "git commit", "facade", "ab12"])
def test_all_other_targets_name_themselves(target: str | None) -> None:
    unread: Any = SimpleNamespace()

    assert named_target(unread, "s", target) == target
