"""The options of a manager, and the engine settings that they, the configuration and a preset give together.

An argument wins over the configuration, and both win over the preset. A setting that the preset's source fixes
cannot be combined with it: that is an error with the key and the reason.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Union, get_args, get_origin

from windowpane.config.loading import COMPACT_RATIO, preset_conflicts
from windowpane.config.section import is_set
from windowpane.core.choices import HYBRID
from windowpane.core.limits import MAXIMUM_TOKENS, Thresholds, TrackerSettings, WindowLimits
from windowpane.core.names import check_name
from windowpane.core.protocols import Embedder
from windowpane.core.vocabulary import Component
from windowpane.core.zones import MINIMUM_LIMIT_TOKENS, largest_output
from windowpane.exceptions import ConfigurationError
from windowpane.manager.budget import shares_of
from windowpane.manager.plans.policies import Policy, policy_named
from windowpane.manager.presets.cascade import CASCADE, CASCADE_MAP
from windowpane.manager.presets.registry import Preset, preset_named
from windowpane.manager.settings import DEFAULT_CASCADE, SAFETY_NET, EngineSettings
from windowpane.manager.step import Step
from windowpane.manager.steps.cascade import STEPS, EngineStep, background_compaction, cascade_from_thresholds

if TYPE_CHECKING:
    from windowpane.config.schema import Config
    from windowpane.core.vocabulary import LimitSource
    from windowpane.manager.settings import LimitsOf


_log = logging.getLogger(__name__)


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

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> EngineOptions:
        """Return the options among the *arguments* of a manager."""
        return cls(**{field.name: arguments[field.name] for field in fields(cls)})


def check_options(options: Mapping[str, object], types: Mapping[str, Any]) -> None:
    """Raise `ConfigurationError` if an option is of the wrong type, out of range or contradictory.

    *types* are those of the constructor's signature; None is always the default.
    """
    for name in ("agent", "model"):
        check_name(name, options[name])
    for name, of in types.items():
        _check_type(name, options[name], of)
    limit, output = options["limit_tokens"], options["requested_output_tokens"]
    assert isinstance(limit, int | None)
    if limit is not None and not MINIMUM_LIMIT_TOKENS <= limit <= MAXIMUM_TOKENS:
        problem = f"{limit!r} is not a window size"
        raise ConfigurationError("limit_tokens", problem, expected=f"{MINIMUM_LIMIT_TOKENS} to {MAXIMUM_TOKENS}")
    if isinstance(output, int) and output < 0:
        problem = f"{output!r} is not a number of tokens"
        raise ConfigurationError("requested_output_tokens", problem, expected="0 or more")
    if options["settings"] is not None and options["preset"] is not None:
        raise ConfigurationError("settings", "a preset brings its settings", expected="one of the two")
    if isinstance(options["policy"], Policy) and options["weights"] is not None:
        raise ConfigurationError("weights", "the policy brings its weights", expected="one of the two")


def check_output(options: EngineOptions, limit_tokens: int) -> None:
    """Raise `ConfigurationError` if a window of *limit_tokens* has no room beside the requested output."""
    requested, largest = options.requested_output_tokens, largest_output(limit_tokens)
    if requested > max(0, largest):
        problem = f"{requested:,} leave no room for messages in a window of {limit_tokens:,} tokens"
        raise ConfigurationError("requested_output_tokens", problem, expected=f"at most {max(0, largest):,}")


def _check_type(name: str, value: object, of: Any) -> None:
    parts = get_args(of) if get_origin(of) in (Union, UnionType) else (of,)
    accepted = [_Accepted.of(part) for part in parts if part is not NoneType]
    if value is None or any(one.test(value) for one in accepted):
        return
    problem = repr(value) if isinstance(value, str) else f"a {type(value).__name__}"
    raise ConfigurationError(name, problem, expected=" or ".join(one.text for one in accepted))


class _Accepted(NamedTuple):
    """One of the types of an option."""

    test: Callable[[object], bool]
    text: str
    """The type in an error."""

    @classmethod
    def of(cls, part: Any) -> _Accepted:
        kind = get_origin(part) or part
        if kind is Literal:
            return cls(lambda value: value in get_args(part), " or ".join(get_args(part)))
        if kind is Sequence:
            return cls(lambda value: isinstance(value, Sequence) and not isinstance(value, str), "a list")
        if kind in (Callable, Embedder):
            return cls(callable, "a function")
        if kind is int:
            return cls(lambda value: isinstance(value, int) and not isinstance(value, bool), "a whole number")
        return cls(lambda value: isinstance(value, kind), _TEXTS.get(kind, kind.__name__))


_TEXTS: Final[Mapping[type, str]] = {str: "a text", Mapping: "a mapping", Path: "a path", bool: "true or false"}


def preset_of(options: EngineOptions, config: Config) -> Preset | None:
    """Return the preset that the argument or the configuration names.

    Raises `ConfigurationError` for the first argument or setting that cannot be combined with it.
    """
    chosen = options.preset or config.preset
    preset = preset_named(chosen) if isinstance(chosen, str) else chosen
    if preset is not None:
        _check_beside_preset(options, config, preset)
    return preset


def _check_beside_preset(options: EngineOptions, config: Config, preset: Preset) -> None:
    given: dict[str, tuple[str, Any]] = {
        "cascade": ("compression.cascade", options.cascade),
        "background": ("compression.background", options.background or None),
        "embedder": ("embedder", options.embedder),
    }
    for name, (key, value) in given.items():
        if value is not None and key in preset.fixed:
            problem = f"preset {preset.name!r} decides this itself: {preset.fixed[key]}"
            raise ConfigurationError(name, problem, expected="no such argument beside this preset")
    for conflict in preset_conflicts(config, preset.name, preset.fixed):
        raise ConfigurationError(conflict.key, conflict.reason, expected="no such key beside this preset")


def settings_for(options: EngineOptions, config: Config, preset: Preset | None) -> EngineSettings:
    """Return the settings of the engine. Raises `ConfigurationError`."""
    limits_of = window_of(options, config, preset)
    given = options.settings if preset is None else preset.control
    base = given or EngineSettings()
    changes: dict[str, Any] = {"limits_of": limits_of}
    if options.enforce is not None:
        changes["enforce"] = options.enforce
    elif given is None or is_set(config, "budget.enforce"):
        changes["enforce"] = config.budget.enforce
    if given is None or options.policy or options.weights or _names(config, "eviction", "policy", "weights"):
        changes["policy"] = _policy(options, config)
    cascade = _cascade(options, config, preset, given)
    if cascade is not None:
        changes["cascade"] = cascade
    if options.embedder is not None:
        changes["embed"] = options.embedder
    if is_set(config, COMPACT_RATIO):
        changes["compact_ratio"] = config.compression.compaction_utilization_threshold
    configurable = {
        "soft_ratio": ("budget.soft_limit_pct", config.budget.soft_limit_pct),
        "protected_types": ("eviction.protected_types", frozenset(config.eviction.protected_types)),
        "summarize_tokens": (
            "compression.summarization_threshold_tokens",
            config.compression.summarization_threshold_tokens,
        ),
        "checkpoint_ratio": ("cross_window.auto_save_threshold", config.cross_window.auto_save_threshold),
    }
    changes |= {
        field: value for field, (key, value) in configurable.items() if given is None or is_set(config, key)
    }
    changes |= _background(options, config, base, _compacts_from(config, preset))
    own = _chosen(options)
    return replace(base, **{field: value for field, value in changes.items() if field not in own})


def _chosen(options: EngineOptions) -> set[str]:
    """Return the fields that the `settings` argument changes, except those that another argument sets.

    The configuration does not override these: they were disabled or replaced on purpose.
    """
    if options.settings is None:
        return set()
    options_own = {
        "enforce": options.enforce,
        "policy": options.policy or options.weights,
        "cascade": options.cascade,
        "embed": options.embedder,
        "background": options.background,
        "after_turn": options.background,
    }
    usual = EngineSettings()
    return {
        field.name
        for field in fields(EngineSettings)
        if getattr(options.settings, field.name) != getattr(usual, field.name)
        and options_own.get(field.name) is None
    }


def tracker_settings(options: EngineOptions, config: Config, preset: Preset | None) -> TrackerSettings:
    """Return the settings of the tracker: budget and lifetimes as configured, else the preset's."""
    configured = config.tracker_settings()
    tracking = configured
    if preset is not None:
        shares = configured.budget
        allotted = {component: share for component, share in shares.items() if _is_allotted(config, component)}
        tracking = preset.tracking(configured)
        tracking = replace(tracking, budget={**tracking.budget, **allotted})
        if is_set(config, "eviction.type_ttl"):
            tracking = replace(tracking, lifetimes=dict(configured.lifetimes))
    if options.budget is None or (preset is not None and options.budget == "default"):
        return tracking
    return replace(tracking, budget=shares_of(options.budget))


