"""The options of a manager that the configuration and a preset can set too, and the checks of all options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from windowpane.contrib.presets import Preset
from windowpane.core.limits import MAXIMUM_TOKENS, Thresholds
from windowpane.core.names import check_name
from windowpane.core.protocols import Embedder
from windowpane.core.vocabulary import Component
from windowpane.exceptions import ConfigurationError
from windowpane.fidelity.judge.sampling import SampledJudge
from windowpane.manager.dependencies import Dependencies
from windowpane.manager.plans.policies import Policy
from windowpane.manager.settings import EngineSettings
from windowpane.manager.steps.cascade import EngineStep

MINIMUM_LIMIT_TOKENS: Final = 256
"""A window smaller than this cannot hold a placeholder and a question."""


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """The arguments of a manager that decide how its window is managed; None takes the default."""

    limit_tokens: int | None = None
    requested_output_tokens: int = 0
    thresholds: Thresholds | None = None
    preset: str | Preset | None = None
    settings: EngineSettings | None = None
    policy: str | Policy | None = None
    weights: Mapping[str, float] | None = None
    budget: Mapping[Component, float] | str | None = None
    enforce: Literal["global", "component"] | None = None
    background: bool | None = None
    cascade: Sequence[str | EngineStep] | None = None
    embedder: Embedder | None = None


_KINDS: Final[dict[str, tuple[tuple[type, ...], str]]] = {
    "task_goal": ((str,), "a text"),
    "task_id": ((str,), "a name"),
    "session_id": ((str,), "a name"),
    "parent_session_id": ((str,), "a name"),
    "source": ((str,), "a name"),
    "title": ((str,), "a text"),
    "label": ((str,), "a text"),
    "project": ((str,), "a name"),
    "thresholds": ((Thresholds,), "a Thresholds"),
    "preset": ((str, Preset), "a preset's name, or a Preset"),
    "policy": ((str, Policy), "a policy's name, or a Policy"),
    "settings": ((EngineSettings,), "an EngineSettings"),
    "weights": ((Mapping,), "weights by term"),
    "budget": ((str, Mapping), "a profile's name, or shares by component"),
    "judge": ((SampledJudge,), "a SampledJudge"),
    "data_folder": ((str, Path), "a folder"),
    "dependencies": ((Dependencies,), "a Dependencies"),
}
"""The types of an option, and their description in an error; None is always the default."""
_LISTS: Final = ("constraints", "success_criteria", "paths", "cascade")
_CALLABLES: Final = ("language_model", "subagent", "embedder")


def check_options(options: Mapping[str, object]) -> None:
    """Raise `ConfigurationError` if an option is of the wrong type, out of range or contradictory."""
    for name in ("agent", "model"):
        check_name(name, options[name])
    _check_types(options)
    limit = options["limit_tokens"]
    if limit is not None and (not _is_count(limit) or not MINIMUM_LIMIT_TOKENS <= limit <= MAXIMUM_TOKENS):  # type: ignore[operator]
        problem = f"{limit!r} is not a window size"
        raise ConfigurationError("limit_tokens", problem, expected=f"{MINIMUM_LIMIT_TOKENS} to {MAXIMUM_TOKENS}")
    output = options["requested_output_tokens"]
    if not _is_count(output):
        problem = f"{output!r} is not a number of tokens"
        raise ConfigurationError("requested_output_tokens", problem, expected="0 or more")
    if options["enforce"] not in (None, "global", "component"):
        raise ConfigurationError("enforce", f"{options['enforce']!r}", expected="global or component")
    if options["settings"] is not None and options["preset"] is not None:
        raise ConfigurationError("settings", "a preset brings its settings", expected="one of the two")
    if isinstance(options["policy"], Policy) and options["weights"] is not None:
        raise ConfigurationError("weights", "the policy brings its weights", expected="one of the two")


def _check_types(options: Mapping[str, object]) -> None:
    for name, (kinds, expected) in _KINDS.items():
        value = options[name]
        if value is not None and not isinstance(value, kinds):
            raise ConfigurationError(name, f"a {type(value).__name__}", expected=expected)
    for name in _LISTS:
        value = options[name]
        if value is not None and (isinstance(value, str) or not isinstance(value, Sequence)):
            raise ConfigurationError(name, f"a {type(value).__name__}", expected="a list")
    for name in _CALLABLES:
        value = options[name]
        if value is not None and not callable(value):
            raise ConfigurationError(name, f"a {type(value).__name__} cannot be called", expected="a function")


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
