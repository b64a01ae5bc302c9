"""Names of agents, models, sessions and projects, and the descriptions that people recognize a session by.

They come from recordings and users, so a name may hold a secret, a line break or a character that steers a
terminal; none of these reaches an event.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final, TypedDict, Unpack

from windowpane.core.characters import plain
from windowpane.core.events import SessionDescribed
from windowpane.core.redaction import redact
from windowpane.core.vocabulary import TitleSource
from windowpane.exceptions import ConfigurationError

PROJECT_EXPECTED: Final = "at most 64 letters, digits, dots, dashes or underscores, a letter or digit first"
_PROJECT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def check_name(key: str, name: object) -> None:
    """Raise `ConfigurationError` about *key* unless *name* is a text that is not empty."""
    if not isinstance(name, str):
        raise ConfigurationError(key, f"a {type(name).__name__}", expected="a name")
    if not name:
        raise ConfigurationError(key, "must not be empty", expected="a short name")


def check_description(**texts: object) -> None:
    """Raise `ConfigurationError` about the first of *texts* that is not a text; it may be empty."""
    for key, text in texts.items():
        if not isinstance(text, str):
            raise ConfigurationError(key, f"a {type(text).__name__}", expected="a text")


def check_project(key: str, name: object) -> None:
    """Raise `ConfigurationError` about *key* unless *name* is the name of a project, or empty for none."""
    check_description(**{key: name})
    if name and _PROJECT.fullmatch(str(name)) is None:
        raise ConfigurationError(key, "is not the name of a project", expected=PROJECT_EXPECTED)


_MCP_TOOL: Final = re.compile(r"mcp__(.{1,120}?)__.")


def mcp_server_of(tool: str) -> str | None:
    """Return the MCP server of a tool named `mcp__SERVER__TOOL`; None for others."""
    server = _MCP_TOOL.match(tool)
    return None if server is None else server[1]


def mcp_tool_name(server: str, tool: str) -> str:
    """Return the name of an MCP server's tool as Claude Code forms it, where another agent names both."""
    return f"mcp__{server}__{tool}"


def name_in_namespace(namespace: object, tool: object) -> object:
    """Return the name of a tool that Codex calls in a namespace, which is `mcp__SERVER` for an MCP server."""
    is_server = isinstance(namespace, str) and namespace.startswith("mcp__")
    return f"{namespace}__{tool}" if is_server and isinstance(tool, str) else tool


def repository_name(repository: str, folder: str) -> str:
    """Return the last part of an address or path of a repository, else of the *folder*; empty without either."""
    return file_name(repository.removesuffix(".git")) or file_name(folder)


def file_name(path: str) -> str:
    """Return the last part of a path of any platform."""
    return path.rstrip("/\\").replace("\\", "/").rpartition("/")[2]


