"""Load the configuration: a YAML file, then the environment, then arguments; a later layer wins key by key.

The environment names a key by its path, `WINDOWPANE_PRESSURE__VELOCITY_WINDOW`, and the common ones shortly.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from windowpane.config.reading import UNKNOWN, AnySection, Problem, Reading
from windowpane.config.schema import Config
from windowpane.config.section import Document, KeyPath, contains, is_set
from windowpane.core.choices import FIXED_BY_PRESET, MERGING_POLICIES
from windowpane.core.limits import EVICT_RATIO
from windowpane.exceptions import ConfigurationError

if TYPE_CHECKING:
    from windowpane.config.yaml_file import YamlFile

PREFIX: Final = "WINDOWPANE_"
SEPARATOR: Final = "__"
SHORT_NAMES: Final[dict[str, tuple[str, ...]]] = {
    "WINDOWPANE_MAX_CONTEXT_TOKENS": ("max_context_tokens",),
    "WINDOWPANE_PRESET": ("preset",),
    "WINDOWPANE_STORE": ("store", "path"),
    "WINDOWPANE_CAPTURE": ("store", "capture"),
    "WINDOWPANE_RETENTION_DAYS": ("store", "retention_days"),
    "WINDOWPANE_AUDIT_KEY_FILE": ("store", "audit_key_file"),
    "WINDOWPANE_AUDIT_OLD_KEY_FILES": ("store", "audit_old_key_files"),
    "WINDOWPANE_INGEST_TOKEN": ("ingest", "token"),
    "WINDOWPANE_PORT": ("server", "port"),
    "WINDOWPANE_ADDRESS": ("server", "address"),
    "WINDOWPANE_BEARER_TOKEN": ("server", "bearer_token"),
    "WINDOWPANE_OTLP_ENDPOINT": ("otlp", "endpoint"),
    "WINDOWPANE_CLICKHOUSE_URL": ("clickhouse", "url"),
    "WINDOWPANE_CLICKHOUSE_USER": ("clickhouse", "user"),
    "WINDOWPANE_CLICKHOUSE_PASSWORD": ("clickhouse", "password"),
    "WINDOWPANE_PUBLIC_URL": ("public_url",),
    "WINDOWPANE_SESSION_LABEL": ("session_label",),
    "WINDOWPANE_PROJECT": ("project",),
}
"""Environment variables with a short name; every other key is reached by its path."""
CONFIG: Final = "WINDOWPANE_CONFIG"
"""The file of settings."""
MISSPELLED_RATIO: Final = 0.8
"""Similarity of two names from which one is the other, misspelled."""
NOTIFY: Final = "WINDOWPANE_NOTIFY"
"""Addresses alerts are sent to, separated by spaces."""
TEXT_KEYS: Final = frozenset(
    {
        "path", "address", "bearer_token", "token", "endpoint", "url", "user", "password", "public_url",
        "audit_key_file", "audit_old_key_files", "project",
        "client_id", "client_secret", "cookie_secret", "metadata_url", "redirect_url",
    }
)  # fmt: skip
"""Keys whose value is always text, never parsed as a number or a list."""
COMPACT_RATIO: Final = "compression.compaction_utilization_threshold"


def load_config(
    file: str | Path | None = None,
    *,
    environ: dict[str, str] | None = None,
    arguments: dict[str, Any] | None = None,
) -> Config:
    """Load *file*, else the one that `WINDOWPANE_CONFIG` names, under the environment and *arguments*.

    Raises `ConfigurationError` with the location, the key and what was expected, for an invalid setting, for one
    that contradicts another or that the preset decides itself, and for a file that is missing.
    """
    layers = Layers.read(file, environ=environ, arguments=arguments)
    config = layers.validated(Config)
    if config.preset is None and not config.given & {"compression", "cross_window"}:
        return config

    for conflict in contradictions(config):
        location = layers.location(tuple(conflict.key.split(".")))
        raise ConfigurationError(location, conflict.reason, expected="a threshold at or above it")
    if config.preset is None:
        return config
    for conflict in preset_conflicts(config, config.preset, FIXED_BY_PRESET[config.preset]):
        location = layers.location(tuple(conflict.key.split(".")))
        raise ConfigurationError(location, conflict.reason, expected="no such key beside this preset")
    return config


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


@dataclass(frozen=True, slots=True)
class Layers:
    """The settings of each origin as they were given, before validation."""

    file: YamlFile | None = None
    environ: Document = field(default_factory=dict)
    variables: dict[KeyPath, str] = field(default_factory=dict)
    """The environment variable that set a key."""
    arguments: Document = field(default_factory=dict)

    @classmethod
    def read(
        cls,
        file: str | Path | None,
        *,
        environ: Mapping[str, str] | None = None,
        arguments: Mapping[str, Any] | None = None,
    ) -> Layers:
        """Gather all layers. Raises `ConfigurationError` for a missing or unreadable file."""
        environ = os.environ if environ is None else environ
        path = file if file is not None else environ.get(CONFIG)
        if path is not None and (not isinstance(path, str | os.PathLike) or "\0" in os.fspath(path)):
            raise ConfigurationError("config", f"{path!r} is not a path", expected="the path of a YAML file")
        if arguments is not None and not isinstance(arguments, Mapping):
            raise ConfigurationError("settings", f"is a {type(arguments).__name__}", expected="a mapping")
        from_environ, variables = _read_environ(environ)
        return cls(
            file=_yaml_file(Path(path).expanduser()) if path else None,
            environ=from_environ,
            variables=variables,
            arguments=dict(arguments or {}),
        )

    def validated(self, kind: type[AnySection]) -> AnySection:
        """Return the settings as a section. Raises `ConfigurationError` about the first invalid key."""
        from_file = {} if self.file is None else self.file.content
        reading = Reading(kind, merge(merge(from_file, self.environ), self.arguments))
        if reading.section is None:
            raise self._explained(reading.problems)
        return reading.section

    def location(self, key: KeyPath) -> str:
        """Return the dotted key, with its file and line or its variable where it has one."""
        dotted = ".".join(map(str, key)) or "settings"
        if contains(self.arguments, key):
            return dotted
        for path, variable in self.variables.items():
            if path[: len(key)] == key or key[: len(path)] == path:
                return f"{variable} ({dotted})"
        in_file = "" if self.file is None else self.file.location(key)
        return f"{in_file}: {dotted}" if in_file else dotted

    def _explained(self, problems: Sequence[Problem]) -> ConfigurationError:
        """Describe the first problem; a misspelled key is the cause where its right name is missing."""
        first = next((problem for problem in problems if problem.text == UNKNOWN), problems[0])
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        return ConfigurationError(self.location(first.key), first.text + more, expected=first.expected)


def _yaml_file(path: Path) -> YamlFile:
    from windowpane.config.yaml_file import YamlFile

    return YamlFile.read(path)


def merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> Document:
    """Combine two nested mappings; *above* wins key by key."""
    result = dict(below)
    for key, value in above.items():
        lower = result.get(key)
        result[key] = merge(lower, value) if isinstance(lower, Mapping) and isinstance(value, Mapping) else value
    return result


def _nested(path: Sequence[str], value: object) -> Document:
    for key in reversed(path):
        value = {key: value}
    assert isinstance(value, dict)
    return value


def _read_environ(environ: Mapping[str, str]) -> tuple[Document, dict[KeyPath, str]]:
    settings: Document = {}
    variables: dict[KeyPath, str] = {}
    for name, value in environ.items():
        path = SHORT_NAMES.get(name)
        if path is None and name.startswith(PREFIX) and SEPARATOR in name:
            path = tuple(name.removeprefix(PREFIX).lower().split(SEPARATOR))
        elif path is None and name.startswith(PREFIX) and value:
            _refuse_misspelled(name)
        if path is not None and value:
            settings = merge(settings, _nested(path, _parsed(name, path, value)))
            variables[path] = name
    if environ.get(NOTIFY):
        channels = [{"url": url} for url in environ[NOTIFY].split()]
        settings = merge(settings, {"notify": {"channels": channels}})
        variables["notify", "channels"] = NOTIFY
    return settings, variables


def _refuse_misspelled(name: str) -> None:
    """Raise `ConfigurationError` for a variable whose name is almost that of a setting."""
    names = (CONFIG, NOTIFY, *SHORT_NAMES)
    if name in names:
        return

    from difflib import get_close_matches

    keys = [one.removeprefix(PREFIX) for one in names]
    if nearest := get_close_matches(name.removeprefix(PREFIX), keys, n=1, cutoff=MISSPELLED_RATIO):
        raise ConfigurationError(name, "unknown variable", expected=f"{PREFIX}{nearest[0]}")


def _parsed(name: str, path: Sequence[str], value: str) -> object:
    if path[-1] in TEXT_KEYS:
        return value

    from windowpane.config.yaml_file import parse_value

    try:
        return parse_value(value)
    except ValueError:
        raise ConfigurationError(name, "cannot be parsed", expected="a YAML value") from None
