"""Missteps of an agent: tool results that failed, reads and calls that it repeats, corrections by its user.

They are recognized by the marks of blocks (`core.tracking.marks`), whichever way content was recorded. A call is
repeated where the same tool was called with the same arguments within the last 20 turns and nothing that it reads
can have changed since: so a longer session has no more chances to repeat a call. Tests after an edit are not
repeated calls, nor is waiting.
"""

from __future__ import annotations

from typing import Final, TypeVar

from windowpane.core.limits import REGRET_TURNS, TrackerSettings
from windowpane.core.vocabulary import Misstep
from windowpane.core.window.blocks import Block

Value = TypeVar("Value")

SHORTEST_ARGUMENTS: Final = 2
"""Characters of `{}`: a call without arguments, as one that lists what runs, asks for a state."""


def _can_repeat(call: Block) -> bool:
    """Return whether making a *call* twice is a misstep: of commands only where the program is known."""
    is_comparable = "reads" in call.marks or ("reports" in call.marks and bool(call.target))
    return call.chars > SHORTEST_ARGUMENTS and is_comparable


class MisstepWatch:
    """Recognizes missteps block by block; bounded, in constant time for each block."""

    def __init__(self, settings: TrackerSettings) -> None:
        self._capacity = settings.remembered_blocks
        self._calls: dict[str, tuple[int, int]] = {}
        """By digest, the turn of the last call and the number of changes before its result; bounded."""
        self._changes = 0
        """Number of calls so far that may have changed something."""
        self._changed: dict[str, int] = {}
        """By file, the number of the last call that changed it."""
        self._corrected_turn = 0

    def in_call(self, call: Block) -> Misstep | None:
        """Return the misstep that a tool *call* is: a repeated read, or another repeated call."""
        marks = call.marks
        misstep: Misstep | None = None
        if (earlier := self._calls.pop(call.digest, None)) is not None and _can_repeat(call):
            turn, changes = earlier
            is_file = "reads" in marks and "/" in (call.target or "")
            changed = self._changed.get(call.target or "", 0) if is_file else self._changes
            if call.turn - turn <= REGRET_TURNS and changed <= changes:
                misstep = "repeated_read" if "reads" in marks and call.target else "repeated_call"
        if "changes" in marks or "reports" in marks:
            self._changes += 1
            if "changes" in marks and call.target:
                self._remember(self._changed, call.target, self._changes)
        if call.digest:
            self._remember(self._calls, call.digest, (call.turn, self._changes))
        return misstep

    def in_result(self, result: Block) -> Misstep | None:
        """Return the misstep that the *result* of a tool call shows: an error, or that the user refused it."""
        if "refused" in result.marks:
            return self._correction(result)
        return "error" if "failed" in result.marks else None

    def in_message(self, message: Block) -> Misstep | None:
        """Return whether the user corrects the agent, at most once a turn."""
        return self._correction(message) if message.turn > 1 and "correction" in message.marks else None

    def _correction(self, block: Block) -> Misstep | None:
        if self._corrected_turn == block.turn:
            return None
        self._corrected_turn = block.turn
        return "correction"

    def _remember(self, memory: dict[str, Value], key: str, value: Value) -> None:
        memory.pop(key, None)
        memory[key] = value
        if len(memory) > self._capacity:
            del memory[next(iter(memory))]
