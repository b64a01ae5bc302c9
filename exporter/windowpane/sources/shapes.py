"""The shape of a JSON document from its first bytes: which fields it has, without parsing it."""

from __future__ import annotations

import json
import re
from typing import Final

MAXIMUM_DEPTH: Final = 4

_MARK: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\],:"]', re.DOTALL)


def shape_of(head: bytes) -> frozenset[str]:
    """The paths of the fields in *head*, such as `info.exit_status` or `[].traj[].role`.

    Only the first entry of a list is looked into, and nothing deeper than four levels. Empty when *head* does not
    begin one JSON object or list, or when more than one document begins in it (JSON Lines).
    """
    text = head.decode(json.detect_encoding(head), "replace").lstrip()
    paths: set[str] = set()
    if text[:1] not in ("{", "["):
        return frozenset()
    stack: list[str | None] = []
    """Prefix of the fields of each open container; None in what is not looked into."""
    key = pending = ""
    opened = False
    for match in _MARK.finditer(text):
        mark = match.group()
        if mark == '"':
            break
        if not stack and opened:
            return frozenset()
        if mark in "{[":
            opened = True
            stack.append(_prefix(stack, key, opens_list=mark == "["))
            key = pending = ""
        elif mark in "}]":
            if not stack:
                return frozenset()
            stack.pop()
        elif mark == ",":
            _next_entry(stack)
        elif mark == ":":
            key = pending
            if stack and stack[-1] is not None:
                paths.add(stack[-1] + key)
        else:
            pending = mark[1:-1]
    return frozenset(paths)


def _prefix(stack: list[str | None], key: str, *, opens_list: bool) -> str | None:
    """The prefix of the fields in a container that opens; None below the depth or the first entry."""
    outer = stack[-1] if stack else ""
    if outer is None or len(stack) >= MAXIMUM_DEPTH:
        return None
    here = outer if outer.endswith("[]") else outer + key
    if opens_list:
        return here + "[]"
    return here + "." if here else ""


def _next_entry(stack: list[str | None]) -> None:
    """After the first entry of a list, the others are not looked into."""
    if stack and stack[-1] is not None and stack[-1].endswith("[]"):
        stack[-1] = None
