"""A YAML file as a mapping, with the line of each key for error messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from windowpane.exceptions import ConfigurationError

Document = dict[str, Any]
KeyPath = tuple[str | int, ...]


class _Loader(yaml.SafeLoader):
    """Reports a value that Python cannot hold, such as a date in month 13, with its line."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:  # noqa: FBT001, FBT002  # inherited
        try:
            return super().construct_object(node, deep)
        except (ValueError, OverflowError) as error:
            raise yaml.constructor.ConstructorError(None, None, str(error), node.start_mark) from None


@dataclass(frozen=True, slots=True)
class YamlFile:
    """The content of a YAML file."""

    path: Path
    content: Document = field(default_factory=dict)
    tree: yaml.Node | None = None
    """The same with positions; None for an empty file."""

    @classmethod
    def read(cls, path: Path) -> YamlFile:
        """Read *path*. Raises `ConfigurationError` where it is missing, not a YAML mapping, or repeats a key."""
        tree = _compose(path)
        return cls(path) if tree is None else cls(path, _construct(path, tree), tree)

    def location(self, key: KeyPath) -> str:
        """Return file and line of *key*, or of its nearest parent; the file alone where it holds neither."""
        if self.tree is not None and (len(key) == 1 or contains(self.content, key[:-1])):
            return f"{self.path}:{_line(self.tree, key)}"
        return "" if self.tree is not None else str(self.path)


def _compose(path: Path) -> yaml.Node | None:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigurationError(str(path), "file not found", expected="a YAML file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(str(path), f"cannot be read ({error})", expected="a YAML file") from None
    try:
        tree = yaml.compose(text, Loader=_Loader)
        duplicates = list(_duplicates(path, tree, (), set()))
    except yaml.YAMLError as error:
        raise _syntax_error(path, error) from None
    except RecursionError:
        raise _too_deep(path) from None
    ConfigurationError.raise_all(duplicates)
    return tree


def parse_value(text: str) -> object:
    """Return a single YAML value. Raises `ValueError` for text that is not one."""
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506  # a safe loader
    except (yaml.YAMLError, RecursionError):
        raise ValueError("not a YAML value") from None


def contains(document: object, key: KeyPath) -> bool:
    """Return whether nested mappings and lists hold a value under *key*; never for the empty key."""
    for part in key:
        if isinstance(document, Sequence):
            document = dict(enumerate(document))
        values = {str(name): value for name, value in document.items()} if isinstance(document, Mapping) else {}
        if str(part) not in values:
            return False
        document = values[str(part)]
    return bool(key)


def _too_deep(path: Path) -> ConfigurationError:
    return ConfigurationError(str(path), "is nested too deeply", expected="sections with keys")


def _syntax_error(path: Path, error: yaml.YAMLError) -> ConfigurationError:
    mark = getattr(error, "problem_mark", None)
    line = "" if mark is None else f":{mark.line + 1}"
    problem = getattr(error, "problem", None) or "cannot be parsed"
    return ConfigurationError(f"{path}{line}", f"not YAML: {problem}", expected="a YAML mapping")


def _duplicates(
    path: Path, node: yaml.Node | None, above: KeyPath, visited: set[int]
) -> Iterator[ConfigurationError]:
    """Yield an error for each key that one mapping holds twice: YAML would drop one of the two."""
    if id(node) in visited:  # an alias
        return
    visited.add(id(node))
    if isinstance(node, yaml.MappingNode):
        lines: dict[str, int] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue  # refused when the document is constructed
            name, line = str(key.value), key.start_mark.line + 1
            if name in lines:
                dotted = ".".join(map(str, (*above, name)))
                problem = f"is set twice, first in line {lines[name]}"
                yield ConfigurationError(f"{path}:{line}: {dotted}", problem, expected="each key once")
            lines.setdefault(name, line)
            yield from _duplicates(path, value, (*above, name), visited)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield from _duplicates(path, value, (*above, index), visited)


def _construct(path: Path, tree: yaml.Node) -> Document:
    loader = _Loader("")
    try:
        document = loader.construct_document(tree)
    except yaml.YAMLError as error:
        raise _syntax_error(path, error) from None
    except RecursionError:
        raise _too_deep(path) from None
    finally:
        loader.dispose()
    if not isinstance(document, dict):
        raise ConfigurationError(str(path), f"holds a {type(document).__name__}", expected="a YAML mapping")
    return document


def _line(node: yaml.Node, key: KeyPath) -> int:
    """Return the line of the deepest part of *key* that the file holds."""
    line = node.start_mark.line
    for part in key:
        child = _child(node, part)
        if child is None:
            break
        key_node, node = child
        line = key_node.start_mark.line
    return line + 1


def _child(node: yaml.Node, part: str | int) -> tuple[yaml.Node, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        return next(((key, value) for key, value in node.value if key.value == str(part)), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        return node.value[part], node.value[part]
    return None