def window_of(options: EngineOptions, config: Config, preset: Preset | None) -> LimitsOf:
    """Return the function that divides a window, whether its size is known now or learned later."""
    own = None if options.settings is None else options.settings.limits_of
    if preset is None and own is not None and own != WindowLimits.of:
        return own
    allots_output = preset is None or is_set(config, "budget.allocations.output_reserved")
    output_share = config.budget.allocations.output_reserved if allots_output else 0.0
    thresholds = options.thresholds or config.thresholds()
    sharing = WindowLimits.of if preset is None else preset.limits

    def limits_of(limit_tokens: int, source: LimitSource) -> WindowLimits:
        wanted = max(options.requested_output_tokens, int(output_share * limit_tokens))
        if wanted > (largest := largest_output(limit_tokens)):
            _log.warning(
                "%s output tokens do not fit into a window of %s: the usual reserve is kept; request at most %s",
                f"{wanted:,}", f"{limit_tokens:,}", f"{max(0, largest):,}",
            )  # fmt: skip
            wanted = 0
        limits = sharing(limit_tokens, source, requested_output_tokens=wanted)
        return limits if thresholds is None else replace(limits, thresholds=thresholds)

    return limits_of


def _names(config: Config, section: str, *keys: str) -> bool:
    return any(is_set(config, f"{section}.{key}") for key in keys)


