"""Sessions of the pi coding agent, and of OpenClaw, which writes the same: JSON Lines of a header and entries.

Entries of version 1 follow each other. From version 2 on each names its parent, so that the file is a tree: the
latest entry and its ancestors are the conversation, and what is not among them is a branch that was abandoned.
Version 3 renames the role `hookMessage` to `custom`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import dropwhile, takewhile
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

from windowpane.core.vocabulary import ContentType
from windowpane.models.wire.messages import text_and_media
from windowpane.models.wire.usage import PI
from windowpane.sources.transcripts.inherited import InheritedHistory
from windowpane.sources.transcripts.json_lines import (
    as_json,
    count,
    dollars,
    head_rows,
    instant,
    mapping,
    milliseconds,
    sequence,
    text,
)
from windowpane.sources.transcripts.reader import ProblemLog
from windowpane.sources.transcripts.records import (
    Compacted,
    ContentAdded,
    ModelCalled,
    Rewound,
    SessionDescribed,
    SessionOpened,
)
from windowpane.sources.transcripts.transcript import Transcript, TranscriptReader, latency_seconds, unnamed_key

AGENT: Final = "pi"
OPENCLAW: Final = "openclaw"
_OPENCLAW_FOLDERS: Final = frozenset({".openclaw", ".clawdbot", ".moltbot"})
_BOOKKEEPING: Final = frozenset({"custom", "label", "thinking_level_change"})
"""Types of entries that add nothing to a window."""
_TITLES: Final = frozenset({"session_info", "title"})
"""Types of entries that name the session."""
_INJECTED_ROLES: Final = frozenset({"custom", "hookMessage"})
_FILE_NAME: Final = re.compile(r"[\w .+@-]{1,200}")
MAXIMUM_ENTRIES: Final = 100_000
"""Entries that a branch may start from, the latest."""
MAXIMUM_RETAINED: Final = 4_096
"""Entries back that a compaction may retain."""
USAGE_NAMES: Final = ("input", "output", "cacheRead", "cacheWrite")
COST: Final = "cost_microusd"
"""Sum over the calls, each in whole millionths of a dollar."""


class _Entry(NamedTuple):
    """One entry of the tree, as far as branches depend on it."""

    parent: str
    """Empty for an entry that follows none."""
    content_key: str = ""
    """Of its content, or of the summary of a compaction; empty for an entry without content."""
    first_kept: str | None = None
    """Of a compaction, the entry from which on the conversation was kept."""


class PiReader(TranscriptReader):
    """Reads the sessions under `~/.pi/agent/sessions`."""

    format: ClassVar[str] = "pi"

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        """Return whether a row is a `session` header with a folder, or a `message` entry without a session."""
        del path
        return any(
            (row.get("type") == "session" and "cwd" in row)
            or (row.get("type") == "message" and "role" in mapping(row.get("message")) and "sessionId" not in row)
            for row in head_rows(head)
        )

    def _start(self, path: Path, log: ProblemLog, *, complete: bool | None) -> Transcript:
        return PiTranscript(path, log, complete=complete)


def _session_file(name: str, fork: Path) -> Path | None:
    """Return the file that a fork names, by its name: beside the fork, or in a folder beside that of the fork."""
    file = Path(name.replace("\\", "/")).name
    if not _FILE_NAME.fullmatch(file):
        return None
    beside = fork.parent / file
    with suppress(OSError):
        return beside if beside.is_file() else next(fork.parent.parent.glob(f"*/{file}"), None)
    return None


class PiTranscript(Transcript):
    """Reads the entries of one session."""

    def __init__(self, path: Path, log: ProblemLog, *, complete: bool | None, agent: str = "") -> None:
        super().__init__(path, log, complete=complete)
        self._session: SessionOpened | None = None
        self._heading: SessionOpened | None = None
        """The header, until the time of the first row below it is known."""
        self._folder = ""
        self._entry = -1
        """Number of the row among the file's rows, from 0."""
        self._ids: dict[str, int] = {}
        self._agent = agent or (AGENT if _OPENCLAW_FOLDERS.isdisjoint(path.parts) else OPENCLAW)
        self._tree: dict[str, _Entry] = {}
        self._tip = ""
        """Id of the entry that the next one follows in a conversation without branches."""
        self._summaries: set[int] = set()
        """Rows of compactions, whose summaries no later one keeps."""
        self._read = _Entry("")
        """The entry that is being read."""

    @property
    def opened(self) -> bool:
        """Return whether the session has started."""
        return self._session is not None

    def names_session(self, row: dict[str, Any]) -> bool:
        """Return whether *row* is the header, which oh-my-pi writes after a `title` row."""
        return row.get("type") == "session"

    def read_row(self, row: dict[str, Any]) -> None:
        """Add the records of one entry."""
        self._entry += 1
        kind = row.get("type")
        if kind == "session":
            self._header(row)
            return
        at = self.at(instant(row.get("timestamp")))
        if self._session is None:
            if self._heading is None:
                self.log.odd(self.line, "type", "no session header; the session is named by its content")
                self._heading = SessionOpened(unnamed_key(row), self._agent)
            self._open(self._heading, at)
        self._add_id(text(row.get("id")))
        self._branch(row, at)
        if kind == "message":
            message = row.get("message")
            if isinstance(message, dict):
                self._message(message, at)
            else:
                self.log.odd_line(self.line, "message", "expected an object")
        elif kind == "model_change":
            self._use_model(text(row.get("modelId")))
        elif kind == "compaction":
            self._compact(row, at)
        elif kind == "branch_summary":
            self._written("summary", text(row.get("summary")), at)
        elif kind == "custom_message":
            self._inject(row, at)
        elif text(kind) in _TITLES:
            self._titled(row, at)
        elif text(kind) not in _BOOKKEEPING:
            self.report_unknown(text(kind), "entries")
        self._grow(text(row.get("id")))

    def finish(self) -> None:
        """Open the session of a header without rows; every row of pi is whole, so nothing else is deferred."""
        if self._session is None and self._heading is not None and self.complete:
            self._open(self._heading, None)

    # -- rows -------------------------------------------------------------------------------------------------

    def _header(self, row: dict[str, Any]) -> None:
        if self._heading is not None or self._session is not None:
            self.log.odd(self.line, "type", "another session header in the same file, skipped")
            return
        key = text(row.get("id"))
        if not key:
            self.log.odd(self.line, "id", "the session has no id; named by its content")
            key = unnamed_key(row)
        self._folder = text(row.get("cwd"))
        origin = text(row.get("parentSession")) or text(row.get("branchedFrom"))
        if origin:
            self.inherited = InheritedHistory.of(_session_file(origin, self.path), self.path, key=key)
            if self.inherited is None:
                self.report_copied("parentSession", "is not there")
        self._heading = SessionOpened(
            key, self._agent, text(row.get("modelId")), at=instant(row.get("timestamp")), folder=self._folder
        )

    def _titled(self, row: dict[str, Any], at: float | None) -> None:
        """Add a title: the user's, or that of oh-my-pi, which is empty at first."""
        title = text(row.get("title")) or text(row.get("name"))
        if title:
            is_own = row.get("type") == "title"
            self.out.append(SessionDescribed(title=title, title_source="agent" if is_own else "user", at=at))

    def _message(self, message: dict[str, Any], at: float | None) -> None:
        role = message.get("role")
        stats = self.stats
        stats.messages += 1
        if role == "assistant":
            self._reply(message, at)
        elif role == "toolResult":
            output, media = text_and_media(message.get("content"))
            stats.content_chars += len(output)
            stats.max_tool_output_chars = max(stats.max_tool_output_chars, len(output))
            call_id, name = text(message.get("toolCallId")) or None, text(message.get("toolName")) or None
            self._add("tool_result", output, at, call_id=call_id, name=name, media=media)
        elif role == "bashExecution":
            self._bash(message, at)
        elif role == "user":
            stats.user_turns += 1
            self._inject(message, at, "user_message")
        else:
            if text(role) not in _INJECTED_ROLES:
                self.log.odd(self.line, "message.role", f"unknown role {str(role)[:64]!r}, read as injected")
            self._inject(message, at)

    def _inject(
        self, message: dict[str, Any], at: float | None, content_type: ContentType = "memory_injection"
    ) -> None:
        """Add text and images other than the model's."""
        written, media = text_and_media(message.get("content"))
        self._written(content_type, written, at)
        if media:
            self._add("media", None, at, media=media)

    def _reply(self, message: dict[str, Any], at: float | None) -> None:
        self._use_model(text(message.get("model")))
        for part in sequence(message.get("content")):
            block = mapping(part)
            kind = block.get("type")
            if kind == "text":
                self._written("assistant_response", text(block.get("text")), at)
            elif kind == "thinking":
                self._written("thinking", text(block.get("thinking")), at)
            elif kind == "toolCall":
                self._tool_call(block, at)
            else:
                self.log.odd(self.line, "message.content", f"unknown block {str(kind)[:64]!r}, skipped")
        self._end_call(message, at)

    def _tool_call(self, block: dict[str, Any], at: float | None) -> None:
        arguments = as_json(block.get("arguments"))
        name = text(block.get("name"))
        self.stats.tool_calls += 1
        self.stats.content_chars += len(arguments)
        self._add("tool_call", arguments, at, call_id=text(block.get("id")) or None, name=name or None)

    def _end_call(self, message: dict[str, Any], at: float | None) -> None:
        """Add the call's record; the zeros of an aborted or failed call are not usage."""
        reported = mapping(message.get("usage"))
        stats = self.stats
        stats.api_calls += 1
        stats.add_usage(**{name: count(reported.get(name)) for name in USAGE_NAMES})
        usage = PI.read_sent(reported)
        if usage is not None:
            stats.peak_context = max(stats.peak_context, usage.input_total)
        cost = dollars(mapping(reported.get("cost")).get("total"))
        stats.add_usage(**{COST: int((cost or 0.0) * 1_000_000)})
        self.out.append(
            ModelCalled(
                usage,
                self._model,
                cost if usage is not None or cost else None,
                latency_seconds(milliseconds(message.get("timestamp")), at),
                text(message.get("stopReason"))[:64] or None,
                at,
                text(message.get("responseId")) or None,
            )
        )

    def _bash(self, message: dict[str, Any], at: float | None) -> None:
        """Add a command that the user ran, with its output, unless it was excluded from the window."""
        command, output = text(message.get("command")), text(message.get("output"))
        self.stats.content_chars += len(command) + len(output)
        if message.get("excludeFromContext") is not True:
            self._add("tool_result", f"{command}\n{output}", at, name="bash")

    def _compact(self, row: dict[str, Any], at: float | None) -> None:
        self.stats.compactions += 1
        first = row.get("firstKeptEntryIndex")
        if not isinstance(first, int) or isinstance(first, bool) or first < 0:
            first = self._ids.get(text(row.get("firstKeptEntryId")), self._entry)
        first = max(first, self._entry - MAXIMUM_RETAINED)
        key = f"entry-{self._entry}"
        self._summaries.add(self._entry)
        self._read = self._read._replace(content_key=key, first_kept=text(row.get("firstKeptEntryId")))
        self.out.append(
            Compacted(
                "manual" if row.get("fromHook") is True else "auto",
                tokens_before=count(row.get("tokensBefore")) or None,
                summary=text(row.get("summary")) or None,
                kept_keys=tuple(
                    f"entry-{number}" for number in range(first, self._entry) if number not in self._summaries
                ),
                at=at,
                key=key,
            )
        )

    # -- the tree ---------------------------------------------------------------------------------------------

    def _branch(self, row: dict[str, Any], at: float | None) -> None:
        """Go back to the parent of an entry that does not follow the latest one."""
        parent = row.get("parentId", self._tip)
        parent = "" if parent is None else parent
        if parent != self._tip:
            if parent and text(parent) not in self._tree:
                problem = f"no entry {str(parent)[:64]!r} above; read as the next entry"
                self.log.odd(self.line, "parentId", problem)
                parent = self._tip
            else:
                self._rewind(parent, at)
        self._read = _Entry(parent)

    def _rewind(self, target: str, at: float | None) -> None:
        """Continue after *target*, an ancestor of the latest entry or an entry of another branch."""
        abandoned = list(takewhile(lambda name: name != target, self._path(self._tip)))
        if not any(self._tree[name].content_key for name in abandoned):
            return
        latest = next((one for name in self._path(target) if (one := self._tree[name]).content_key), None)
        is_ancestor = not target or self._tree[abandoned[-1]].parent == target
        crossed = any(self._tree[name].first_kept is not None for name in abandoned)
        if is_ancestor and not crossed and (latest is None or latest.first_kept is None):
            self.out.append(Rewound(None if latest is None else latest.content_key, at))
        else:
            self.out.append(Rewound(None, at, content_keys=self._context(target)))

    def _path(self, name: str) -> Iterator[str]:
        """Yield an entry and its ancestors, the nearest first."""
        while name in self._tree:
            yield name
            name = self._tree[name].parent

    def _context(self, name: str) -> tuple[str, ...]:
        """Return the keys of what is sent after an entry: its path, since the last compaction on it."""
        path = [*self._path(name)][::-1]
        number = next(
            (n for n in range(len(path) - 1, -1, -1) if self._tree[path[n]].first_kept is not None), None
        )
        if number is not None:
            compaction = self._tree[path[number]]
            before = dropwhile(lambda one: one != compaction.first_kept, path[:number])
            plain = [one for one in before if self._tree[one].first_kept is None]
            path = [path[number], *plain, *path[number + 1 :]]
        return tuple(key for one in path if (key := self._tree[one].content_key))

    def _grow(self, entry_id: str) -> None:
        """Make the entry just read the latest one."""
        if entry_id:
            self._tip = entry_id
            self._tree[entry_id] = self._read
            if len(self._tree) > MAXIMUM_ENTRIES:
                del self._tree[next(iter(self._tree))]

    # -- inside -----------------------------------------------------------------------------------------------

    def _written(self, content_type: ContentType, written: str, at: float | None) -> None:
        self.stats.content_chars += len(written)
        if written:
            self._add(content_type, written, at)

    def _add(
        self,
        content_type: ContentType,
        written: str | None,
        at: float | None,
        *,
        call_id: str | None = None,
        name: str | None = None,
        media: int = 0,
    ) -> None:
        key = f"entry-{self._entry}"
        self._read = self._read._replace(content_key=key)
        self.out.append(ContentAdded(content_type, written, call_id, name, media, key=key, at=at))

    def _open(self, heading: SessionOpened, first_at: float | None) -> None:
        """Open the session. A copied one has the rows of the old one, so its header may be later than these."""
        times = [at for at in (heading.at, first_at) if at is not None]
        self.stats.sessions += 1
        self._model = heading.model
        self._session = replace(heading, at=min(times, default=None))
        self.out.append(self._session)
        if self._folder:
            self.out.append(SessionDescribed(folder=self._folder, at=self._session.at))

    def _use_model(self, model: str) -> None:
        if model and model != self._model and self._session is not None:
            self._model = model
            self.out.append(replace(self._session, model=model))

    def _add_id(self, entry_id: str) -> None:
        if entry_id:
            self._ids[entry_id] = self._entry
            if len(self._ids) > MAXIMUM_RETAINED:
                del self._ids[next(iter(self._ids))]
