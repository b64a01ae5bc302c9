"""Claude Code's transcripts: one JSON Lines file a session, or a sub-agent.

One model call is written as several lines, one for each content block, with the same `message.id` and its usage
repeated; tool results may stand between them. The window's size is not recorded. What a compaction dropped stays
in the file above its boundary.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Final

from windowpane.sources.claude_code.content import Counted, contents_of, delegate_of, is_clear, text_of_attachment
from windowpane.sources.claude_code.session import Compaction, Session
from windowpane.sources.json_lines import count, head_rows, instant, mapping, text, texts
from windowpane.sources.reader import ProblemLog
from windowpane.sources.records import Cleared, ContentAdded, ContentRemoved
from windowpane.sources.transcript import Transcript, TranscriptReader

SYNTHETIC: Final = "<synthetic>"
"""The model of rows that Claude Code writes itself; no call was made."""
REMEMBERED_ROWS: Final = 128
"""Row ids looked back at for duplicates."""
_ROW_TYPES: Final = frozenset(
    {"user", "assistant", "system", "attachment", "progress", "summary", "queue-operation", "last-prompt", "mode"}
)
FRAGMENT: Final = "~"
"""Stands between a session and the file of another session that holds a part of it. A resumed session copies rows
of an older one; they are no other account of that one, which has a file of its own."""
IS_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_FINISHES_CALL: Final = frozenset({"stop_hook_summary", "turn_duration"})


class ClaudeCodeReader(TranscriptReader):
    """Reads the transcripts under `~/.claude/projects`."""

    format: ClassVar[str] = "claude_code"

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:
        """A row of one of Claude Code's types with a `sessionId`, or a snapshot of file history."""
        rows = head_rows(head)
        if not rows and path.suffix == ".jsonl":
            return b'"sessionId"' in head and b'"parentUuid"' in head
        return any(
            text(row.get("type")) in _ROW_TYPES and ("sessionId" in row or {"message", "uuid"} <= row.keys())
            for row in rows
        ) or any(row.get("type") == "file-history-snapshot" for row in rows)

    @staticmethod
    def default_paths() -> tuple[Path, ...]:
        """Where Claude Code keeps its projects' transcripts."""
        return (Path.home() / ".claude" / "projects",)

    def _begin(self, path: Path, reading: ProblemLog, *, complete: bool | None) -> Transcript:
        return _ClaudeTranscript(path, reading, complete=complete)


