"""The state of one session while its events are read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from windowpane.core.events import Usage
from windowpane.sources.records import ModelCalled, SessionOpened


class Prompt(NamedTuple):
    """A system prompt in the window."""

    text: str
    key: str


@dataclass(slots=True)
class CopilotSession:
    """The state of one session of a file: the main one, or a sub-agent's."""

    opened: SessionOpened
    prompts: dict[str, Prompt] = field(default_factory=dict)
    """The system prompts in the window, by role and name."""
    added: int = 0
    last_key: str | None = None
    """Key of the last content in the window."""
    keys: dict[str, str | None] = field(default_factory=dict)
    """Key of the last content before each event, by the event's id."""
    call: ModelCalled | None = None
    """The call whose reply was read, until its usage can no longer follow."""
    usage: Usage | None = None
    """Usage of the call whose reply has not come."""
    requested: set[str] = field(default_factory=set)
    """Ids of the tool calls in replies."""
    retained: list[str] | None = None
    """Keys of the content since a compaction started; None outside one."""


def compaction_trigger(stated: str) -> str:
    """Return the trigger of a compaction: `manual`, `auto`, or `unknown` where it is not stated."""
    return stated if stated == "manual" else "auto" if stated else "unknown"
