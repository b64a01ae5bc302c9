"""Missteps of an agent: tool results that failed, reads and calls that it repeats, corrections by its user.

They are recognized by what the window holds, whichever way it was recorded. A call is repeated where the same
tool was called with the same arguments within the last 20 turns and nothing that it reads can have changed since:
so a longer session has no more chances to repeat a call. Tests after an edit are not repeated calls, nor is
waiting. Corrections are recognized in English.
"""

from __future__ import annotations

import re
from typing import Final, TypeVar

from windowpane.core.limits import REGRET_TURNS, TrackerSettings
from windowpane.core.tracking.regret import Access, access_of
from windowpane.core.vocabulary import ContentType, Misstep
from windowpane.core.window.blocks import Block

WATCHED_TYPES: Final[frozenset[ContentType]] = frozenset({"tool_call", "tool_result", "user_message"})

Value = TypeVar("Value")

READ_CHARACTERS: Final = 400
"""Start of a tool's output in which its state is looked for."""
SHORTEST_ARGUMENTS: Final = 2
"""Characters of `{}`: a call without arguments, as one that lists what runs, asks for a state."""
_FAILED: Final = ("<tool_use_error>", "error:", "error ", "[error", "script failed", "traceback (most recent")
"""Starts of outputs of calls that failed, in lower case."""
_REASON: Final = " failed:"
HEAD_CHARACTERS: Final = 60
_EXIT: Final = "xit"
_CODE: Final = re.compile(r"xit(?:ed)?(?: with)?(?: code| status):? [1-9]|xit_code\":\s?[1-9]", re.IGNORECASE)
_BEFORE_EXIT: Final = ("Process ", "Command ")
"""Words before it at the start of a line."""
_CODE_ONE: Final = re.compile(r"(?:code:?|status|\"exit_code\":) ?1\b", re.IGNORECASE)
_ANSWERS_BY_CODE: Final = frozenset(
    {"ag", "cmp", "diff", "egrep", "fgrep", "git diff", "git grep", "grep", "rg", "test", "which"}
)
"""Programs whose exit code 1 is an answer, not a failure."""
_REFUSED: Final = "The user doesn't want to"
"""Start of the result of a call that the user refused in Claude Code."""
_SPACES: Final = " \t\r\n"
_STARTS: Final = frozenset(start[:2].lower() for start in (*_FAILED, _REFUSED))
_FIRST: Final = frozenset({*_SPACES, *(start[0] for start in _STARTS), *(start[0].upper() for start in _STARTS)})
CORRECTION: Final = re.compile(
    r"(?i)^[\s\"'*>-]{0,8}(?:no[,.! ]|nope|stop\b(?! hook)|wait[,. ]|don['’]?t\b|why did(?:n['’]t)? you"
    r"|you (?:forgot|ignored|should(?:n['’]t| not))|i (?:said|told)|that['’]s (?:wrong|not)|wrong|revert|undo"
    r"|\[request interrupted)"
)
"""Start of a message in which the user corrects the agent."""


def may_be_misstep(output: str) -> bool:
    """Return False for most outputs that show no misstep: on the agent's thread, only the others are read."""
    return (
        _EXIT in output[:READ_CHARACTERS]
        or _REASON in output[:HEAD_CHARACTERS]
        or (output[:1] in _FIRST and output[:HEAD_CHARACTERS].lstrip(_SPACES)[:2].lower() in _STARTS)
    )


def has_failed(output: str, call: Block | None) -> bool:
    """Return whether the *output* of a tool *call* reports that it failed."""
    start = output[:READ_CHARACTERS]
    head = start[:HEAD_CHARACTERS].lstrip(_SPACES)
    if not (head.lower().startswith(_FAILED) or _REASON in head.partition("\n")[0] or _states_code(start)):
        return False
    program = (call.target or "") if call is not None else ""
    answers = {program, program.partition(" ")[0]} & _ANSWERS_BY_CODE
    return not (answers and _CODE_ONE.search(start))


def _states_code(start: str) -> bool:
    """Return whether a line starts with an exit code other than 0, or a field has one."""
    at = start.find(_EXIT)
    while at > 0:
        before = start[start.rfind("\n", 0, at) + 1 : at - 1]
        if (not before or before in _BEFORE_EXIT or before.endswith('"')) and _CODE.match(start, at):
            return True
        at = start.find(_EXIT, at + 3)
    return False


def _can_repeat(call: Block, access: Access) -> bool:
    """Return whether making a *call* twice is a misstep: of commands only where the program is known."""
    return call.chars > SHORTEST_ARGUMENTS and (access == "reads" or (access == "reports" and bool(call.target)))


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
        access = access_of(call)
        misstep: Misstep | None = None
        if (earlier := self._calls.pop(call.digest, None)) is not None and _can_repeat(call, access):
            turn, changes = earlier
            is_file = access == "reads" and "/" in (call.target or "")
            changed = self._changed.get(call.target or "", 0) if is_file else self._changes
            if call.turn - turn <= REGRET_TURNS and changed <= changes:
                misstep = "repeated_read" if access == "reads" and call.target else "repeated_call"
        if access in ("changes", "reports"):
            self._changes += 1
            if access == "changes" and call.target:
                self._remember(self._changed, call.target, self._changes)
        if call.digest:
            self._remember(self._calls, call.digest, (call.turn, self._changes))
        return misstep

    def in_result(self, result: Block, call: Block | None) -> Misstep | None:
        """Return the misstep that the result of a tool *call* shows: an error, or that the user refused it."""
        text = result.text or ""
        if text.startswith(_REFUSED):
            return self._correction(result)
        return "error" if has_failed(text, call) else None

    def in_message(self, message: Block) -> Misstep | None:
        """Return whether the user corrects the agent, at most once a turn."""
        is_correction = message.turn > 1 and CORRECTION.match(message.text or "") is not None
        return self._correction(message) if is_correction else None

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
