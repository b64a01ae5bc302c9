"""The state of one session while its events are read."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from windowpane.core.events import Usage
from windowpane.sources.transcripts.formats.copilot_cli.usage_store import UsageStore
from windowpane.sources.transcripts.json_lines import mapping, sequence, text
from windowpane.sources.transcripts.records import ModelCalled, SessionOpened


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
    output_tokens: int = 0
    """Of the last reply, as it states them."""
    requested: set[str] = field(default_factory=set)
    """Ids of the tool calls in replies."""
    retained: list[str] | None = None
    """Keys of the content since a compaction started; None outside one."""

    def stated_call(self, store: UsageStore) -> ModelCalled:
        """Return the call whose reply was read, with the usage that its events state, else that in the store."""
        assert self.call is not None
        if self.usage is not None:
            return replace(self.call, usage=self.usage)
        main, _, started_by = self.opened.session_key.partition("/")
        stated = self.output_tokens
        stored = stated and store.take(main, started_by=started_by, model=self.call.model, output_tokens=stated)
        if not stored or not stored.usage.input_total:
            return self.call
        return replace(self.call, usage=stored.usage, latency_seconds=stored.latency_seconds)


def blocks_text(reply: dict[str, Any]) -> str:
    """Return the reasoning that a reply holds as blocks of the provider; empty where it is encrypted."""
    blocks = map(mapping, sequence(mapping(reply.get("reasoningBlocks")).get("blocks")))
    return "\n".join(thought for block in blocks if (thought := text(block.get("thinking"))))


def compaction_trigger(stated: str) -> str:
    """Return the trigger of a compaction: `manual`, `auto`, or `unknown` where it is not stated."""
    return stated if stated == "manual" else "auto" if stated else "unknown"