def _is_allotted(config: Config, component: Component) -> bool:
    return is_set(config, f"budget.allocations.{component}")


def _policy(options: EngineOptions, config: Config) -> Policy:
    name = options.policy or config.eviction.policy
    if isinstance(name, Policy):
        return name
    if options.weights is not None or name != HYBRID:
        return policy_named(name, weights=options.weights)
    return policy_named(name, weights=config.eviction.weights.model_dump())


def _cascade(
    options: EngineOptions, config: Config, preset: Preset | None, given: EngineSettings | None
) -> tuple[str | EngineStep, ...] | None:
    """Return the configured steps; None to keep those of the given settings."""
    if options.cascade is not None:
        for step in options.cascade:
            if not isinstance(step, Step) and step not in STEPS:
                raise ConfigurationError("cascade", f"{step!r} is not a step", expected=", ".join(STEPS))
        return (*(step for step in options.cascade if step not in SAFETY_NET), *SAFETY_NET)
    if config.compression.cascade:
        return cascade_from_thresholds({name: ratio for ratio, name in config.compression.cascade.items()})
    if preset is not None and preset.name == CASCADE.name and is_set(config, COMPACT_RATIO):
        starts = {name: ratio for ratio, name in CASCADE_MAP.items()}
        return cascade_from_thresholds(
            {**starts, "compaction": config.compression.compaction_utilization_threshold}
        )
    return DEFAULT_CASCADE if given is None else None


def _compacts_from(config: Config, preset: Preset | None) -> float | None:
    """Return the configured utilization for compaction; None for the default level."""
    if is_set(config, COMPACT_RATIO):
        return config.compression.compaction_utilization_threshold
    starts = config.compression.cascade or (
        CASCADE_MAP if preset is not None and preset.name == CASCADE.name else {}
    )
    return next((ratio for ratio, name in starts.items() if name == "compaction"), None)


def _background(
    options: EngineOptions, config: Config, base: EngineSettings, start_ratio: float | None
) -> dict[str, Any]:
    """Return the settings for background work; a preset's own steps between turns are retained."""
    wanted = options.background
    if wanted is None and is_set(config, "compression.background"):
        wanted = config.compression.background
    if wanted is None:
        return {}
    if base.after_turn:
        return {"background": wanted}
    return {"after_turn": (background_compaction(start_ratio),)} if wanted else {}
