"""Where settings come from, which wins, and how to say where a wrong one stands.

Layers of plain nested mappings: the YAML file, then the environment, then arguments; a later one wins key by key.
The environment names a key by its path, `WINDOWPANE_PRESSURE__VELOCITY_WINDOW`, and the common ones shortly.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from windowpane.exceptions import ConfigurationError

Document = dict[str, Any]
KeyPath = tuple[str | int, ...]
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
    "WINDOWPANE_PORT": ("server", "port"),
    "WINDOWPANE_ADDRESS": ("server", "address"),
    "WINDOWPANE_BEARER_TOKEN": ("server", "bearer_token"),
    "WINDOWPANE_OTLP_ENDPOINT": ("otlp", "endpoint"),
    "WINDOWPANE_PUBLIC_URL": ("public_url",),
    "WINDOWPANE_SESSION_LABEL": ("session_label",),
}
"""Environment variables with a name of their own; every other key is reached by its path."""
NOTIFY: Final = "WINDOWPANE_NOTIFY"
"""Addresses alerts are sent to, separated by spaces."""
TEXT_KEYS: Final = frozenset({"path", "address", "bearer_token", "endpoint", "public_url", "audit_key_file"})
"""Keys whose value is taken as it stands, never as a number or a list."""


@dataclass(frozen=True, slots=True)
class Layers:
    """The raw settings of each origin."""

    file: Path | None = None
    tree: yaml.Node | None = None
    """The file with line numbers."""
    from_file: Document = field(default_factory=dict)
    from_environ: Document = field(default_factory=dict)
    names: dict[KeyPath, str] = field(default_factory=dict)
    """Which variable set a key."""
    from_arguments: Document = field(default_factory=dict)

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
        named = file if file is not None else environ.get("WINDOWPANE_CONFIG")
        path = None if not named else Path(named).expanduser()
        tree = None if path is None else _compose(path)
        from_environ, names = _read_environ(environ)
        return cls(
            file=path,
            tree=tree,
            from_file={} if path is None or tree is None else _construct(path, tree),
            from_environ=from_environ,
            names=names,
            from_arguments=dict(arguments or {}),
        )

    def validated(self, model: type[Model]) -> Model:
        """The settings as *model*. Raises `ConfigurationError` about the first key that is wrong."""
        merged = merge(merge(self.from_file, self.from_environ), self.from_arguments)
        try:
            return model.model_validate(merged)
        except ValidationError as error:
            raise self._explained(error) from None

    def _explained(self, error: ValidationError) -> ConfigurationError:
        """What is wrong, where it stands; the value is left out, it may be a secret."""
        problems = error.errors(include_input=False, include_url=False)
        first = problems[0]
        path = tuple(part for part in first["loc"] if part != "[key]")
        message = _problem(first, path)
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        if first["type"] == "extra_forbidden":
            return ConfigurationError(self.place(path), f"unknown key{more}", expected="a key of this section")
        if first["type"] == "value_error":
            return ConfigurationError(self.place(path), message + more)
        problem = "missing" if first["type"] == "missing" else "not acceptable"
        expected = _EXPECTED.get(first["type"]) or _expected(message)
        return ConfigurationError(self.place(path), problem + more, expected=expected)

    def place(self, path: KeyPath) -> str:
        """The key's dotted path, with its file and line or its variable where it has one."""
        dotted = ".".join(str(part) for part in path) or "settings"
        if _holds(self.from_arguments, path):
            return dotted
        for known, name in self.names.items():
            if known[: len(path)] == path or path[: len(known)] == known:
                return f"{name} ({dotted})"
        if (
            self.file is not None
            and self.tree is not None
            and (len(path) == 1 or _holds(self.from_file, path[:-1]))
        ):
            return f"{self.file}:{_line(self.tree, path)}: {dotted}"
        return f"{self.file}: {dotted}" if self.file is not None and self.tree is None else dotted


def merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> Document:
    """Both mappings, *above* winning key by key."""
    result = dict(below)
    for key, value in above.items():
        known = result.get(key)
        result[key] = merge(known, value) if isinstance(known, Mapping) and isinstance(value, Mapping) else value
    return result


