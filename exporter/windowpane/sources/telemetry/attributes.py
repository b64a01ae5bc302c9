"""Attributes of any type, read as what is expected: instrumentations write numbers as text and the reverse.

Conventions flatten lists and objects into attributes such as `llm.input_messages.0.message.role`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from windowpane.models.wire.usage import tokens_of

MAXIMUM_NAME_CHARACTERS: Final = 200

MAXIMUM_ENTRIES: Final = 20_000
MAXIMUM_DEPTH: Final = 16
"""Levels that are unfolded; what is nested deeper keeps its dots."""


def text_of(attributes: Mapping[str, Any], *names: str) -> str:
    """Return the first of *names* that holds text, cut to the length of a name."""
    for name in names:
        if name in attributes:
            value = attributes[name]
            if isinstance(value, str) and value.strip():
                return value.strip()[:MAXIMUM_NAME_CHARACTERS]
    return ""


def count_of(attributes: Mapping[str, Any], *names: str) -> int | None:
    """Return the first of *names* that holds a number of tokens."""
    return next((tokens for name in names if (tokens := tokens_of(attributes.get(name))) is not None), None)


def amount_of(attributes: Mapping[str, Any], *names: str) -> float | None:
    """Return the first of *names* that holds a finite number from 0, such as dollars."""
    for name in names:
        value = attributes.get(name)
        if isinstance(value, str):
            try:
                value = float(value)
            except ValueError:
                continue
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0:
            return float(value)
    return None


def first_of(value: Any) -> str | None:
    """Return the first text of a list, or a text itself, cut to the length of a name."""
    if isinstance(value, list | tuple):
        value = next((item for item in value if isinstance(item, str)), None)
    return value[:MAXIMUM_NAME_CHARACTERS] if isinstance(value, str) and value else None


def unflattened(attributes: Mapping[str, Any], prefix: str) -> list[Any]:
    """Return the list below *prefix*, in the order of its indexes; empty without one."""
    start = f"{prefix}."
    names = [name for name in attributes if name.startswith(start)]
    if not names:
        return []
    tree: dict[str, Any] = {}
    for name in names:
        value = attributes[name]
        node = tree
        *path, leaf = name[len(start) :].split(".", MAXIMUM_DEPTH)
        for step in path:
            below = node.setdefault(step, {})
            if not isinstance(below, dict):  # a value stands where others are nested
                below = node[step] = {}
            node = below
        if not isinstance(node.get(leaf), dict):
            node[leaf] = value
    listed = _listed(tree)
    return listed if isinstance(listed, list) else []


def _listed(node: Any) -> Any:
    """Turn objects whose keys are all indexes into lists."""
    if not isinstance(node, dict):
        return node
    converted = {key: _listed(value) for key, value in node.items()}
    if converted and all(key.isdecimal() and len(key) <= 6 for key in converted):
        return [converted[key] for key in sorted(converted, key=int)][:MAXIMUM_ENTRIES]
    return converted
