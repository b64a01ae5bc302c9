"""Sessions of Qwen Code: JSON Lines of messages in the shape of Google's API, in a tree by `parentUuid`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

from windowpane.core.vocabulary import ContentType
from windowpane.models.wire.usage import GEMINI
from windowpane.sources.transcripts.formats.agent_sidecar import description_of, has_ended
from windowpane.sources.transcripts.formats.forks import ForkedTranscript
from windowpane.sources.transcripts.formats.gemini.parts import Part, parts_of
from windowpane.sources.transcripts.json_lines import count, head_rows, instant, mapping, sequence, text
from windowpane.sources.transcripts.reader import ProblemLog
from windowpane.sources.transcripts.records import (
    Compacted,
    ContentAdded,
    LimitStated,
    ModelCalled,
    Rewound,
    SessionDescribed,
    SessionOpened,
)
from windowpane.sources.transcripts.transcript import Transcript, TranscriptReader, unnamed_key

AGENT: Final = "qwen-code"
SUBAGENT: Final = "qwen-code-agent"
USAGE_NAMES: Final = (
    "promptTokenCount",
    "candidatesTokenCount",
    "cachedContentTokenCount",
    "thoughtsTokenCount",
    "totalTokenCount",
)
HEAD_BYTES: Final = 64 * 1024
"""Start of a file that is searched for the session that started its session."""
MAXIMUM_ROWS: Final = 10_000
"""Rows back to which a conversation can return."""
MAXIMUM_CONTENTS: Final = 50_000
"""Contents that are compared with a compressed history, the latest."""
_TYPES: Final = frozenset({"user", "assistant", "tool_result", "system"})
_TYPED: Final = frozenset({"", "mid_turn_user_message"})
"""Subtypes of what a user writes; other rows of type `user` are written by Qwen Code."""
COMPRESSED: Final = 1
"""Status of a compression that replaced the history; others state why it did not."""
TRIGGERS: Final = {"manual": "manual", "token_limit": "auto", "image_overflow": "auto"}


class QwenReader(TranscriptReader):
    """Reads the sessions under `~/.qwen/projects`."""

    format: ClassVar[str] = "qwen_code"

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        """Return whether a row has a `parentUuid` beside a message in parts, or a system payload."""
        del path
        return any(
            "parentUuid" in row
            and text(row.get("type")) in _TYPES
            and ("parts" in mapping(row.get("message")) or "systemPayload" in row)
            for row in head_rows(head)
        )

    def _start(self, path: Path, log: ProblemLog, *, complete: bool | None) -> Transcript:
        return _QwenTranscript(path, log, complete=complete, lineage=_lineage(path))


class _Lineage(NamedTuple):
    """The origin of a file's session, which is not in its first row."""

    parent: str = ""
    """The session that started it."""
    parent_agent: str = ""
    """The sub-agent of that session that started it."""
    model: str = ""
    title: str = ""


def _lineage(path: Path) -> _Lineage:
    """Return what a row near the start names, or the file beside that of a sub-agent; empty where neither is."""
    try:
        with path.open("rb") as file:
            rows = head_rows(file.read(HEAD_BYTES))
    except OSError:
        return _Lineage()
    payloads = (mapping(row.get("systemPayload")) for row in rows if row.get("subtype") == "parent_session")
    parent = next((text(payload.get("parentSessionId")) for payload in payloads), "")
    agent = description_of(path)
    names = (text(agent.get(name)) for name in ("parentAgentId", "model", "description"))
    return _Lineage(parent, *names)


@dataclass(slots=True)
class _Session:
    """The state of one session of a file: the main one, or a sub-agent's."""

    opened: SessionOpened
    described: SessionDescribed
    last: str = ""
    """`uuid` of the last row."""
    added: int = 0
    last_key: str | None = None
    """Key of the last content in the window."""
    keys: dict[str, str | None] = field(default_factory=dict)
    """Key of the last content after each row, by its `uuid`."""
    contents: dict[int, str] = field(default_factory=dict)
    """Key of each content in the window, by a hash of it."""