def _compose(path: Path) -> yaml.Node | None:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigurationError(str(path), "there is no such file", expected="a YAML file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(str(path), f"cannot be read ({error})", expected="a YAML file") from None
    try:
        tree = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise _no_yaml(path, error) from None
    _check_keys(path, tree, (), set())
    return tree


def _no_yaml(path: Path, error: yaml.YAMLError) -> ConfigurationError:
    mark = getattr(error, "problem_mark", None)
    line = "" if mark is None else f":{mark.line + 1}"
    problem = getattr(error, "problem", None) or "cannot be parsed"
    return ConfigurationError(f"{path}{line}", f"not YAML: {problem}", expected="a YAML mapping")


def _check_keys(path: Path, node: yaml.Node | None, above: KeyPath, seen: set[int]) -> None:
    """Raises `ConfigurationError` for a key that stands twice in one mapping: one of the two would be lost."""
    if id(node) in seen:  # an alias
        return
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        lines: dict[str, int] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue  # no key of ours; refused when the file is read
            name, line = str(key.value), key.start_mark.line + 1
            if name in lines:
                dotted = ".".join(map(str, (*above, name)))
                problem = f"stands twice, first in line {lines[name]}"
                raise ConfigurationError(f"{path}:{line}: {dotted}", problem, expected="each key once")
            lines[name] = line
            _check_keys(path, value, (*above, name), seen)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            _check_keys(path, value, (*above, index), seen)


def _construct(path: Path, tree: yaml.Node) -> Document:
    loader = yaml.SafeLoader("")
    try:
        document = loader.construct_document(tree)
    except yaml.YAMLError as error:
        raise _no_yaml(path, error) from None
    finally:
        loader.dispose()
    if not isinstance(document, dict):
        raise ConfigurationError(str(path), f"holds a {type(document).__name__}", expected="a YAML mapping")
    return document


def _read_environ(environ: Mapping[str, str]) -> tuple[Document, dict[KeyPath, str]]:
    found: Document = {}
    names: dict[KeyPath, str] = {}
    for name, value in environ.items():
        path = SHORT_NAMES.get(name)
        if path is None and name.startswith(PREFIX) and SEPARATOR in name:
            path = tuple(name.removeprefix(PREFIX).lower().split(SEPARATOR))
        if path is not None and value:
            found = merge(found, _nested(path, _parsed(name, path, value)))
            names[path] = name
    if environ.get(NOTIFY):
        channels = [{"url": url} for url in environ[NOTIFY].split()]
        found = merge(found, {"notify": {"channels": channels}})
        names["notify", "channels"] = NOTIFY
    return found, names


def _parsed(name: str, path: Sequence[str], value: str) -> object:
    if path[-1] in TEXT_KEYS:
        return value
    try:
        return yaml.safe_load(value)
    except yaml.YAMLError:
        raise ConfigurationError(name, "cannot be parsed", expected="a YAML value") from None


def _nested(path: Sequence[str], value: object) -> Document:
    for key in reversed(path):
        value = {key: value}
    assert isinstance(value, dict)
    return value


def _holds(document: object, path: KeyPath) -> bool:
    for part in path:
        if isinstance(document, Sequence):
            document = dict(enumerate(document))
        if not isinstance(document, Mapping) or part not in document:
            return False
        document = document[part]
    return bool(path)


def _line(node: yaml.Node, path: KeyPath) -> int:
    """Line of the deepest part of *path* that the file holds."""
    line = node.start_mark.line
    for part in path:
        found = _child(node, part)
        if found is None:
            break
        key, node = found
        line = key.start_mark.line
    return line + 1


def _child(node: yaml.Node, part: str | int) -> tuple[yaml.Node, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        return next(((key, value) for key, value in node.value if key.value == str(part)), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        return node.value[part], node.value[part]
    return None


def _problem(error: Mapping[str, Any], path: KeyPath) -> str:
    """What is wrong, without the key where the place says it already."""
    message = str(error["msg"]).removeprefix("Value error, ")
    cause = (error.get("ctx") or {}).get("error")
    if isinstance(cause, ConfigurationError) and ".".join(map(str, path)).endswith(cause.path):
        return message.removeprefix(f"{cause.path}: ")
    return message


_EXPECTED: Final = {
    "missing": "a value",
    "model_type": "a mapping",
    "tuple_type": "a list",
    "too_short": "at least one",
}
"""What was expected, by kind of error, where Pydantic speaks of its own types."""


def _expected(message: str) -> str:
    """Pydantic's sentence as what was expected."""
    return message.removeprefix("Input should be ").removeprefix("Field ").removeprefix("a valid ")
