"""What a manager can be told when it is made, beside who it is for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypedDict

from windowpane.contrib.presets import Preset
from windowpane.core.limits import Thresholds
from windowpane.core.protocols import Embedder
from windowpane.core.vocabulary import Component
from windowpane.exceptions import ConfigurationError
from windowpane.fidelity.judge.sampling import SampledJudge
from windowpane.manager.dependencies import Dependencies
from windowpane.manager.plans.policies import Policy
from windowpane.manager.settings import EngineSettings
from windowpane.manager.steps.cascade import Step

MINIMUM_LIMIT_TOKENS: Final = 256
"""A window smaller than this cannot hold a placeholder and a question."""


class ManagerOptions(TypedDict, total=False):
    """What a manager can be told; `Options` says what each means and its default."""

    task_goal: str
    constraints: Sequence[str]
    success_criteria: Sequence[str]
    task_id: str | None
    resume: bool
    paths: Sequence[str]
    limit_tokens: int | None
    requested_output_tokens: int
    thresholds: Thresholds | None
    preset: str | Preset | None
    policy: str | Policy | None
    control: EngineSettings | None
    weights: Mapping[str, float] | None
    budget: Mapping[Component, float] | str | None
    enforce: Literal["global", "component"] | None
    session_id: str | None
    parent_session_id: str | None
    source: str
    background: bool | None
    cascade: Sequence[str | Step] | None
    language_model: Callable[[str, str], Any] | None
    subagent: Callable[[str], Any] | None
    embedder: Embedder | None
    judge: SampledJudge | None
    data_folder: str | Path | None
    dependencies: Dependencies | None


@dataclass(frozen=True, slots=True)
class Options:
    """What a manager is told, beside who it is for; None takes the default."""

    task_goal: str = ""
    constraints: Sequence[str] = ()
    success_criteria: Sequence[str] = ()
    task_id: str | None = None
    """A name under which another session can go on with the task; its checkpoints are kept under it."""
    resume: bool = True
    """Whether a task with an id goes on from its newest checkpoint, where there is one, or begins anew."""
    paths: Sequence[str] = ()
    """Files the task depends on; what changed of them is told when it is resumed."""
    limit_tokens: int | None = None
    requested_output_tokens: int = 0
    thresholds: Thresholds | None = None
    preset: str | Preset | None = None
    """Another system's numbers, order and words; what is said beside it stands, or is refused where the source
    leaves no choice."""
    policy: str | Policy | None = None
    control: EngineSettings | None = None
    """How the session is managed, for what no other option says: a summarizer, an evaluator or a cascade of your
    own, or None for one of them. Without a preset."""
    weights: Mapping[str, float] | None = None
    budget: Mapping[Component, float] | str | None = None
    """Shares by component, or a profile by name: default, code_review, research, customer_support. A preset has
    a default of its own."""
    enforce: Literal["global", "component"] | None = None
    """Whether components are only tracked, or each kept within its budget by itself."""
    session_id: str | None = None
    parent_session_id: str | None = None
    source: str = "live"
    background: bool | None = None
    """Whether the conversation is compacted after a turn, off the agent's path, before a call waits for it."""
    cascade: Sequence[str | Step] | None = None
    """The steps that are run, in order, by name or your own; see `windowpane.manager.steps.cascade`. What makes
    a call possible that otherwise is not comes after them in any case."""
    language_model: Callable[[str, str], Any] | None = None
    subagent: Callable[[str], Any] | None = None
    """A sub-agent `(assignment) -> result`, sync or async, that works in a window of its own."""
    embedder: Embedder | None = None
    """Tells what is alike, for merging; without one word shingles do."""
    judge: SampledJudge | None = None
    """Asks a model about a sample of the compressions; one for all managers of a process."""
    data_folder: str | Path | None = None
    """Where the archive, checkpoints and notes are kept; by default the user's."""
    dependencies: Dependencies | None = None


def options_of(given: ManagerOptions) -> Options:
    """The options as given. Raises `ConfigurationError` for one that does not exist or is out of range."""
    known = Options.__slots__
    for name in given:
        if name not in known:
            raise ConfigurationError(name, "there is no such option", expected=f"one of {', '.join(known)}")
    options = Options(**given)
    _check_kinds(options)
    limit = options.limit_tokens
    if limit is not None and (not _is_count(limit) or limit < MINIMUM_LIMIT_TOKENS):
        problem = f"{limit!r} is no window size"
        raise ConfigurationError("limit_tokens", problem, expected=f">= {MINIMUM_LIMIT_TOKENS}")
    if not _is_count(options.requested_output_tokens):
        problem = f"{options.requested_output_tokens!r} is no number of tokens"
        raise ConfigurationError("requested_output_tokens", problem, expected="0 or more")
    if options.enforce not in (None, "global", "component"):
        raise ConfigurationError("enforce", f"{options.enforce!r}", expected="global or component")
    if options.control is not None and options.preset is not None:
        raise ConfigurationError("control", "a preset brings settings of its own", expected="one of the two")
    if isinstance(options.policy, Policy) and options.weights is not None:
        raise ConfigurationError("weights", "the policy has weights of its own", expected="one of the two")
    return options


_KINDS: Final[dict[str, tuple[tuple[type, ...], str]]] = {
    "task_goal": ((str,), "a text"),
    "task_id": ((str,), "a name"),
    "session_id": ((str,), "a name"),
    "parent_session_id": ((str,), "a name"),
    "source": ((str,), "a name"),
    "thresholds": ((Thresholds,), "a Thresholds"),
    "preset": ((str, Preset), "a preset's name, or a Preset"),
    "policy": ((str, Policy), "a policy's name, or a Policy"),
    "control": ((EngineSettings,), "an EngineSettings"),
    "weights": ((Mapping,), "weights by term"),
    "budget": ((str, Mapping), "a profile's name, or shares by component"),
    "judge": ((SampledJudge,), "a SampledJudge"),
    "data_folder": ((str, Path), "a folder"),
    "dependencies": ((Dependencies,), "a Dependencies"),
}
"""What options have to be, and how that is said; None is always the default."""
_LISTS: Final = ("constraints", "success_criteria", "paths", "cascade")
_CALLABLES: Final = ("language_model", "subagent", "embedder")


def _check_kinds(options: Options) -> None:
    """A value of the wrong kind is named here, before anything is made of it."""
    for name, (kinds, expected) in _KINDS.items():
        value = getattr(options, name)
        if value is not None and not isinstance(value, kinds):
            raise ConfigurationError(name, f"a {type(value).__name__}", expected=expected)
    for name in _LISTS:
        value = getattr(options, name)
        if value is not None and (isinstance(value, str) or not isinstance(value, Sequence)):
            raise ConfigurationError(name, f"a {type(value).__name__}", expected="a list")
    for name in _CALLABLES:
        value = getattr(options, name)
        if value is not None and not callable(value):
            raise ConfigurationError(name, f"a {type(value).__name__} cannot be called", expected="a function")


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
