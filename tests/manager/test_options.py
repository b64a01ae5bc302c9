"""Options of a manager: signature, documentation, and errors that name the option."""

from __future__ import annotations

import inspect
import re

import pytest

from windowpane.agents.managers import AsyncContextWindowManager, ContextWindowManager
from windowpane.exceptions import ConfigurationError
from windowpane.manager.dependencies import Dependencies
from windowpane.testing import RecordingSink, in_memory_dependencies


def dependencies() -> Dependencies:
    return in_memory_dependencies(RecordingSink())


def test_editors_see_every_option_with_its_default() -> None:
    for kind in (ContextWindowManager, AsyncContextWindowManager):
        parameters = inspect.signature(kind).parameters
        required = [
            name for name, parameter in parameters.items() if parameter.default is inspect.Parameter.empty
        ]

        assert required == ["agent", "model"]
        assert {parameter.kind for parameter in parameters.values()} == {inspect.Parameter.KEYWORD_ONLY}


def test_every_option_is_documented() -> None:
    names = set(inspect.signature(ContextWindowManager).parameters)

    assert names <= set(re.findall(r"[a-z_]+", ContextWindowManager.__init__.__doc__ or ""))


def test_an_option_that_does_not_exist_is_refused() -> None:
    with pytest.raises(TypeError, match="polcy"):
        ContextWindowManager(agent="a", model="m", polcy="lru")  # type: ignore[call-arg]  # the typo


@pytest.mark.parametrize(
    ("options", "key"),
    [
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
        ({"agent": 7}, "agent"),
        ({"agent": ""}, "agent"),
        ({"model": None}, "model"),
        ({"embedder": 3}, "embedder"),
        ({"judge": print}, "judge"),
        ({"settings": {}}, "settings"),
        ({"data_folder": 3}, "data_folder"),
    ],
)
def test_an_option_that_is_wrong_is_named(options: dict[str, object], key: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        ContextWindowManager(
            **{"agent": "a", "model": "m", "limit_tokens": 9_000, "dependencies": dependencies()} | options
        )  # type: ignore[arg-type]

    assert error.value.path == key
