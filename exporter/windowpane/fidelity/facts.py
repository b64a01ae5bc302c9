"""Facts that a summary without a model is written from, and the names that stay visible.

What the agent needs to go on is its situation and its rules, as the probe measures them, and the names and
settings that the conversation uses. Tool output is full of names that are never needed again, so a name counts
only if the user or the model wrote it, or if it occurs in more than one block.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from heapq import nsmallest
from typing import Final

from windowpane.core.names import file_name
from windowpane.core.vocabulary import ContentType
from windowpane.core.window.blocks import Block
from windowpane.fidelity.passages import WRITTEN_TYPES, names_in
from windowpane.fidelity.rules import find_rules
from windowpane.fidelity.situation import Fact, decisions, situation

MAXIMUM_NAMES: Final = 120
"""Names among the facts, the most critical ones."""
MAXIMUM_DECISIONS: Final = 40
MAXIMUM_NAMES_KEPT: Final = 160
"""Names that are looked up by `names_kept`."""
NEED_TURNS: Final = 4.0
"""Turns after which the need of a name has halved."""
UNWRITTEN_NEED: Final = 0.02
_WEIGHT: Final[dict[ContentType, int]] = {"user_message": 4, "summary": 3, "assistant_response": 2, "thinking": 2}
"""Blocks that a mention counts as."""
_SETTING: Final = re.compile(
    r"(?<![\w.-])([A-Za-z_][\w.-]{2,60})`?[ \t]?[=:][ \t]?`?([-+$]?\d[\d.,]*(?:%|[A-Za-z]{0,3}))(?![\w:/.-]*\w)"
)
_COMMON: Final = re.compile(r"[A-Za-z]+(?:/[A-Za-z]+)+|(?![0-9a-f]{7,40}$)[a-z0-9]+|[\d:.-]+")
"""Words with slashes between them, such as `a/an/the`, words with digits, dates and times."""

Names = tuple[str, ...]
NamesOf = Callable[[str], Names]


def names_of(text: str) -> Names:
    """Return the distinct names of a text, and its settings: `timeout=30s`."""
    text = text.replace("\\n", "\n")
    names = (name for name in names_in(text) if not _COMMON.fullmatch(name))
    settings = (f"{key}={value.rstrip('.,')}" for key, value in _SETTING.findall(text))
    return (*names, *dict.fromkeys(settings))


def extract_facts(blocks: Sequence[Block], names_of: NamesOf = names_of) -> tuple[Fact, ...]:
    """Return the facts of *blocks*, the most critical first within each kind.

    *names_of* may know the names of some texts already.
    """
    stated = (rule for rule in reversed(find_rules(blocks)) if rule.source != "memory")  # that is a file's text
    rules = (Fact("rule", rule.text, rule.block) for rule in stated)
    unreasoned = decisions(blocks, most=MAXIMUM_DECISIONS, with_reason=False)
    return (*situation(blocks), *unreasoned, *rules, *_Mentions(blocks, names_of).critical())


def blocks_of(text: str, content_type: ContentType = "assistant_response") -> tuple[Block, ...]:
    """Return an unstructured text as blocks, one per paragraph."""
    parts = (part for part in re.split(r"\n\s*\n", text) if part.strip())
    return tuple(
        Block(f"b{n}", content_type, max(1, len(part) // 4), 1, f"b{n}", 1, "", len(part), "estimate", part)
        for n, part in enumerate(parts)
    )


class _Mentions:
    """The blocks that have each name, counted without looking at names one by one: most occur once."""

    def __init__(self, blocks: Sequence[Block], names_of: NamesOf = names_of) -> None:
        self._read = [(block, names_of(block.text)) for block in blocks if block.text]
        self._number = Counter(name for _, names in self._read for name in names)
        self._last = {name: position for position, (_, names) in enumerate(self._read) for name in names}

    def critical(self) -> Iterator[Fact]:
        """Yield the names that prose or more than one block has, the most critical first; else the first ones."""
        weights = Counter({name: number for name, number in self._number.items() if number > 1})
        for block, names in self._read:
            weights.update(dict.fromkeys(names, _WEIGHT.get(block.content_type, 0)))
        values = Counter(name.partition("=")[0] for name in self._number if "=" in name)
        settled = {
            name for name in self._number if values[name.partition("=")[0]] < 2
        }  # else a counter or a time
        candidates = settled & (+weights).keys() or settled
        ranked = nsmallest(MAXIMUM_NAMES, ((-weights[name], -self._last[name], name) for name in candidates))
        for _, last, name in ranked:
            yield Fact("setting" if "=" in name else "name", name, self._read[-last][0].id)

    def needs(self) -> dict[str, float]:
        """Return the names that are most likely needed again after a cut, with how likely that is.

        Measured on recorded compactions of coding agents: the share of names that the agent used again within
        20 turns falls with the turns since the last mention, grows with the number of blocks that mention it, and
        is a fiftieth for names that only tools printed.
        """
        written = {name for block, names in self._read if block.content_type in WRITTEN_TYPES for name in names}
        turn = max((block.turn for block, _ in self._read), default=0)
        ages = [1.0 + (turn - block.turn) / NEED_TURNS for block, _ in self._read]
        needs = (
            (-math.log2(1 + number) / ages[self._last[name]] * (1.0 if name in written else UNWRITTEN_NEED), name)
            for name, number in self._number.items()
            if "=" not in name
        )
        return {name: -need for need, name in nsmallest(MAXIMUM_NAMES_KEPT, needs)}


def names_kept(removed: Sequence[Block], visible: Sequence[Block]) -> float | None:
    """Return the share of the names in *removed* that *visible* has, 0 to 1; None without names.

    Each name counts by how likely it is needed again. It measures what is not a summary, such as an eviction, and
    whether a text is a summary of another at all.
    """
    needs = _Mentions(removed).needs()
    total = math.fsum(needs.values())
    if not total:
        return None
    names = {file_name(name) for block in visible for name in names_of(block.text or "")}
    return math.fsum(need for name, need in needs.items() if file_name(name) in names) / total