class _ClaudeTranscript(Transcript):
    def __init__(self, path: Path, reading: ProblemLog, *, complete: bool | None) -> None:
        super().__init__(path, reading, complete=complete)
        self._sessions: dict[str, Session] = {}
        self._current: Session | None = None
        self._own = ""
        self._seen: dict[str, tuple[str, int, int]] = {}
        self._roots: dict[str, str] = {}

    @property
    def settled(self) -> bool:
        return any(session.model for session in self._sessions.values())

    @property
    def opened(self) -> bool:
        return self._current is not None

    def take(self, row: dict[str, Any]) -> None:
        kind = row.get("type")
        if kind in ("user", "assistant"):
            self._message(row, reply=kind == "assistant")
        elif kind == "system":
            self._system(row)
        elif kind == "attachment":
            injected = text_of_attachment(mapping(row.get("attachment")))
            if injected:
                when = self.at(instant(row.get("timestamp")))
                content = ContentAdded("memory_injection", injected, key=text(row.get("uuid")), at=when)
                self._session(row).receive((content,))

    def finish(self) -> None:
        held = [session for session in self._sessions.values() if not session.finish(complete=self.complete)]
        if held:
            self.hold("the last model call or compaction is")

    # -- rows -------------------------------------------------------------------------------------------------

    def _message(self, row: dict[str, Any], *, reply: bool) -> None:
        message = row.get("message")
        session = self._session(row)
        if not isinstance(message, dict):
            self.reading.odd_line(self.line, "message", "expected an object")
            return
        counted = contents_of(message, row, reading=self.reading, line=self.line)
        if self._repeated(row, message, counted):
            return
        self._count(counted, row, reply=reply)
        when = self.at(instant(row.get("timestamp")))
        if reply:
            if message.get("model") != SYNTHETIC:
                self._reply(session, row, message, counted, when)
        elif row.get("isCompactSummary") is True:
            if not session.summarise(counted.text, when):
                session.receive(
                    ContentAdded("summary", content.text, key=content.key, at=when)
                    for content in counted.contents
                )
        else:
            child = delegate_of(row)
            if child and counted.tool_results == 1:
                key = f"{session.root_key}/agent-{child}"
                counted.contents[:] = [replace(content, child_key=key) for content in counted.contents]
            if counted.text and is_clear(counted.text) and session.used:
                session.interrupt()
                session.emit(Cleared(at=when))
                session.used = False
            session.receive(counted.contents)

    def _reply(
        self, session: Session, row: dict[str, Any], message: dict[str, Any], counted: Counted, when: float | None
    ) -> None:
        usage = message.get("usage")
        call_id = text(message.get("id")) or text(row.get("uuid")) or f"line-{self.line}"
        call = session.call_of(call_id, text(message.get("model")), mapping(usage))
        if isinstance(usage, dict):
            call.report(usage)
        stop_reason = message.get("stop_reason")
        call.finish(stop_reason if isinstance(stop_reason, str) else None, when)
        session.reply(counted.contents)

    def _system(self, row: dict[str, Any]) -> None:
        subtype = text(row.get("subtype"))
        if subtype in _FINISHES_CALL:
            self._session(row).interrupt()
        elif subtype == "compact_boundary":
            session = self._session(row)
            self.stats.compactions += 1
            session.compact(
                Compaction.of(mapping(row.get("compactMetadata")), self.at(instant(row.get("timestamp"))))
            )
        elif subtype == "microcompact_boundary":
            session = self._session(row)
            details = mapping(row.get("microcompactMetadata"))
            removed = texts(details.get("compactedToolIds"))
            self.stats.evictions += len(removed)
            session.interrupt()
            if removed:
                freed = count(details.get("tokensSaved")) or None
                when = self.at(instant(row.get("timestamp")))
                session.emit(ContentRemoved(removed, "microcompact", tokens_freed=freed, at=when))

    # -- figures ----------------------------------------------------------------------------------------------

    def _count(self, counted: Counted, row: dict[str, Any], *, reply: bool) -> None:
        stats = self.stats
        stats.messages += 1
        stats.tool_calls += counted.tool_calls
        stats.content_chars += counted.chars
        stats.max_tool_output_chars = max(stats.max_tool_output_chars, counted.max_output_chars)
        if not reply and not counted.tool_results and not row.get("isMeta") and not row.get("isCompactSummary"):
            stats.user_turns += 1

    def _repeated(self, row: dict[str, Any], message: dict[str, Any], counted: Counted) -> bool:
        """Whether the row was read already; another row under the same id is remarked and kept.

        A resumed session writes old rows again with small differences outside the message, so only what enters
        the window is compared.
        """
        row_id = row.get("uuid")
        if not isinstance(row_id, str) or not row_id:
            return False
        before = self._seen.get(row_id)
        signature = (text(message.get("id")), len(counted.contents), counted.chars)
        self._seen[row_id] = signature
        if len(self._seen) > REMEMBERED_ROWS:
            del self._seen[next(iter(self._seen))]
        if before is None:
            return False
        if before == signature:
            self.reading.odd(self.line, "uuid", f"row {row_id[:64]} is repeated; used once")
            return True
        self.reading.odd(self.line, "uuid", f"id {row_id[:64]} is used for two different rows; both used")
        return False

    # -- sessions ---------------------------------------------------------------------------------------------

    def _session(self, row: dict[str, Any]) -> Session:
        named = text(row.get("sessionId"))
        if not named:
            parent = self._current.root_key if self._current else self.path.stem
        elif named == self._own_session(named):
            parent = named
        else:
            parent = f"{named}{FRAGMENT}{self._own}"
        key = parent
        if row.get("isSidechain") is True:
            key = f"{parent}/{self._side_chain(row)}"
        session = self._sessions.get(key)
        if session is None:
            session = Session(key, parent, self.out, self.stats, at=instant(row.get("timestamp")))
            self._sessions[key] = session
            self.stats.sessions += 1
        if session is not self._current:
            self._current = session
            session.enter()
        return session

    def _own_session(self, named: str) -> str:
        """The session whose file this is: the one the file is called by, else the first it names."""
        if not self._own:
            self._own = self.path.stem if IS_UUID.fullmatch(self.path.stem) else named
        return self._own

    def _side_chain(self, row: dict[str, Any]) -> str:
        """The sub-agent a row belongs to: by its id, else by the first row of its chain."""
        agent_id = row.get("agentId")
        if isinstance(agent_id, str) and agent_id:
            return f"agent-{agent_id}"
        row_id, parent_id = text(row.get("uuid")), text(row.get("parentUuid"))
        root = self._roots.get(parent_id) or f"side-{row_id or self.line}"
        if row_id:
            self._roots[row_id] = root
            if len(self._roots) > REMEMBERED_ROWS:
                del self._roots[next(iter(self._roots))]
        return root
