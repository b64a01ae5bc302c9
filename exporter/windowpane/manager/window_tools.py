"""The answers of a managed window to its own model: how full it is, what was removed, and the originals."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from windowpane.core.events import BlocksEvicted, ContentCompressed, Event
from windowpane.core.vocabulary import COMPONENTS
from windowpane.core.window_tools import (
    MATCHES,
    PAGE_TOKENS,
    REMOVALS,
    WINDOW_TOOLS,
    Count,
    WindowToolError,
    bounded,
    marked,
    page_answer,
)
from windowpane.manager.plans.placeholders import handle_of
from windowpane.manager.status import Status

SEARCHED: Final = 200
"""Originals that a search reads, the latest ones."""
PAGE_SHARE: Final = 8
"""A page takes at most this part of the usable window: `1 / PAGE_SHARE`."""
_CONTEXT: Final = 100
"""Characters around a match."""


def tool_definitions(shape: Literal["openai", "anthropic"]) -> list[dict[str, Any]]:
    """Return the definitions of the tools as a provider takes them."""
    if shape == "anthropic":
        return [
            {"name": tool.name, "description": tool.description, "input_schema": tool.schema}
            for tool in WINDOW_TOOLS
        ]
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.schema},
        }
        for tool in WINDOW_TOOLS
    ]


class Removal(NamedTuple):
    """A removed block, or several that a compaction replaced together."""

    handles: tuple[str, ...]
    """Handles under which the original may be archived."""
    text: str


class Original(NamedTuple):
    """An archived text."""

    handle: str
    text: str


def removals_of(events: Iterable[Event]) -> list[Removal]:
    """Return the removals that *events* record, the latest first."""
    removals: list[Removal] = []
    for event in events:
        turn, data = event.context.turn, event.data
        if isinstance(data, BlocksEvicted):
            for block in data.blocks:
                name = block.content_type.replace("_", " ") + (
                    f" of {block.tool_name}" if block.tool_name else ""
                )
                text = f"{name}, {block.tokens:,} tokens, turn {turn}, evicted: {block.reason}"
                removals.append(Removal((block.handle,) if block.handle else (), text))
        elif isinstance(data, ContentCompressed) and data.outcome == "accepted" and data.removed:
            strategy = data.strategy.replace("_", " ")
            sizes = f"{data.tokens_before:,} to {data.tokens_after:,} tokens"
            text = f"{len(data.removed)} blocks, turn {turn}, {strategy} from {sizes}"
            removals.append(Removal((handle_of(f"c{data.removed[0][1:]}"), handle_of(data.removed[0])), text))
    return removals[::-1]


class WindowAnswers:
    """Answers the calls of one window's model."""

    def __init__(
        self, status: Status, removals: Sequence[Removal], original: Callable[[str], str | None], count: Count
    ) -> None:
        """*original* returns an archived text by its handle."""
        self._status = status
        self._removals = removals
        self._original = original
        self._count = count

    def answer(self, name: str, arguments: str | Mapping[str, Any] | None) -> str:
        """Return the answer to a call, which for wrong arguments is the reason."""
        try:
            given = _read(arguments)
            match name:
                case "window_status":
                    return self._marked(self._status_lines())
                case "removed_content":
                    query = str(given.get("query") or "")
                    return self._marked(self._matches(query.split()) if query.strip() else self._listed())
                case _:
                    return self._text(str(given.get("id") or ""), given.get("start") or 0)
        except WindowToolError as error:
            return f"Error: {error}"

    def _status_lines(self) -> list[str]:
        used = {part: self._status.used_by_component.get(part, 0) for part in COMPONENTS}
        parts = sorted(((size, part) for part, size in used.items() if size), reverse=True)
        listed = ", ".join(f"{part.replace('_', ' ')} {size:,}" for size, part in parts)
        return [str(self._status), f"Filled by: {listed}."]

    def _listed(self) -> list[str]:
        listed = ((one, self._archived(one)) for one in self._removals[:REMOVALS])
        return [_line(one, original) for one, original in listed] or ["nothing was removed from the window"]

    def _matches(self, terms: Sequence[str]) -> list[str]:
        lines: list[str] = []
        for one in self._removals[:SEARCHED]:
            original = self._archived(one)
            passage = None if original is None else _passage(original.text, terms)
            if passage is not None:
                lines += [_line(one, original), f"  {passage}"]
        return lines[: 2 * MATCHES] or ["no original of removed content matches"]

    def _archived(self, one: Removal) -> Original | None:
        texts = ((handle, self._original(handle)) for handle in one.handles)
        return next((Original(handle, text) for handle, text in texts if text is not None), None)

    def _text(self, handle: str, start: object) -> str:
        text = self._original(handle)
        if text is None:
            raise WindowToolError(
                f"no original is stored under {handle[:80]!r}; removed_content lists the handles"
            )
        usable = self._status.usable_tokens or PAGE_SHARE * PAGE_TOKENS
        return page_answer("", text, start, self._count, tokens=min(PAGE_TOKENS, max(1, usable // PAGE_SHARE)))

    def _marked(self, lines: Sequence[str]) -> str:
        return marked(bounded(lines, self._count))


def _read(arguments: str | Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Return the arguments of a call: a JSON object, or a mapping."""
    if not isinstance(arguments, str):
        return arguments or {}
    try:
        value = json.loads(arguments or "{}")
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise WindowToolError("the arguments are not a JSON object")
    return value


def _line(one: Removal, original: Original | None) -> str:
    return f"{'not archived' if original is None else original.handle}: {one.text}"


def _passage(text: str, terms: Sequence[str]) -> str | None:
    """Return the passage around the first of *terms*; None unless all occur."""
    folded = text.casefold()
    positions = [folded.find(word.casefold()) for word in terms]
    if min(positions) < 0:
        return None
    return " ".join(text[max(0, positions[0] - _CONTEXT) : positions[0] + _CONTEXT].split())
