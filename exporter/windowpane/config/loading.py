"""Load the configuration: validate the settings of all layers, and report every problem."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar, get_args

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from windowpane.config.layers import Layers
from windowpane.config.schema import Config
from windowpane.config.section import Section, is_set
from windowpane.core.choices import FIXED_BY_PRESET, MERGING_POLICIES
from windowpane.core.limits import EVICT_RATIO
from windowpane.core.validation import described
from windowpane.exceptions import ConfigurationError

AnySection = TypeVar("AnySection", bound=Section)

COMPACT_RATIO: Final = "compression.compaction_utilization_threshold"


def load_config(
    file: str | Path | None = None,
    *,
    environ: dict[str, str] | None = None,
    arguments: dict[str, Any] | None = None,
) -> Config:
    """Load *file*, else the one that `WINDOWPANE_CONFIG` names, under the environment and *arguments*.

    Raises `ConfigurationError` with the location, the key and what was expected, for every setting that is
    invalid, contradicts another or is decided by the preset, and for a file that is missing.
    """
    layers = Layers.read(file, environ=environ, arguments=arguments)
    config = validated(Config, layers)
    refused = [(*conflict, "a threshold at or above it") for conflict in contradictions(config)]
    if config.preset is not None:
        conflicts = preset_conflicts(config, config.preset, FIXED_BY_PRESET[config.preset])
        refused += [(*conflict, "no such key beside this preset") for conflict in conflicts]
    ConfigurationError.raise_all(
        [
            ConfigurationError(layers.location(tuple(key.split("."))), reason, expected=expected)
            for key, reason, expected in refused
        ]
    )
    return config


def validated(kind: type[AnySection], layers: Layers) -> AnySection:
    """Return the settings as a section. Raises `ConfigurationError` about all that are invalid."""
    problems = list(layers.problems)
    try:
        section = kind.model_validate(layers.document)
    except ValidationError as error:
        # A misspelled key comes first: it is the cause where its right name is missing.
        details = sorted(error.errors(include_url=False), key=lambda detail: detail["type"] != "extra_forbidden")
        problems += [_problem(kind, layers, detail) for detail in details]
    ConfigurationError.raise_all(problems)
    return section


def _problem(kind: type[Section], layers: Layers, detail: ErrorDetails) -> ConfigurationError:
    key = tuple(part for part in detail["loc"] if part != "[key]")
    problem, expected = described(detail)
    error = detail.get("ctx", {}).get("error")
    if detail["type"] == "extra_forbidden":
        problem, expected = "unknown key", _nearest_key(kind, key)
    elif isinstance(error, ConfigurationError) and ".".join(map(str, key)).endswith(error.path):
        problem, expected = error.problem, error.expected
    return ConfigurationError(layers.location(key), problem, expected=expected)


def _nearest_key(root: type[Section], key: tuple[str | int, ...]) -> str:
    """Return the dotted key that is spelled most like *key*, in its section, else the same one elsewhere."""
    from difflib import get_close_matches

    *above, name = key
    section = root
    for part in above:
        field = section.model_fields.get(str(part))
        section = section if field is None else next(sections_in(field.annotation), section)
    if close := get_close_matches(str(name), section.model_fields, n=1):
        return ".".join(map(str, (*above, *close)))
    same = (dotted for dotted in _all_keys(root) if dotted.rpartition(".")[2] == name)
    return next(same, "a key of this section")


def _all_keys(kind: type[Section], prefix: str = "") -> Iterator[str]:
    for name, field in kind.model_fields.items():
        yield f"{prefix}{name}"
        for section in sections_in(field.annotation):
            yield from _all_keys(section, f"{prefix}{name}.")


def sections_in(annotation: object) -> Iterator[type[Section]]:
    """Yield the sections in the type of a key: itself, an optional one, or those of a list."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        yield annotation
    for inner in get_args(annotation):
        yield from sections_in(inner)


class Conflict(NamedTuple):
    """A setting that has to be removed or changed, and why."""

    key: str
    reason: str


def preset_conflicts(config: Config, preset: str, fixed: Mapping[str, str]) -> Iterator[Conflict]:
    """Yield the settings of *config* that are *fixed* by a preset, each with the reason."""
    for key, reason in fixed.items():
        disables_background = key == "compression.background" and not config.compression.background
        if key != "embedder" and is_set(config, key) and not disables_background:
            yield Conflict(key, f"preset {preset!r} decides this itself: {reason}")
    if is_set(config, "eviction.policy") and config.eviction.policy in MERGING_POLICIES:
        reason = fixed.get("embedder", "")
        if reason:
            yield Conflict("eviction.policy", f"preset {preset!r} cannot merge: {reason}")


def contradictions(config: Config) -> Iterator[Conflict]:
    """Yield thresholds below the level where the window is first reduced (orange, where it is set)."""
    zones = config.pressure.thresholds
    first = EVICT_RATIO if zones is None else zones.orange
    levels = {
        "cross_window.auto_save_threshold": config.cross_window.auto_save_threshold,
        COMPACT_RATIO: config.compression.compaction_utilization_threshold,
    }
    for key, ratio in levels.items():
        if is_set(config, key) and ratio < first:
            yield Conflict(key, f"{ratio:g} is below {first:g}, where reductions start")
    for ratio, name in config.compression.cascade.items():
        if ratio < first:
            reason = f"{name} at {ratio:g} is below {first:g}, where reductions start"
            yield Conflict("compression.cascade", reason)
