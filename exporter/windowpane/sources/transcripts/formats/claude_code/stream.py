"""The messages that Claude Code and its Agent SDK print (`--output-format stream-json`), saved to a file.

They are the rows of a transcript with other names: the session's id, and the call of a tool that started a
sub-agent. Neither times nor the output of single calls are printed; the result at the end has the sums.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Final

from windowpane.sources.transcripts.formats.claude_code.reader import ClaudeCodeReader
from windowpane.sources.transcripts.json_document import (
    DocumentLog,
    compact,
    kind_of,
    load_document,
    shape_of,
)
from windowpane.sources.transcripts.json_lines import (
    count,
    dollars,
    head_rows,
    is_lines,
    mapping,
    read_rows,
    sequence,
    text,
)
from windowpane.sources.transcripts.reader import FileStats, Problem
from windowpane.sources.transcripts.records import (
    LimitStated,
    Record,
    SessionClosed,
    SessionDescribed,
    SessionOpened,
)

USAGE_NAMES: Final = (
    "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens",
)  # fmt: skip
_MARKS: Final = (b'"session_id"', b'"subtype"', b'"parent_tool_use_id"')
_MICRO: Final = 1_000_000


class ClaudeStreamReader:
    """Reads printed messages: JSON Lines, a list, or an object that holds them as `messages`."""

    format: ClassVar[str] = "claude_stream"

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        """Return whether an entry is a message of a session, in the names of the stream."""
        del path
        if any(_is_printed(row) for row in head_rows(head)):
            return True
        paths = shape_of(head)
        is_document = any(name.startswith(("messages[].", "[].")) for name in paths)
        return is_document and all(mark in head for mark in _MARKS)

    def read(self, path: Path, *, stats: FileStats, problems: list[Problem]) -> Iterator[Record]:
        """Yield the records of all sessions. Raises `SourceError` when the file holds no messages."""
        log = DocumentLog(path, stats, problems)
        inner = FileStats()
        transcript = ClaudeCodeReader(complete=True).transcript(path, stats=inner, problems=problems)
        ending: SessionClosed | None = None
        """Of the last run: a stream may hold several."""
        for number, entry in _entries(path, log):
            stats.messages += 1
            transcript.line = number
            if entry.get("type") in ("user", "assistant") or entry.get("subtype") == "compact_boundary":
                transcript.read_row(_row(entry))
            elif entry.get("type") == "result":
                transcript.finish()
                transcript.out.extend(_result(entry, stats))
                failed = entry.get("is_error") is True or bool(sequence(entry.get("errors")))
                ending = SessionClosed("error: other" if failed else "completed")
            elif entry.get("subtype") == "init":
                transcript.out.extend(_start(entry))
            if transcript.settled:
                yield from transcript.out
                transcript.out.clear()
        transcript.finish()
        yield from transcript.out
        if ending is not None:
            yield ending
        stats.tool_calls, stats.sessions = inner.tool_calls, inner.sessions
        stats.api_calls, stats.compactions = inner.api_calls, inner.compactions
        stats.max_tool_output_chars, stats.peak_context = inner.max_tool_output_chars, inner.peak_context
        log.unstated("times, nor the output tokens of single calls")


def _is_printed(row: dict[str, Any]) -> bool:
    if "sessionId" in row or "session_id" not in row:
        return False
    return row.get("subtype") == "init" or (row.get("type") in ("user", "assistant") and "message" in row)


def _entries(path: Path, log: DocumentLog) -> Iterator[tuple[int, dict[str, Any]]]:
    if is_lines(path):
        for row in read_rows(path, log):
            if row.value is not None:
                log.stats.content_chars += len(compact(row.value))
                yield row.line, row.value
        return
    document = load_document(path, log)
    log.stats.content_chars += len(compact(document))
    listed = document if isinstance(document, list) else mapping(document).get("messages")
    if not isinstance(listed, list):
        log.fail(f"expected a list of messages, got {kind_of(listed)}")
    for number, entry in enumerate(listed):
        if isinstance(entry, dict):
            yield number, entry
        else:
            log.bad(f"messages[{number}]", f"expected an object, got {kind_of(entry)}")


def _row(entry: dict[str, Any]) -> dict[str, Any]:
    """Return a message in the names of a transcript."""
    row = {**entry, "sessionId": entry.get("session_id")}
    for name, printed in (("compactMetadata", "compact_metadata"), ("toolUseResult", "tool_use_result")):
        if printed in entry:
            row[name] = entry[printed]
    metadata = mapping(row.get("compactMetadata"))
    if metadata:
        row["compactMetadata"] = {**metadata, "preTokens": metadata.get("pre_tokens", metadata.get("preTokens"))}
    if text(entry.get("parent_tool_use_id")):
        row |= {"isSidechain": True, "agentId": entry["parent_tool_use_id"]}
    return row


def _start(entry: dict[str, Any]) -> Iterator[Record]:
    """Yield what the first message states of the session."""
    key = text(entry.get("session_id"))
    version = text(entry.get("claude_code_version"))[:64]
    if key:
        yield SessionOpened(
            key,
            "claude-code",
            text(entry.get("model"))[:200],
            agent_version=version,
            folder=text(entry.get("cwd")),
        )
        yield SessionDescribed(folder=text(entry.get("cwd")), agent_version=version)


def _result(entry: dict[str, Any], stats: FileStats) -> Iterator[Record]:
    """Count the sums of a run, and yield the window's size."""
    usage = mapping(entry.get("usage"))
    stats.add_usage(**{name: count(usage.get(name)) for name in USAGE_NAMES})
    spent = dollars(entry.get("total_cost_usd"))
    if spent:
        stats.add_usage(cost_microusd=round(spent * _MICRO))
    sizes = [count(mapping(model).get("contextWindow")) for model in mapping(entry.get("modelUsage")).values()]
    if len(sizes) == 1 and sizes[0]:
        yield LimitStated(sizes[0])
