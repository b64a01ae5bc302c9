"""Load the configuration: a YAML file, then the environment, then arguments; a later layer wins key by key.

The environment names a key by its path, `WINDOWPANE_PRESSURE__VELOCITY_WINDOW`, and the common ones shortly.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError

from windowpane.config.schema import Config
from windowpane.config.section import Document, KeyPath, contains, is_set
from windowpane.core.choices import FIXED_BY_PRESET, MERGING_POLICIES
from windowpane.core.limits import EVICT_RATIO
from windowpane.exceptions import ConfigurationError

if TYPE_CHECKING:
    from windowpane.config.yaml_file import YamlFile

Model = TypeVar("Model", bound=BaseModel)

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
    if config.preset is None and not config.model_fields_set & {"compression", "cross_window"}:
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

    def validated(self, model: type[Model]) -> Model:
        """Return the settings as *model*. Raises `ConfigurationError` about the first invalid key."""
        from_file = {} if self.file is None else self.file.content
        try:
            return model.model_validate(merge(merge(from_file, self.environ), self.arguments))
        except ValidationError as error:
            raise self._explained(error, model) from None

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

    def _explained(self, error: ValidationError, model: type[BaseModel]) -> ConfigurationError:
        """Describe the first problem; text that was given is not repeated, it may be a secret."""
        problems = error.errors(include_url=False)
        # A misspelled key is the cause where its right name is missing.
        first = next((problem for problem in problems if problem["type"] == "extra_forbidden"), problems[0])
        key = tuple(part for part in first["loc"] if part != "[key]")
        kind, message = first["type"], _message(first, key)
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        if kind == "value_error":
            return ConfigurationError(self.location(key), message + more)
        if kind == "extra_forbidden":
            problem, expected = "unknown key", nearest_key(model, key) or "a key of this section"
        elif kind == "missing":
            problem, expected = "missing", "a value"
        elif kind in _OUT_OF_RANGE:
            problem, expected = f"{first['input']} is out of range", _expectation(message)
        else:
            problem, expected = "invalid", _EXPECTED.get(kind) or _expectation(message)
            if kind.endswith("_parsing"):  # the rest describes the conversion
                expected = expected.partition(",")[0]
        return ConfigurationError(self.location(key), problem + more, expected=expected)


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


_OUT_OF_RANGE: Final = frozenset({"greater_than", "greater_than_equal", "less_than", "less_than_equal"})
_EXPECTED: Final = {
    "model_type": "a mapping",
    "tuple_type": "a list",
    "too_short": "at least one",
    "invalid_key": "a name as key",
}
"""Expectations by kind of error, where Pydantic's message names its own types."""


def _message(error: Mapping[str, Any], key: KeyPath) -> str:
    """Return Pydantic's message without the key, which the location names already."""
    message = str(error["msg"]).removeprefix("Value error, ")
    cause = (error.get("ctx") or {}).get("error")
    if isinstance(cause, ConfigurationError) and ".".join(map(str, key)).endswith(cause.path):
        return message.removeprefix(f"{cause.path}: ")
    return message


def _expectation(message: str) -> str:
    return message.removeprefix("Input should be ").removeprefix("Field ")


def nearest_key(settings: type[BaseModel], key: Sequence[str | int]) -> str:
    """Return the dotted key that is spelled most like *key*, in its section, else anywhere; empty if none is."""
    from difflib import get_close_matches

    *path, name = key
    keys = _section(settings, path).model_fields
    if close := get_close_matches(str(name), keys, n=1):
        return ".".join(map(str, (*path, *close)))
    return next((dotted for dotted in _all_keys(settings) if dotted.rpartition(".")[2] == name), "")


def _section(settings: type[BaseModel], path: Sequence[str | int]) -> type[BaseModel]:
    parts = iter(path)
    for part in parts:
        annotation = settings.model_fields[str(part)].annotation
        settings = next(_sections(annotation))
        if {get_origin(kind) for kind in (annotation, *get_args(annotation))} & {dict, tuple}:
            next(parts, None)  # the name or number of an element
    return settings


def _sections(annotation: object) -> Iterator[type[BaseModel]]:
    """Yield the sections in a field's type: itself, an optional one, or those of a list."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _sections(argument)


def _all_keys(settings: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, information in settings.model_fields.items():
        yield f"{prefix}{name}"
        for section in _sections(information.annotation):
            yield from _all_keys(section, f"{prefix}{name}.")
