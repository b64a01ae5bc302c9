"""Rewinds of a Claude Code session, recognized by the chain of its rows.

Each row names its parent. In a conversation without branches every earlier prompt is an ancestor of the next one.
A user who rewinds writes a prompt beside an earlier one, with the same ancestors, and abandons what came between.
Only prompts show this: results of parallel tool calls, local commands and attachments are branches as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

MAXIMUM_ROWS: Final = 50_000
"""Rows of a file whose parents are remembered, the latest."""
MAXIMUM_STEPS: Final = 20_000
"""Ancestors of a prompt that are looked at."""
MAXIMUM_PROMPTS: Final = 1_000
"""Prompts that a rewind can return to, the latest."""


class RowParents:
    """The parents of a file's rows."""

    def __init__(self) -> None:
        self._parents: dict[str, str] = {}
        self._latest = ""

    def __contains__(self, row_id: str) -> bool:
        return row_id in self._parents

    def add(self, row_id: str, parent_id: str) -> None:
        """Remember the parent of a row; empty for a row that follows none."""
        if not row_id or row_id in self._parents:
            return
        self._parents[row_id] = self._latest if parent_id == self._latest else parent_id  # one string for both
        self._latest = row_id
        if len(self._parents) > MAXIMUM_ROWS:
            del self._parents[next(iter(self._parents))]

    def ancestors(self, row_id: str) -> Iterator[str]:
        """Yield the ancestors of a row, the nearest first, as far as they are in the file."""
        for _ in range(MAXIMUM_STEPS):
            row_id = self._parents.get(row_id, "")
            if not row_id or row_id not in self._parents:
                return
            yield row_id


class _Prompt(NamedTuple):
    row_id: str
    compactions: int
    """Compactions of the session before it."""


class Abandoned(NamedTuple):
    """The point that a user rewound to."""

    first_prompt: str
    """Row of the first abandoned prompt; the conversation continues before it."""
    compactions: int
    """Compactions since."""


class LivePrompts:
    """The prompts of the live branch of one session."""

    def __init__(self) -> None:
        self._prompts: list[_Prompt] = []
        self._above_first: frozenset[str] = frozenset()
        """Rows that the first prompt follows."""
        self._compactions = 0

    def add(self, row_id: str, parents: RowParents) -> Abandoned | None:
        """Add the prompt of a row; return what it abandoned, or None where it follows the latest prompt."""
        abandoned = self._abandoned(row_id, parents)
        if abandoned is not None:
            del self._prompts[self._number(abandoned.first_prompt) :]
            self._compactions -= abandoned.compactions
        if not self._prompts:
            self._above_first = frozenset(parents.ancestors(row_id))
        self._prompts.append(_Prompt(row_id, self._compactions))
        if len(self._prompts) > MAXIMUM_PROMPTS:
            del self._prompts[0]
            self._above_first = frozenset()
        return abandoned

    def compact(self, *, keeps_rows: bool) -> None:
        """Count a compaction. Later rows may follow those that it kept, which shows no rewind."""
        if keeps_rows:
            self.clear()
        else:
            self._compactions += 1

    def clear(self) -> None:
        """Forget the prompts: the next one opens another conversation."""
        self._prompts.clear()
        self._above_first = frozenset()
        self._compactions = 0

    def _abandoned(self, row_id: str, parents: RowParents) -> Abandoned | None:
        if not self._prompts:
            return None
        numbers = {prompt.row_id: number for number, prompt in enumerate(self._prompts)}
        for ancestor in parents.ancestors(row_id):
            if ancestor in numbers:
                return self._from(numbers[ancestor] + 1)
            if ancestor in self._above_first:
                return self._from(0)
        return None

    def _from(self, number: int) -> Abandoned | None:
        if number == len(self._prompts):
            return None
        first = self._prompts[number]
        return Abandoned(first.row_id, self._compactions - first.compactions)

    def _number(self, row_id: str) -> int:
        return next(number for number, prompt in enumerate(self._prompts) if prompt.row_id == row_id)