TITLE_CHARACTERS: Final = 80
NAME_CHARACTERS: Final = 200
"""Longest folder, repository, branch, version, label and project."""
_READ_CHARACTERS: Final = 4_096
"""Part of a text that a title is made of: enough for a secret that starts within the title."""
_RANK: Final[dict[TitleSource, int]] = {"first_message": 0, "agent": 1, "user": 2}
"""A title replaces one of the same or a lower rank."""
WRAPPERS: Final = (
    "system-reminder", "environment_context", "environment_details", "user_instructions", "turn_aborted",
    "ide_opened_file", "ide_selection", "ide_diagnostics", "command-name", "command-message",
    "command-args", "local-command-stdout", "local-command-stderr", "local-command-caveat", "bash-input",
    "bash-stdout", "bash-stderr", "user-memory-input", "skill", "INSTRUCTIONS", "uploaded_files",
    "task-notification", "collaboration_mode", "apps_instructions", "skills_instructions",
    "subagent_notification", "teammate-message", "cross-session-message", "user_shell_command",
    "user-prompt-submit-hook", "explicit_instructions", "persisted-output",
)  # fmt: skip
"""Elements that agents' programs put into or around the words of a user."""
_COMMAND: Final = re.compile(r"/[A-Za-z][\w:-]{0,63}")
_WRAPPED: Final = re.compile(
    "|".join(f"<{re.escape(name)}(?:>|\\s[^>]{{0,200}}>).*?(?:</{re.escape(name)}>|\\Z)" for name in WRAPPERS),
    re.DOTALL,
)
ENCLOSING: Final = re.compile(r"</?(?:user_input|user_message|user_query|task|feedback)(?:\s[^>]{0,200})?>")
"""Marks of elements that programs put around what the user wrote."""
GENERATED: Final = (
    # added to the conversation
    "# AGENTS.md instructions", "Caveat: The messages below", "[Request interrupted", "[Image:", "API Error",
    "[This turn ended before", "[Agent call", "Message Type: ", "Base directory for this skill: ",
    "Another Claude session sent a message", "A peer session sent a message", "Stop hook feedback",
    "Stop hook blocking error", "Output token limit hit", "The user stepped away and is coming back",
    "[SUGGESTION MODE",  # Claude Code
    "The following tool was executed by the user",  # OpenCode
    "I ran the following shell command:", "System: Please continue.",  # Gemini CLI, Qwen Code
    "I have *added these files to the chat*",  # aider
    # requests for a summary or a title
    "CRITICAL: Respond with TEXT ONLY", "Your task is to create a detailed summary",
    "Summarize this portion of a Claude Code session", "Please write a 5-10 word title",  # Claude Code
    "You are performing a CONTEXT CHECKPOINT COMPACTION",  # Codex
    "Provide a detailed prompt for continuing our conversation", "Create a new anchored summary",
    "Update the anchored summary", "Generate a title for this conversation",  # OpenCode
    "Provide a detailed summary of our conversation",  # Crush
    "The messages above are a conversation to summarize", "The messages above are NEW conversation",  # pi
    "First, reason in your scratchpad", "Generate a new <state_snapshot>",  # Gemini CLI, Qwen Code
    "The current conversation is rapidly running out of context",  # Cline
    "*Briefly* summarize this partial conversation",  # aider
    # summaries
    "This session is being continued from a previous conversation",  # Claude Code
    "Another language model started to solve this problem",  # Codex
    "The conversation history before this point was compacted",  # pi
    "I spoke to you previously about a number of things",  # aider
)  # fmt: skip
"""Starts of messages that a program wrote in the user's name, by the agents' sources and recordings."""


class Description(TypedDict, total=False):
    """The statements about a session; an absent or empty field is not stated."""

    title: str
    title_source: TitleSource
    folder: str
    repository: str
    branch: str
    agent_version: str
    label: str
    project: str


class SessionDescriptions:
    """The description of one session so far, which turns further statements into events."""

    def __init__(self) -> None:
        self._stated: dict[str, str] = {}
        """The latest statement by field, as it came in: repetitions are frequent."""
        self._lines: dict[str, str] = {}
        self._rank = -1

    @property
    def has_title(self) -> bool:
        """Return whether any title is known."""
        return self._rank >= 0

    def state(self, **stated: Unpack[Description]) -> SessionDescribed | None:
        """Return the event of a statement, with the fields that it changes; None where it changes nothing.

        A title never replaces one that was given by its user, nor the first message one by the agent.
        """
        source = stated.pop("title_source", "agent")
        if _RANK[source] < self._rank:
            stated.pop("title", None)
        changed = {
            name: line for name, given in stated.items() if given and (line := self._changed(name, str(given)))
        }
        if not changed:
            return None
        if "title" in changed:
            self._rank = _RANK[source]
        described = SessionDescribed(title_source=source if "title" in changed else None)
        return replace(described, **changed)  # type: ignore[arg-type]  # the names are those of `Description`

    def _changed(self, name: str, given: str) -> str:
        """Return the line of a statement; empty where it changes nothing."""
        if self._stated.get(name) == given:
            return ""
        self._stated[name] = given
        line = described_line(given, TITLE_CHARACTERS if name == "title" else NAME_CHARACTERS)
        if line == self._lines.get(name):
            return ""
        self._lines[name] = line
        return line


def described_line(text: str, maximum: int) -> str:
    """Return the start of *text* as one redacted line of at most *maximum* characters."""
    line = plain(" ".join(redact(text[:_READ_CHARACTERS]).text.split()))
    return line if len(line) <= maximum else line[: maximum - 1].rstrip() + "…"


def without_wrappers(text: str) -> str:
    """Return the text of a user message without what programs add to it; empty where they wrote all of it.

    A command alone, such as `/mode`, does not name a session either.
    """
    own = ENCLOSING.sub(" ", _WRAPPED.sub(" ", text[: 8 * _READ_CHARACTERS])).strip()
    return "" if is_generated(own) or _COMMAND.fullmatch(own) else own


def is_generated(text: str) -> bool:
    """Return whether a program wrote a message in the user's name."""
    return text.lstrip().startswith(GENERATED)
