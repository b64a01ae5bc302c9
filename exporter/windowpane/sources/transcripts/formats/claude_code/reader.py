"""Claude Code's transcripts: one JSON Lines file a session, or a sub-agent.

One model call is written as several lines, one per content block, with the same `message.id` and its usage
repeated; tool results may be between them. The window's size is recorded only where the model's name or a beta
of a request has the variant of a million tokens. Content that a compaction removed
remains in the file, above the compaction.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

from windowpane.core.agents import CLAUDE_CODE_LARGE_SUFFIX, CLAUDE_CODE_LARGE_WINDOW
from windowpane.core.names import without_wrappers
from windowpane.sources.transcripts.formats.agent_sidecar import description_of
from windowpane.sources.transcripts.formats.claude_code.branches import RowParents
from windowpane.sources.transcripts.formats.claude_code.compaction import (
    Compaction,
    cleared_results,
    replaced_results,
)
from windowpane.sources.transcripts.formats.claude_code.content import (
    MEMORY_FILE,
    RowContent,
    contents_of,
    delegate_of,
    is_clear,
    texts_of_attachment,
)
from windowpane.sources.transcripts.formats.claude_code.prompt import LOADED_TOOLS, SNAPSHOT
from windowpane.sources.transcripts.formats.claude_code.session import ClaudeSession
from windowpane.sources.transcripts.formats.forks import IS_UUID, ForkedTranscript
from windowpane.sources.transcripts.json_lines import head_rows, instant, mapping, text, texts
from windowpane.sources.transcripts.reader import ProblemLog
from windowpane.sources.transcripts.records import ContentAdded, ContentRemoved, LimitStated, SessionDescribed
from windowpane.sources.transcripts.transcript import Transcript, TranscriptReader

BOOKKEEPING: Final = frozenset(
    {
        "agent-color", "agent-name", "agent-setting", "api-request-blob", "api-request-shape",
        "artifact-autoreact-ledger", "artifact-comment-monitor", "atis-latch", "attribution-snapshot",
        "bridge-session", "continued-in", "cost-state", "dev-mods", "ended-by-model", "file-history-delta",
        "file-history-snapshot", "frame-link", "history-suppression", "isolation-latch", "last-prompt",
        "marble-origami-snapshot", "memory-mode", "mode", "observer-ref", "permission-mode", "progress",
        "queue-operation", "relocated", "result", "speculation-accept", "started", "tag", "task-summary",
        "telemetry-latch", "tools-used", "worktree-state",
    }
)  # fmt: skip
"""Types of rows that add nothing to a window."""
LARGE_BETA: Final = "context-1m"
"""Start of the beta that a request for the larger window has."""

CLEAR_HOOK: Final = "SessionStart:clear"
"""The hook that runs after `/clear`, and where a plan is accepted into a fresh context."""
SYNTHETIC: Final = "<synthetic>"
"""The model of rows that Claude Code writes without a model call."""
RECENT_ROWS: Final = 128
"""Row ids searched for duplicates."""
_ROW_TYPES: Final = frozenset(
    {
        "user",
        "assistant",
        "system",
        "attachment",
        "progress",
        "summary",
        "mode",
        "api-request",
        *(kind for kind in BOOKKEEPING if "-" in kind),
    }
)
TITLE_FIELDS: Final = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}
"""Rows that hold a title, and its field."""
MAXIMUM_SUMMARIES: Final = 64
"""Summaries that wait for the row that they name."""
FRAGMENT: Final = "~"
"""Separates a session from the file of another session that holds copies of its rows, in the key of these copies.
A resumed session copies rows of an older one, whose own file remains the record of it."""
_OPENING: Final = frozenset({"user", "assistant", "system", "attachment"})
"""Types of rows that are part of a conversation."""
_FINISHES_CALL: Final = frozenset({"stop_hook_summary", "turn_duration"})


class ClaudeCodeReader(TranscriptReader):
    """Reads the transcripts under `~/.claude/projects`."""

    format: ClassVar[str] = "claude_code"

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        """Return whether a row has one of Claude Code's types and a `sessionId`, or is a file snapshot."""
        rows = head_rows(head)
        if not rows and path.suffix == ".jsonl":
            return b'"sessionId"' in head and b'"parentUuid"' in head
        return any(
            text(row.get("type")) in _ROW_TYPES and ("sessionId" in row or {"message", "uuid"} <= row.keys())
            for row in rows
        ) or any(row.get("type") == "file-history-snapshot" for row in rows)

    def _start(self, path: Path, log: ProblemLog, *, complete: bool | None) -> Transcript:
        return _ClaudeTranscript(path, log, complete=complete)


