"""The content of one Claude Code row: blocks of Anthropic's Messages format, and attachments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from windowpane.core.vocabulary import ContentType
from windowpane.sources.transcripts.formats.anthropic_blocks import content_of
from windowpane.sources.transcripts.json_lines import mapping, sequence, text
from windowpane.sources.transcripts.reader import ProblemLog
from windowpane.sources.transcripts.records import ContentAdded

_FALLBACK: Final = "fallback"
"""A block that names the model which answered in place of another."""
_SHOWN_ONLY: Final = frozenset({"hook_system_message"})
"""Attachments that are shown to the user and not sent to the model."""
MEMORY_FILE: Final = "nested_memory"
"""An attachment with a memory file of a folder that the agent works in, whose text may be without its path."""
_FILE_START: Final = "Contents of "
"""Words before the path of a memory file."""
_CLEAR: Final = "<command-name>/clear</command-name>"


@dataclass(slots=True)
class RowContent:
    """The content of one row, with its counts for the statistics."""

    contents: list[ContentAdded] = field(default_factory=list)
    chars: int = 0
    tool_calls: int = 0
    tool_results: int = 0
    max_output_chars: int = 0

    @property
    def text(self) -> str:
        """The plain text of the row."""
        return "\n\n".join(content.text for content in self.contents if content.text)


def contents_of(
    message: dict[str, Any], row: dict[str, Any], *, key: str, at: float | None, log: ProblemLog, line: int
) -> RowContent:
    """Return the content that a user or assistant row adds to the window, under the *key* and time of the row."""
    plain: ContentType = (
        "assistant_response"
        if row.get("type") == "assistant"
        else "memory_injection"
        if row.get("isMeta") is True
        else "user_message"
    )
    return _Blocks(plain, key, at, log, line).read(message.get("content"))


def is_clear(content: str) -> bool:
    """Return whether a user's row is the command that empties the window."""
    return content.startswith(_CLEAR)


def delegate_of(row: dict[str, Any]) -> str:
    """Return the id of the sub-agent whose result a row holds; empty for other rows, or while it runs."""
    details = mapping(row.get("toolUseResult"))
    return text(details.get("agentId")) if details.get("status", "completed") == "completed" else ""


def texts_of_attachment(row: dict[str, Any]) -> list[str]:
    """Return the texts that an attachment row adds to the window: those that were sent, where the row has them.

    Memory files are a text each, which starts with the file's path.
    """
    attachment = mapping(row.get("attachment"))
    if "rendered" not in row:
        recorded = _recorded_text(attachment)
        return [recorded] if recorded else []
    sent = "\n".join(text(mapping(part).get("content")) for part in sequence(row.get("rendered")))
    return [part for part in _by_file(sent, sequence(attachment.get("files"))) if part]


def _recorded_text(attachment: dict[str, Any]) -> str:
    if text(attachment.get("type")) in _SHOWN_ONLY:
        return ""
    content = attachment.get("content")
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        inner = content.get("content")
        return inner if isinstance(inner, str) else text(mapping(content.get("file")).get("content"))
    parts = sequence(content) or sequence(attachment.get("addedBlocks")) or sequence(attachment.get("addedLines"))
    return "\n".join(part for part in parts if isinstance(part, str))


def _by_file(sent: str, files: Sequence[object]) -> list[str]:
    """Return *sent* cut before the path of each file; whole where a path is not in it."""
    parts, start = [], 0
    for file in files:
        cut = sent.find(f"{_FILE_START}{text(mapping(file).get('path'))} ", start)
        if cut < 0:
            return [sent]
        parts.append(sent[start:cut])
        start = cut
    return [*parts, sent[start:]]


class _Blocks:
    """Reads the blocks of one message."""

    def __init__(self, plain: ContentType, key: str, at: float | None, log: ProblemLog, line: int) -> None:
        self._plain = plain
        self._key = key
        self._at = at
        self._log = log
        self._line = line
        self._counted = RowContent()

    def read(self, content: object) -> RowContent:
        if isinstance(content, str):
            self._add(self._text(content))
        elif isinstance(content, list):
            for block in content:
                self._block(block)
        else:
            self._odd("message.content", "expected a string or an array")
        return self._counted

    def _block(self, block: object) -> None:
        if isinstance(block, str):
            self._odd("message.content", "a bare string where a block was expected")
            self._add(self._text(block))
        elif not isinstance(block, dict):
            self._odd("message.content", "expected a block, skipped")
        elif content := content_of(block, self._plain, key=self._key, at=self._at):
            self._add(content)
        elif block.get("type") != _FALLBACK:
            self._odd("message.content.type", f"unknown block type {text(block.get('type'))[:64]!r}, skipped")

    def _text(self, written: str) -> ContentAdded:
        return ContentAdded(self._plain, written, key=self._key, at=self._at)

    def _add(self, content: ContentAdded) -> None:
        counted, kind, size = self._counted, content.content_type, len(content.text or "")
        if kind == "thinking" and not size:
            content = replace(content, text=None)
        elif kind == self._plain and not size:
            return
        counted.chars += size
        counted.tool_calls += kind == "tool_call"
        if kind == "tool_result":
            counted.tool_results += 1
            counted.max_output_chars = max(counted.max_output_chars, size)
        counted.contents.append(content)

    def _odd(self, field_name: str, problem: str) -> None:
        self._log.odd(self._line, field_name, problem)
