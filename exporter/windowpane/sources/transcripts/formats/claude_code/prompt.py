"""The system prompt and tools of a Claude Code session, which transcripts of release 2.1.257 and later state.

A `prompt_snapshot` is written twice for a window: before its first call with the system prompt alone, and after
the reply with all that the call sent. A `deferred_tools_record` holds tools that a search loaded; snapshots leave
these out. `api-request-shape` rows repeat both, so they are not read.
"""

from __future__ import annotations

from typing import Any, Final

from windowpane.sources.transcripts.json_lines import as_json, mapping, sequence, text, texts
from windowpane.sources.transcripts.records import ContentAdded, ContentRemoved

SNAPSHOT: Final = "prompt_snapshot"
LOADED_TOOLS: Final = "deferred_tools_record"
REPLACED: Final = "replaced"
"""Policy of a part that another version replaces."""

Parts = dict[str, ContentAdded]
"""Parts of the prompt by their keys."""


class SentPrompt:
    """The part of every call before its messages, by the newest rows."""

    def __init__(self) -> None:
        self.is_partial = False
        """The latest snapshot is without tools: another follows the reply of the next call."""
        self._snapshot: Parts = {}
        self._loaded: Parts = {}
        self._sent: Parts = {}
        """The parts that are in the window."""
        self.version = 0
        """Number of the changes so far."""
        self._versions: dict[str, int] = {}
        """By part, the version that put it into the window."""

    def read(self, attachment: dict[str, Any]) -> None:
        """Read a snapshot, or the tools that a search loaded; an attachment of another type states nothing."""
        kind = attachment.get("type")
        if kind == SNAPSHOT:
            self.is_partial = not isinstance(attachment.get("tools"), list)
            former = self._snapshot if self.is_partial else {}
            self._snapshot = former | _system_prompt(attachment) | _tools(attachment.get("tools"))
        elif kind == LOADED_TOOLS:
            self._loaded |= _tools(attachment.get("entries"))

    def changes(self) -> list[ContentRemoved | ContentAdded]:
        """Return what changes the parts in the window into those stated last."""
        stated = self._loaded | self._snapshot
        before = {key: part for key, part in self._sent.items() if part != stated.get(key)}
        removed = [ContentRemoved(tuple(before), REPLACED)] if before else []
        added = {key: part for key, part in stated.items() if part != self._sent.get(key)}
        self._sent = stated
        if removed or added:
            self.version += 1
            self._versions |= dict.fromkeys(added, self.version)
        return [*removed, *added.values()]

    def rewind(self, version: int) -> None:
        """Add the system prompts put in since *version*, which left with a branch, again before the next call."""
        self._sent = {
            key: part
            for key, part in self._sent.items()
            if part.content_type == "tool_definition" or self._versions[key] <= version
        }


def _system_prompt(attachment: dict[str, Any]) -> Parts:
    """Return the blocks of the system prompt: the prefix, and the strings joined as they are sent."""
    blocks = {
        "system-prefix": text(attachment.get("cliPrefix")),
        "system-prompt": "\n\n".join(texts(attachment.get("systemPrompt"))),
    }
    return {key: ContentAdded("system_prompt", block, key=key) for key, block in blocks.items() if block}


def _tools(stated: object) -> Parts:
    """Return the definitions of tools as they are sent, without the mark of one that is loaded by a search."""
    tools: Parts = {}
    for tool in map(mapping, sequence(stated)):
        sent = mapping(tool.get("schema")) or tool
        definition = as_json({name: value for name, value in sent.items() if name != "defer_loading"})
        name = text(tool.get("name"))
        key = f"tool-{name}"
        tools[key] = ContentAdded("tool_definition", definition, None, name or None, key=key)
    return tools