class _RowHead(NamedTuple):
    """The fields that rows of every type may have; empty where one has not."""

    row_id: str = ""
    parent_id: str = ""
    session_id: str = ""
    version: str = ""
    folder: str = ""
    branch: str = ""
    at: float | None = None

    @classmethod
    def of(cls, row: dict[str, Any]) -> _RowHead:
        row_id, parent_id, session_id, version, folder, branch = map(text, map(row.get, _HEAD_FIELDS))
        return cls(row_id, parent_id, session_id, version, folder, branch, instant(row.get("timestamp")))


_HEAD_FIELDS: Final = ("uuid", "parentUuid", "sessionId", "version", "cwd", "gitBranch")


class _ClaudeTranscript(ForkedTranscript):
    def __init__(self, path: Path, log: ProblemLog, *, complete: bool | None) -> None:
        super().__init__(path, log, complete=complete)
        self._sessions: dict[str, ClaudeSession] = {}
        self._current: ClaudeSession | None = None
        self._own = ""
        self._head = _RowHead()
        """The head of the row that is read now."""
        self._seen: dict[str, tuple[object, int, int]] = {}
        self._roots: dict[str, str] = {}
        self._parents = RowParents()
        self._summaries: dict[str, str] = {}
        """Titles by the row that they name, which is not read yet."""
        self._replaced: set[str] = set()
        self._unread: SessionDescribed | None = None
        """A name that was written before the first row."""

    @property
    def settled(self) -> bool:
        return any(session.model for session in self._sessions.values())

    @property
    def opened(self) -> bool:
        return self._current is not None

    def names_session(self, row: dict[str, Any]) -> bool:
        return bool(text(row.get("sessionId")))

    def opens_session(self, row: dict[str, Any]) -> bool:
        return text(row.get("type")) in _OPENING

    def read_row(self, row: dict[str, Any]) -> None:
        kind = row.get("type")
        self._head = _RowHead.of(row)
        self._link(row)
        if _clears(row):
            self._session(row).clear(self.at(self._head.at))
        if kind in ("user", "assistant"):
            self._message(row, reply=kind == "assistant")
        elif kind == "system":
            self._system(row)
        elif kind == "attachment":
            self._attachment(row)
        elif kind == "content-replacement":
            self._replace(row)
        elif kind in ("api-request", "cost-state"):
            self._name_variant(row)
        elif kind == "fork-context-ref":
            self.log.odd(
                self.line,
                kind,
                "starts with the conversation of its parent, which is not in the file: unattributed",
            )
        elif text(kind) in TITLE_FIELDS or kind == "pr-link":
            self._name(row, text(kind))
        elif text(kind) not in BOOKKEEPING:
            self.report_unknown(text(kind))

    def finish(self) -> None:
        held = [session for session in self._sessions.values() if not session.finish(complete=self.complete)]
        if held:
            self.report_deferred("the last model call or compaction is")

    def end_repeated(self) -> None:
        for session in self._sessions.values():
            session.end_copy()

    # -- rows -------------------------------------------------------------------------------------------------

    def _message(self, row: dict[str, Any], *, reply: bool) -> None:
        message = row.get("message")
        session = self._session(row)
        if not isinstance(message, dict):
            self.log.odd_line(self.line, "message", "expected an object")
            return
        counted = contents_of(message, row, key=self._head.row_id, at=self._head.at, log=self.log, line=self.line)
        if self._repeated(row, message, counted):
            return
        self._count(counted, row, reply=reply)
        session.is_linked = session.is_linked or bool(row.get("parentUuid"))
        when = self.at(self._head.at)
        if reply:
            if message.get("model") != SYNTHETIC:
                self._reply(session, message, counted, when)
        elif row.get("isCompactSummary") is True:
            if not session.add_summary(counted.text, when):
                session.receive(
                    ContentAdded("summary", content.text, key=content.key, at=when)
                    for content in counted.contents
                )
        else:
            child = delegate_of(row)
            if child and counted.tool_results == 1:
                key = f"{session.root_key}/agent-{child}"
                counted.contents[:] = [replace(content, child_key=key) for content in counted.contents]
            if counted.text and (is_clear(counted.text) or _starts_anew(row, session)):
                session.clear(when)
            elif _is_prompt(row, counted):
                session.add_prompt(self._head.row_id, self._parents, when)
            session.receive(counted.contents)

    def _reply(
        self,
        session: ClaudeSession,
        message: dict[str, Any],
        counted: RowContent,
        when: float | None,
    ) -> None:
        usage = message.get("usage")
        call_id = text(message.get("id")) or self._head.row_id or f"line-{self.line}"
        call = session.call_of(call_id, text(message.get("model")), mapping(usage))
        if isinstance(usage, dict):
            call.add_usage(usage)
        stop_reason = message.get("stop_reason")
        call.add_end(stop_reason if isinstance(stop_reason, str) else None, when)
        ends_with_text = bool(counted.contents) and counted.contents[-1].content_type == "assistant_response"
        call.is_whole = stop_reason == "end_turn" and ends_with_text  # reasoning has a text after it
        session.reply(counted.contents)

    def _attachment(self, row: dict[str, Any]) -> None:
        attachment = mapping(row.get("attachment"))
        kind = attachment.get("type")
        if kind == "model":
            model = text(mapping(attachment.get("identity")).get("modelId"))
            is_large = model.endswith(CLAUDE_CODE_LARGE_SUFFIX)
            self._state_window(self._session(row), CLAUDE_CODE_LARGE_WINDOW if is_large else None)
        elif kind in (SNAPSHOT, LOADED_TOOLS):
            self._session(row).read_prompt(attachment)
        injected = texts_of_attachment(row)
        if injected:
            key, when = self._head.row_id, self.at(self._head.at)
            file = (text(attachment.get("path")) or None) if kind == MEMORY_FILE else None
            self._session(row).receive(
                ContentAdded("memory_injection", written, key=key, at=when, memory_file=file)
                for written in injected
            )

    def _system(self, row: dict[str, Any]) -> None:
        subtype = text(row.get("subtype"))
        if subtype in _FINISHES_CALL:
            self._session(row).end_call()
        elif subtype == "compact_boundary":
            session = self._session(row)
            self.stats.compactions += 1
            session.compact(Compaction.from_row(row, self.at(self._head.at)))
        elif subtype == "microcompact_boundary":
            session = self._session(row)
            session.end_call()
            removed = cleared_results(row, self._head.at)
            self.stats.evictions += len(removed.keys)
            if removed.keys:
                self.at(removed.at)
                session.emit(removed)
        elif subtype == "snip_boundary":
            session = self._session(row)
            session.end_call()
            keys = texts(mapping(row.get("snipMetadata")).get("removedUuids"))
            self.stats.evictions += len(keys)
            session.emit(ContentRemoved(keys, "snip", at=self.at(self._head.at)))

    def _name_variant(self, row: dict[str, Any]) -> None:
        """Read the variant of the model in a request's betas, or in the names by which the cost is counted."""
        session = None if row.get("agentId") else self._conversation(self._head.session_id)
        if session is None:
            return
        betas = texts(mapping(row.get("params")).get("betas"))
        names = mapping(row.get("modelUsage"))
        is_counted = session.model + CLAUDE_CODE_LARGE_SUFFIX in names and session.model not in names
        if is_counted or any(beta.startswith(LARGE_BETA) for beta in betas):
            self._state_window(session, CLAUDE_CODE_LARGE_WINDOW)

    def _state_window(self, session: ClaudeSession | None, tokens: int | None) -> None:
        """State the size of the window where it changes; None for a model whose name has no size."""
        if session is not None and tokens != session.window_tokens:
            session.window_tokens = tokens
            session.emit(LimitStated(tokens))

    def _replace(self, row: dict[str, Any]) -> None:
        """Replace large tool results by the text that is sent for them."""
        session = self._current
        texts = {key: new for key, new in replaced_results(row).items() if key not in self._replaced}
        if session is None or not texts:
            return
        self._replaced.update(texts)
        session.end_call()
        self.stats.evictions += len(texts)
        session.emit(ContentRemoved(tuple(texts), "content-replacement"))
        session.receive(
            ContentAdded("tool_result", new, key=f"{key}-replaced") for key, new in texts.items() if new
        )

    # -- names and links --------------------------------------------------------------------------------------

    def _link(self, row: dict[str, Any]) -> None:
        """Remember the row before a row; add the title that an earlier summary gave it."""
        row_id = self._head.row_id
        self._parents.add(row_id, self._head.parent_id)
        title = self._summaries.pop(row_id, "") if self._summaries else ""
        if title and row.get("type") in ("user", "assistant"):
            self._session(row)
            self.out.append(SessionDescribed(title=title))

    def _name(self, row: dict[str, Any], kind: str) -> None:
        """Add a title or repository. A summary counts where it is that of a conversation in this file."""
        if kind == "pr-link":
            description = SessionDescribed(repository=text(row.get("prRepository")))
        else:
            title = text(row.get(TITLE_FIELDS[kind]))
            leaf = text(row.get("leafUuid"))
            if kind == "summary" and leaf not in self._parents:
                self._summaries[leaf] = title
                if len(self._summaries) > MAXIMUM_SUMMARIES:
                    del self._summaries[next(iter(self._summaries))]
                return
            description = SessionDescribed(
                title=title, title_source="user" if kind == "custom-title" else "agent"
            )
        session = self._conversation(self._head.session_id)
        if session is None:
            self._unread = description
            return
        if session is not self._current:
            self._current = session
            session.enter()
        self.out.append(description)

    def _conversation(self, session_id: str) -> ClaudeSession | None:
        """Return the session of that id, without one that of the latest row; never a sub-agent's."""
        key = self._key(session_id) if session_id else self._current.root_key if self._current else ""
        return self._sessions.get(key)

    # -- statistics -------------------------------------------------------------------------------------------

    def _count(self, counted: RowContent, row: dict[str, Any], *, reply: bool) -> None:
        stats = self.stats
        stats.messages += 1
        stats.tool_calls += counted.tool_calls
        stats.content_chars += counted.chars
        stats.max_tool_output_chars = max(stats.max_tool_output_chars, counted.max_output_chars)
        if not reply and not counted.tool_results and not row.get("isMeta") and not row.get("isCompactSummary"):
            stats.user_turns += 1

    def _repeated(self, row: dict[str, Any], message: dict[str, Any], counted: RowContent) -> bool:
        """Return whether the row was read already; another row under the same id is reported and read.

        A resumed session writes old rows again with small differences outside the message, so only what enters
        the window is compared.
        """
        row_id = row.get("uuid")
        if not isinstance(row_id, str) or not row_id:
            return False
        before = self._seen.get(row_id)
        signature = (message.get("id"), len(counted.contents), counted.chars)
        self._seen[row_id] = signature
        if len(self._seen) > RECENT_ROWS:
            del self._seen[next(iter(self._seen))]
        if before is None:
            return False
        if before == signature:
            self.log.odd(self.line, "uuid", f"row {row_id[:64]} is repeated; used once")
            return True
        self.log.odd(self.line, "uuid", f"id {row_id[:64]} is used for two different rows; both used")
        return False

    # -- sessions ---------------------------------------------------------------------------------------------

    def _session(self, row: dict[str, Any]) -> ClaudeSession:
        session_id = self._head.session_id
        if session_id:
            parent = self._key(session_id)
        else:
            parent = self._current.root_key if self._current else self.path.stem
        key = parent
        if row.get("isSidechain") is True:
            key = f"{parent}/{self._side_chain(row)}"
        session = self._sessions.get(key)
        version = self._head.version
        task = None
        if session is None:
            task = _task_of(self.path) if key != parent else None
            at = self._head.at
            session = ClaudeSession(
                key, parent, self.out, self.stats, at=at, version=version, folder=self._head.folder
            )
            self._sessions[key] = session
            self.stats.sessions += 1
        updated = bool(version) and version != session.version
        session.version = version or session.version
        if session is not self._current or updated:
            self._current = session
            session.enter()
        if self._unread is not None:
            self.out.append(self._unread)
            self._unread = None
        head = self._head
        session.describe(folder=head.folder, branch="" if head.branch == "HEAD" else head.branch, at=None)
        if task is not None:
            self.out.append(task)
        return session

    def _key(self, session_id: str) -> str:
        """Return the key of a session; that of another session than the file's is a fragment of it."""
        return session_id if session_id == self._own_session(session_id) else f"{session_id}{FRAGMENT}{self._own}"

    def _own_session(self, session_id: str) -> str:
        """Return the session that the file belongs to: the one in its name, else the first in its rows."""
        if not self._own:
            self._own = self.path.stem if IS_UUID.fullmatch(self.path.stem) else session_id
        return self._own

    def _side_chain(self, row: dict[str, Any]) -> str:
        """Return the sub-agent a row belongs to, by its id, else by the first row of its chain."""
        agent_id = row.get("agentId")
        if isinstance(agent_id, str) and agent_id:
            return f"agent-{agent_id}"
        row_id, parent_id = self._head.row_id, self._head.parent_id
        root = self._roots.get(parent_id) or f"side-{row_id or self.line}"
        if row_id:
            self._roots[row_id] = root
            if len(self._roots) > RECENT_ROWS:
                del self._roots[next(iter(self._roots))]
        return root


