"""Marks of a block: what its text shows, for conclusions that are drawn without the text.

They are measured once, where the content is added. Failures are recognized by the start of an output, corrections
by the start of a message in English, and what a tool call does by its tool and its target.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from windowpane.core.names import without_wrappers
from windowpane.core.tracking.targets import READ_CHARACTERS as ARGUMENT_CHARACTERS
from windowpane.core.vocabulary import Access, ContentType, Mark
from windowpane.core.window.blocks import Block

# -- what a tool call does ------------------------------------------------------------------------------------

_COMMAND_TOOLS: Final = frozenset({"bash", "cmd", "command", "exec", "powershell", "shell", "terminal"})
"""Words in the names of tools that run commands."""
_CHANGING_TOOLS: Final = frozenset(
    {
        "add", "append", "apply", "commit", "create", "delete", "edit", "editor", "insert", "move", "multiedit",
        "patch", "plan", "push", "remove", "rename", "replace", "save", "send", "set", "stdin", "submit", "todo",
        "update", "write",
    }
)  # fmt: skip
"""Words in the names of tools that change something, and return a confirmation."""
_STATE_TOOLS: Final = frozenset({"poll", "sleep", "status", "wait"})
"""Words in the names of tools that report a state."""
_READING_PROGRAMS: Final = frozenset(
    {
        "ag", "awk", "bat", "cat", "egrep", "fgrep", "Get-Content", "git blame", "git cat-file", "git grep",
        "git show", "grep", "head", "jq", "less", "more", "nl", "rg", "sed", "Select-String", "strings", "tail",
        "type", "yq",
    }
)  # fmt: skip
"""Programs that print what files hold."""
_TOOL_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_VIEW: Final = re.compile(r'"command"\s{0,4}:\s{0,4}"view"')
"""The reading command of an editor that also writes."""


@lru_cache(maxsize=256)
def _terms_of(tool_name: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _TOOL_WORD.findall(tool_name))


def access_of(text: str | None, tool_name: str | None, target: str | None) -> Access:
    """Return what a tool call does: read content, change something, report a state as a build does, or wait."""
    tool = _terms_of(tool_name or "")
    if tool & _COMMAND_TOOLS:
        command = target or ""
        if command == "sleep":
            return "waits"
        return "reads" if {command, command.partition(" ")[0]} & _READING_PROGRAMS else "reports"
    if tool & _CHANGING_TOOLS:
        return "reads" if text and _VIEW.search(text, 0, ARGUMENT_CHARACTERS) else "changes"
    return "waits" if tool & _STATE_TOOLS else "reads"


# -- failed results -------------------------------------------------------------------------------------------

READ_CHARACTERS: Final = 400
"""Start of a tool's output in which its state is looked for."""
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


def may_have_failed(output: str) -> bool:
    """Return False for most outputs of calls that succeeded: on the agent's thread, only the others are read."""
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


# -- messages of the user -------------------------------------------------------------------------------------

CORRECTION: Final = re.compile(
    r"(?i)^[\s\"'*>-]{0,8}(?:no[,.! ]|nope|stop\b(?! hook)|wait[,. ]|don['’]?t\b|why did(?:n['’]t)? you"
    r"|you (?:forgot|ignored|should(?:n['’]t| not))|i (?:said|told)|that['’]s (?:wrong|not)|wrong|revert|undo"
    r"|\[request interrupted)"
)
"""Start of a message in which the user corrects the agent."""

# -- all marks ------------------------------------------------------------------------------------------------

NO_MARKS: Final[frozenset[Mark]] = frozenset()
MARKED_TYPES: Final[frozenset[ContentType]] = frozenset({"tool_call", "tool_result", "user_message"})
ACCESS_MARKS: Final[frozenset[Mark]] = frozenset({"reads", "changes", "reports", "waits"})
_ACCESS: Final[Mapping[Access, frozenset[Mark]]] = {
    "reads": frozenset({"reads"}),
    "changes": frozenset({"changes"}),
    "reports": frozenset({"reports"}),
    "waits": frozenset({"waits"}),
}
_FAILED_MARK: Final[frozenset[Mark]] = frozenset({"failed"})
_REFUSED_MARK: Final[frozenset[Mark]] = frozenset({"refused"})
_CORRECTION_MARK: Final[frozenset[Mark]] = frozenset({"correction"})
_WRAPPED_MARK: Final[frozenset[Mark]] = frozenset({"wrapped"})


def marks_of(
    content_type: ContentType,
    text: str | None,
    *,
    tool_name: str | None = None,
    target: str | None = None,
    call: Block | None = None,
) -> frozenset[Mark]:
    """Return the marks of content; *call* is the tool call that it is the result of, if the window holds it."""
    if content_type == "tool_call":
        return _ACCESS[access_of(text, tool_name, target)]
    if content_type == "tool_result":
        marks = _ACCESS[access_of(text, tool_name, target)] if call is None else call.marks
        if text and may_have_failed(text):
            if text.startswith(_REFUSED):
                return marks | _REFUSED_MARK
            if has_failed(text, call):
                return marks | _FAILED_MARK
        return marks
    if content_type == "user_message" and text:
        marks = NO_MARKS if CORRECTION.match(text) is None else _CORRECTION_MARK
        return marks if without_wrappers(text) else marks | _WRAPPED_MARK
    return NO_MARKS
