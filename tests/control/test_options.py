"""What a manager can be told when it is made."""

from __future__ import annotations

from dataclasses import fields

import pytest

from windowpane.exceptions import ConfigurationError
from windowpane.manager.session import Dependencies
from windowpane.runtime.managers import ContextWindowManager
from windowpane.runtime.options import ManagerOptions, Options
from windowpane.testing import RecordingSink, in_memory_dependencies


def dependencies() -> Dependencies:
    return in_memory_dependencies(RecordingSink())


def test_the_types_that_editors_see_are_those_of_the_options() -> None:
    """Every option can be completed, none that does not exist."""
    assert list(ManagerOptions.__annotations__) == [field.name for field in fields(Options)]
    seen = {name: hint.__forward_arg__ for name, hint in ManagerOptions.__annotations__.items()}
    assert seen == Options.__annotations__


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"polcy": "lru"}, "polcy"),
        ({"policy": "newest"}, "eviction.policy"),
        ({"limit_tokens": 3}, "limit_tokens"),
        ({"limit_tokens": True}, "limit_tokens"),
        ({"limit_tokens": 10_000.5}, "limit_tokens"),
        ({"requested_output_tokens": -1}, "requested_output_tokens"),
        ({"requested_output_tokens": "many"}, "requested_output_tokens"),
        ({"task_goal": 5}, "task_goal"),
        ({"constraints": "never touch config.ts"}, "constraints"),
        ({"success_criteria": "all pass"}, "success_criteria"),
        ({"paths": "api.ts"}, "paths"),
        ({"cascade": "compaction"}, "cascade"),
        ({"cascade": ["compactoin"]}, "cascade"),
        ({"thresholds": (0.5, 0.75, 0.9)}, "thresholds"),
        ({"preset": 3}, "preset"),
        ({"policy": 3}, "policy"),
        ({"budget": {"tool_results": 1.5}}, "budget.tool_results"),
        ({"budget": {"tools": 0.5}}, "budget.tools"),
        ({"budget": {"tool_results": 0.6, "message_history": 0.6}}, "budget"),
        ({"budget": "cooking"}, "budget.profile"),
        ({"budget": 0.5}, "budget"),
        ({"weights": {"recency": -1}}, "eviction.weights.recency"),
        ({"weights": [1]}, "weights"),
        ({"enforce": "both"}, "enforce"),
        ({"language_model": "gpt-5"}, "language_model"),
        ({"subagent": 3}, "subagent"),
        ({"embedder": 3}, "embedder"),
        ({"judge": print}, "judge"),
        ({"control": {}}, "control"),
        ({"data_folder": 3}, "data_folder"),
    ],
)
def test_an_option_that_is_wrong_is_named(options: dict[str, object], key: str) -> None:
    """A typo or a value out of range is an error with its key, never ignored."""
    with pytest.raises(ConfigurationError) as error:
        ContextWindowManager(
            agent="a", model="m", **{"limit_tokens": 9_000, "dependencies": dependencies()} | options
        )  # type: ignore[typeddict-item]

    assert error.value.path == key
