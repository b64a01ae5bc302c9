"""Lists and objects that conventions flatten into attributes such as `llm.input_messages.0.message.role`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

MAXIMUM_ENTRIES: Final = 20_000
MAXIMUM_DEPTH: Final = 16
"""Levels that are unfolded; what is nested deeper keeps its dots."""


def unflattened(attributes: Mapping[str, Any], prefix: str) -> list[Any]:
    """Return the list below *prefix*, in the order of its indexes; empty without one."""
    tree: dict[str, Any] = {}
    start = f"{prefix}."
    for name, value in attributes.items():
        if not name.startswith(start):
            continue
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