class _QwenTranscript(ForkedTranscript):
    def __init__(self, path: Path, log: ProblemLog, *, complete: bool | None, lineage: _Lineage) -> None:
        super().__init__(path, log, complete=complete)
        self._lineage = lineage
        self._model = lineage.model[:200]
        self._called: ModelCalled | None = None
        """The call of a sub-agent's reply, whose tool calls are separate rows."""
        self._sessions: dict[str, _Session] = {}
        self._current = ""

    @property
    def opened(self) -> bool:
        return bool(self._sessions)

    def names_session(self, row: dict[str, Any]) -> bool:
        return bool(text(row.get("sessionId")))

    def read_row(self, row: dict[str, Any]) -> None:
        kind = text(row.get("type"))
        if kind not in _TYPES:
            self.report_unknown(kind)
            return
        at = self.at(instant(row.get("timestamp")))
        if not (kind == "assistant" and _is_rest_of_reply(row)):
            self._end_reply()
        session = self._session(row, at)
        self._branch(session, row, at)
        message = mapping(row.get("message"))
        parts = list(parts_of(message.get("parts")))
        if kind == "system":
            self._system(session, text(row.get("subtype")), mapping(row.get("systemPayload")), at)
        elif kind == "assistant":
            self._reply(session, row, parts, at)
        else:
            self._request(session, row, parts, at)
        session.last = text(row.get("uuid"))
        session.keys[session.last] = session.last_key
        if len(session.keys) > MAXIMUM_ROWS:
            del session.keys[next(iter(session.keys))]

    def finish(self) -> None:
        """Add the call of a sub-agent's reply where the file is finished, or the sub-agent has ended."""
        if self.complete or (self._called is not None and has_ended(self.path)):
            self._end_reply()
        elif self._called is not None:
            self.report_deferred("the last reply, which may have further tool calls, is")

    @property
    def awaits_other_file(self) -> bool:
        """Return whether a sub-agent's reply is deferred: the file beside its recording states its end."""
        return self._called is not None

    def end_repeated(self) -> None:
        """Add the call of a sub-agent's reply."""
        self._end_reply()

    def _end_reply(self) -> None:
        if self._called is not None:
            self.out.append(self._called)
            self._called = None

    # -- sessions ---------------------------------------------------------------------------------------------

    def _session(self, row: dict[str, Any], at: float | None) -> _Session:
        """Return the row's session, opened before its first row and again where rows change sessions."""
        main = text(row.get("sessionId")) or next(iter(self._sessions), "") or unnamed_key(row)
        agent_id = text(row.get("agentId")) if row.get("isSidechain") is True else ""
        key = f"{main}/{agent_id}" if agent_id else main
        session = self._sessions.get(key)
        if session is None:
            agent = SUBAGENT if agent_id else AGENT
            version = text(row.get("version"))
            above = self._lineage.parent_agent
            parent = (f"{main}/{above}" if above else main) if agent_id else self._lineage.parent or None
            folder = text(row.get("cwd"))
            opened = SessionOpened(
                key, agent, self._model, parent_key=parent, at=at, agent_version=version, folder=folder
            )
            session = self._sessions[key] = _Session(opened, SessionDescribed())
            self.stats.sessions += 1
        if key != self._current:
            self._current = key
            self.out.append(session.opened)
        described = SessionDescribed(
            self._lineage.title,
            folder=text(row.get("cwd")),
            branch=text(row.get("gitBranch")),
            agent_version=text(row.get("version")),
        )
        if described != session.described:
            session.described = described
            self.out.append(replace(described, at=at))
        return session

    def _branch(self, session: _Session, row: dict[str, Any], at: float | None) -> None:
        """Continue after the row's parent where that is not the row before it."""
        parent = row.get("parentUuid")
        if parent == session.last or not session.last:
            return
        if parent is None and row.get("type") != "system":
            session.last_key = None
        elif isinstance(parent, str) and parent in session.keys:
            session.last_key = session.keys[parent]
        else:
            return
        self.out.append(Rewound(session.last_key, at))

    # -- rows -------------------------------------------------------------------------------------------------

    def _system(self, session: _Session, subtype: str, payload: dict[str, Any], at: float | None) -> None:
        if subtype == "chat_compression":
            self._compress(session, payload, at)
        elif subtype == "custom_title":
            title = text(payload.get("customTitle"))
            is_own = payload.get("titleSource") == "auto"
            if title:
                self.out.append(SessionDescribed(title, "agent" if is_own else "user", at=at))
        elif subtype == "agent_bootstrap":  # what a sub-agent's window starts with
            for content in map(mapping, sequence(payload.get("history"))):
                add = self._add_reply if content.get("role") == "model" else self._add_request
                for part in parts_of(content.get("parts")):
                    add(session, part, at)

    def _compress(self, session: _Session, payload: dict[str, Any], at: float | None) -> None:
        """Add a compaction: the new history has a summary, and content that is as it was before."""
        info = mapping(payload.get("info"))
        if info.get("compressionStatus", COMPRESSED) != COMPRESSED:
            return
        summary: list[str] = []
        retained: dict[int, str] = {}
        for content in map(mapping, sequence(payload.get("compressedHistory"))):
            for part in parts_of(content.get("parts")):
                key = session.contents.get(_hash(part))
                if key is not None:
                    retained[_hash(part)] = key
                elif part.text:
                    summary.append(part.text)
        session.contents = retained
        before, after = (
            None if info.get(f"{name}IsEstimated") is True else count(info.get(name)) or None
            for name in ("originalTokenCount", "newTokenCount")
        )
        self.stats.compactions += 1
        trigger = TRIGGERS.get(text(info.get("triggerReason")), "unknown")
        self.out.append(
            Compacted(trigger, before, after, "\n".join(summary) or None, tuple(retained.values()), at=at)
        )

    def _request(self, session: _Session, row: dict[str, Any], parts: list[Part], at: float | None) -> None:
        """Add the content of a message of the user, or with tool results."""
        self.stats.messages += 1
        is_typed = row.get("type") == "user" and row.get("provenance") in (None, "real_user")
        is_typed = is_typed and text(row.get("subtype")) in _TYPED
        self.stats.user_turns += is_typed
        for part in parts:
            self._add_request(session, part, at, plain="user_message" if is_typed else "memory_injection")

    def _add_request(
        self, session: _Session, part: Part, at: float | None, *, plain: ContentType = "user_message"
    ) -> None:
        if part.kind == "response":
            self.stats.max_tool_output_chars = max(self.stats.max_tool_output_chars, len(part.text))
            self._add(session, "tool_result", part, at)
        elif part.kind == "media":
            self._add(session, "media", part, at, media=1)
        elif part.kind == "text":
            self._add(session, plain, part, at)
        else:
            self.report_unknown(part.kind, "parts", "message.parts")

    def _reply(self, session: _Session, row: dict[str, Any], parts: list[Part], at: float | None) -> None:
        stats = self.stats
        stats.messages += 1
        stats.api_calls += self._called is None
        limit = count(row.get("contextWindowSize"))
        if limit:
            self.out.append(LimitStated(limit, at))
        for part in parts:
            stats.tool_calls += part.kind == "call"
            self._add_reply(session, part, at)
        reported = mapping(row.get("usageMetadata"))
        stats.add_usage(**{name: count(reported.get(name)) for name in USAGE_NAMES})
        usage = GEMINI.read_sent(reported)
        if usage is not None:
            stats.peak_context = max(stats.peak_context, usage.input_total)
        model = text(row.get("model"))
        self._model = model or self._model
        if row.get("isSidechain") is not True:
            self.out.append(ModelCalled(usage, model, at=at))
        elif self._called is None:
            self._called = ModelCalled(usage, self._model, at=at)

    def _add_reply(self, session: _Session, part: Part, at: float | None) -> None:
        if part.kind == "call":
            self._add(session, "tool_call", part, at)
        elif part.kind in ("text", "thought"):
            self._add(session, "thinking" if part.kind == "thought" else "assistant_response", part, at)
        else:
            self.report_unknown(part.kind, "parts", "message.parts")

    # -- inside -----------------------------------------------------------------------------------------------

    def _add(
        self, session: _Session, content_type: ContentType, part: Part, at: float | None, *, media: int = 0
    ) -> None:
        self.stats.content_chars += len(part.text)
        if not part.text and not media and part.kind != "response":
            return
        session.added += 1
        session.last_key = session.contents[_hash(part)] = f"c{session.added}"
        if len(session.contents) > MAXIMUM_CONTENTS:
            del session.contents[next(iter(session.contents))]
        written = part.text if not media else None
        self.out.append(
            ContentAdded(content_type, written, part.call_id, part.name, media, key=session.last_key, at=at)
        )


def _is_rest_of_reply(row: dict[str, Any]) -> bool:
    """Return whether a row of a sub-agent has a tool call of the reply before it."""
    return row.get("isSidechain") is True and "agentRound" not in row and "usageMetadata" not in row


def _hash(part: Part) -> int:
    return hash((part.kind, part.call_id, part.text))