def _task_of(path: Path) -> SessionDescribed | None:
    """Return the task and the kind of a sub-agent; None where no file beside its own describes it."""
    agent = description_of(path)
    title, kind = text(agent.get("description")), text(agent.get("agentType"))
    return SessionDescribed(title, label=kind) if title or kind else None


def _is_prompt(row: dict[str, Any], counted: RowContent) -> bool:
    """Return whether a row is what a user wrote to the main agent, other than a command or an interruption."""
    if row.get("isSidechain") is True or row.get("isMeta") is True or counted.tool_results:
        return False
    return bool(without_wrappers(counted.text))


def _clears(row: dict[str, Any]) -> bool:
    """Return whether a row is that of a hook which runs after the window was emptied."""
    if row.get("isSidechain") is True:
        return False
    hook = row.get("data") if row.get("type") == "progress" else row.get("attachment")
    return isinstance(hook, dict) and hook.get("hookName") == CLEAR_HOOK


def _starts_anew(row: dict[str, Any], session: ClaudeSession) -> bool:
    """Return whether a prompt starts another conversation.

    It has the plan that was accepted into a fresh context, or follows no row, in a recording whose rows name the
    row before them.
    """
    if row.get("planContent") and row.get("isSidechain") is not True:
        return True
    return session.is_linked and "parentUuid" in row and row["parentUuid"] is None
