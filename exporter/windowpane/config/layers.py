"""The settings as they were given, by origin: a YAML file, then the environment, then arguments.

A later layer wins key by key. The environment names a key by its path, `WINDOWPANE_PRESSURE__VELOCITY_WINDOW`,
and the common ones shortly. Nothing is validated here, so that a hook finds the store without loading the schema.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from windowpane.exceptions import ConfigurationError

if TYPE_CHECKING:
    from windowpane.config.yaml_file import Document, KeyPath, YamlFile

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


class Variable(NamedTuple):
    """An environment variable that sets a key."""

    name: str
    value: object


@dataclass(frozen=True, slots=True)
class Layers:
    """The settings of each origin as they were given, before validation."""

    file: YamlFile | None
    variables: Mapping[KeyPath, Variable]
    arguments: Mapping[str, Any]
    problems: Sequence[ConfigurationError]
    """Variables that are misspelled or cannot be parsed."""

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
        variables, problems = _read_environ(environ)
        return cls(
            file=_yaml_file(Path(path).expanduser()) if path else None,
            variables=variables,
            arguments=arguments or {},
            problems=problems,
        )

    @property
    def document(self) -> Document:
        """The settings of all layers, as one mapping."""
        settings: Document = {} if self.file is None else self.file.content
        for key, variable in self.variables.items():
            settings = merge(settings, _nested(key, variable.value))
        return merge(settings, self.arguments)

    def location(self, key: KeyPath) -> str:
        """Return the dotted key, with its file and line or its variable where it has one."""
        from windowpane.config.yaml_file import contains

        dotted = ".".join(map(str, key)) or "settings"
        if contains(self.arguments, key):
            return dotted
        for path, variable in self.variables.items():
            if path[: len(key)] == key or key[: len(path)] == path:
                return f"{variable.name} ({dotted})"
        in_file = "" if self.file is None else self.file.location(key)
        return f"{in_file}: {dotted}" if in_file else dotted


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


def _nested(path: KeyPath, value: object) -> Document:
    for key in reversed(path):
        value = {key: value}
    assert isinstance(value, dict)
    return value


def _read_environ(environ: Mapping[str, str]) -> tuple[dict[KeyPath, Variable], list[ConfigurationError]]:
    """Return the variables by key, and the problems of others."""
    variables: dict[KeyPath, Variable] = {}
    problems = []
    for name, value in environ.items():
        if not name.startswith(PREFIX) or not value or name == CONFIG:
            continue
        path = SHORT_NAMES.get(name)
        if path is None and SEPARATOR in name:
            path = tuple(name.removeprefix(PREFIX).lower().split(SEPARATOR))
        try:
            if name == NOTIFY:
                channels = [{"url": url} for url in value.split()]
                variables["notify", "channels"] = Variable(name, channels)
            elif path is None:
                _refuse_misspelled(name)
            else:
                variables[path] = Variable(name, _parsed(name, path, value))
        except ConfigurationError as error:
            problems.append(error)
    return variables, problems


def _refuse_misspelled(name: str) -> None:
    """Raise `ConfigurationError` for a variable whose name is almost that of a setting."""
    from difflib import get_close_matches

    keys = [setting.removeprefix(PREFIX) for setting in (CONFIG, NOTIFY, *SHORT_NAMES)]
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
