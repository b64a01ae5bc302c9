"""Sessions of GitHub Copilot CLI: JSON Lines of events.

Replies state their output tokens only. The input of single calls is in `assistant.usage` events, which the CLI
does not write to its file, and in its session store; sums are in `session.shutdown`. Events of a sub-agent name
it by `agentId`, in earlier releases by the tool call that started it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Final

from windowpane.core.names import mcp_tool_name
from windowpane.core.vocabulary import ContentType
from windowpane.models.wire.usage import FLAT
from windowpane.sources.transcripts.formats.copilot_cli.event_types import is_known
from windowpane.sources.transcripts.formats.copilot_cli.session import (
    CopilotSession,
    Prompt,
    blocks_text,
    compaction_trigger,
)
from windowpane.sources.transcripts.formats.copilot_cli.usage_store import UsageStore
from windowpane.sources.transcripts.json_lines import as_json, count, head_rows, instant, mapping, sequence, text
from windowpane.sources.transcripts.reader import ProblemLog
from windowpane.sources.transcripts.records import (
    Cleared,
    Compacted,
    ContentAdded,
    ContentRemoved,
    LimitStated,
    ModelCalled,
    Rewound,
    SessionClosed,
    SessionDescribed,
    SessionOpened,
    TotalsStated,
)
from windowpane.sources.transcripts.transcript import Transcript, TranscriptReader, unnamed_key

AGENT: Final = "copilot-cli"
SUBAGENT: Final = "copilot-cli-agent"
TRUNCATED: Final = "truncate"
REPLACED: Final = "replaced"
MAXIMUM_EVENTS: Final = 10_000
"""Events back to which a session can be rewound."""
TOTALS: Final = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens", "reasoningTokens")


class CopilotReader(TranscriptReader):
    """Reads the sessions under `~/.copilot/session-state`."""

    format: ClassVar[str] = "copilot_cli"

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        """Return whether a row is an event of the agent's, with an id, its parent's and data."""
        del path
        return any(
            {"id", "parentId", "data"} <= row.keys()
            and text(row.get("type")).startswith(("session.", "assistant.", "user.message", "system.message"))
            for row in head_rows(head)
        )

    def _start(self, path: Path, log: ProblemLog, *, complete: bool | None) -> Transcript:
        return _CopilotTranscript(path, log, complete=complete)


class _CopilotTranscript(Transcript):
    def __init__(self, path: Path, log: ProblemLog, *, complete: bool | None) -> None:
        super().__init__(path, log, complete=complete)
        self._main = ""
        self._store = UsageStore(path)
        self._sessions: dict[str, CopilotSession] = {}
        self._current = ""
        self._agents: dict[str, str] = {}
        """Tool call that started each sub-agent, by the agent's id."""
        self._counted_calls = 0

    @property
    def opened(self) -> bool:
        return bool(self._main)

    def names_session(self, row: dict[str, Any]) -> bool:
        return row.get("type") == "session.start" or bool(text(mapping(row.get("data")).get("sessionId")))

    def read_row(self, row: dict[str, Any]) -> None:
        kind, data = row.get("type"), row.get("data")
        if kind == "result":  # the last row that `copilot -p` prints has no data
            return
        if not isinstance(kind, str) or not isinstance(data, dict):
            self.log.odd_line(self.line, "type", "expected an event with a type and data")
            return
        at = self.at(instant(row.get("timestamp")))
        if kind == "session.start" or not self._main:
            self._open(row, kind, data, at)
        if kind.startswith("subagent."):
            self._subagent(kind, row, data, at)
            return
        session = self._switch(self._key_of(row, data), at)
        session.keys[text(row.get("id"))] = session.last_key
        if len(session.keys) > MAXIMUM_EVENTS:
            del session.keys[next(iter(session.keys))]
        self._event(session, kind, data, at)

    def finish(self) -> None:
        """Close the open calls of a finished file, and report the calls whose input is unknown."""
        if not self.complete:
            return
        for key, session in self._sessions.items():
            if session.call is not None:
                self._end_call(self._switch(key, None))
        if self.stats.api_calls > self._counted_calls:
            unknown = self.stats.api_calls - self._counted_calls
            totals = self.stats.usage
            self.log.unstated(
                f"the input tokens of {unknown} of {self.stats.api_calls} calls",
                sent=totals.get("inputTokens", 0),
                received=totals.get("outputTokens", 0),
            )

    # -- sessions ---------------------------------------------------------------------------------------------

    def _open(self, row: dict[str, Any], kind: str, data: dict[str, Any], at: float | None) -> None:
        if kind != "session.start":
            self.log.odd(self.line, "type", "no session.start; the session is named by its content")
        key = text(data.get("sessionId")) or self._main or unnamed_key(row)
        if key == self._main:
            return
        self._main = key
        self._model = text(data.get("selectedModel")) or self._model
        version = text(data.get("copilotVersion"))
        self._add_session(SessionOpened(key, AGENT, self._model, at=at, agent_version=version))

    def _add_session(self, opened: SessionOpened) -> CopilotSession:
        session = self._sessions.get(opened.session_key)
        if session is None:
            self.stats.sessions += 1
            session = self._sessions[opened.session_key] = CopilotSession(opened)
        return session

    def _key_of(self, row: dict[str, Any], data: dict[str, Any]) -> str:
        """Return the session that an event belongs to."""
        agent_id = text(row.get("agentId"))
        child = self._agents.get(agent_id, agent_id) or text(data.get("parentToolCallId"))
        return f"{self._main}/{child}" if child else self._main

    def _switch(self, key: str, at: float | None) -> CopilotSession:
        session = self._sessions.get(key)
        if session is None:
            session = self._add_session(SessionOpened(key, SUBAGENT, parent_key=self._main, at=at))
        if key != self._current:
            self._current = key
            self.out.append(session.opened)
        return session

    def _subagent(self, kind: str, row: dict[str, Any], data: dict[str, Any], at: float | None) -> None:
        call_id, agent_id = text(data.get("toolCallId")), text(row.get("agentId"))
        if not call_id:
            return
        key = f"{self._main}/{call_id}"
        if kind == "subagent.started":
            if agent_id:
                self._agents[agent_id] = call_id
            opened = SessionOpened(key, SUBAGENT, text(data.get("model")), self._main, at=at)
            self._add_session(opened)
            self._switch(key, at)
            title = text(data.get("agentDisplayName")) or text(data.get("agentName"))
            self.out.append(SessionDescribed(title=title, at=at))
        elif kind in ("subagent.completed", "subagent.failed") and key in self._sessions:
            self._end_call(self._switch(key, at))
            reason = "completed" if kind == "subagent.completed" else "error: agent_error"
            self.out.append(SessionClosed(reason, at))

    # -- events -----------------------------------------------------------------------------------------------

    def _event(self, session: CopilotSession, kind: str, data: dict[str, Any], at: float | None) -> None:
        if kind == "assistant.message":
            self._reply(session, data, at)
        elif kind == "assistant.usage":
            self._use(session, data)
        elif kind in ("tool.execution_start", "tool.execution_complete", "assistant.turn_end", "abort"):
            self._end_call(session)
            if kind == "tool.execution_start":
                self._tool_started(session, data, at)
            elif kind == "tool.execution_complete":
                self._tool_result(session, data, at)
        elif kind in ("user.message", "system.message", "system.notification"):
            self._end_call(session)
            self._message(session, kind, data, at)
        elif kind.startswith("session."):
            self._session_event(session, kind, data, at)
        if not is_known(kind):
            self.report_unknown(kind, "events")

    def _session_event(self, session: CopilotSession, kind: str, data: dict[str, Any], at: float | None) -> None:
        limit = count(data.get("tokenLimit"))
        if limit:
            self.out.append(LimitStated(limit, at))
        if kind in ("session.start", "session.resume", "session.context_changed"):
            self._describe(mapping(data.get("context")) or data, at)
            self._use_model(session, text(data.get("selectedModel")))
        elif kind == "session.model_change":
            self._use_model(session, text(data.get("newModel")))
        elif kind == "session.title_changed":
            self.out.append(SessionDescribed(title=text(data.get("title")), at=at))
        elif kind == "session.compaction_start":
            session.retained = []
        elif kind == "session.compaction_complete":
            self._compact(session, data, at)
        elif kind == "session.truncation":
            self._end_call(session)
            self.stats.evictions += count(data.get("messagesRemovedDuringTruncation"))
            freed = count(data.get("tokensRemovedDuringTruncation"))
            self.out.append(ContentRemoved((), TRUNCATED, freed or None, at))
        elif kind == "session.context_cleared":
            self._end_call(session)
            self.out.append(Cleared(at))
        elif kind == "session.snapshot_rewind":
            self._rewind(session, text(data.get("upToEventId")), at)
        elif kind == "session.shutdown":
            self._count_totals(data)

    def _describe(self, context: dict[str, Any], at: float | None) -> None:
        described = SessionDescribed(
            folder=text(context.get("cwd")),
            repository=text(context.get("repository")),
            branch=text(context.get("branch")),
            at=at,
        )
        if described.folder or described.repository or described.branch:
            self.out.append(described)

    def _compact(self, session: CopilotSession, data: dict[str, Any], at: float | None) -> None:
        """Add a compaction; content that was added while it ran is not replaced."""
        retained, session.retained = session.retained, None
        if data.get("success") is not True:
            return
        self._end_call(session)
        self.stats.compactions += 1
        self.out.append(
            Compacted(
                compaction_trigger(text(data.get("trigger"))),
                count(data.get("preCompactionTokens")) or None,
                count(data.get("postCompactionTokens")) or None,
                text(data.get("summaryContent")) or None,
                tuple(retained or ()),
                at=at,
            )
        )

    def _rewind(self, session: CopilotSession, event_id: str, at: float | None) -> None:
        self._end_call(session)
        if event_id not in session.keys:
            self.log.odd(self.line, "data.upToEventId", "the event that the session was rewound to is not known")
            return
        session.last_key = session.keys[event_id]
        self.out.append(Rewound(session.last_key, at))

    # -- content ----------------------------------------------------------------------------------------------

    def _message(self, session: CopilotSession, kind: str, data: dict[str, Any], at: float | None) -> None:
        written = text(data.get("content"))
        if kind == "system.notification":
            self._add(session, "memory_injection", written, at)
            return
        self.stats.messages += 1
        self.stats.content_chars += len(written)
        if kind == "system.message":
            self._prompt(session, f"{data.get('role')} {data.get('name')}"[:200], written, at)
            return
        is_typed = data.get("source") in (None, "", "user") and data.get("isAutopilotContinuation") is not True
        self.stats.user_turns += is_typed
        sent = text(data.get("transformedContent")) or written
        before, typed, after = sent.partition(written) if written in sent and written else ("", sent, "")
        self._add(session, "memory_injection", before.strip(), at)
        self._add(session, "user_message" if is_typed else "memory_injection", typed, at)
        self._add(session, "memory_injection", after.strip(), at)
        media = sum(mapping(attachment).get("type") == "blob" for attachment in sequence(data.get("attachments")))
        if media:
            self._add(session, "media", None, at, media=media)

    def _prompt(self, session: CopilotSession, name: str, written: str, at: float | None) -> None:
        """Add a system prompt; one that differs from the last replaces it."""
        before = session.prompts.get(name)
        if before is not None and before.text == written:
            return
        if before is not None:
            del session.prompts[name]
            self.out.append(ContentRemoved((before.key,), REPLACED, at=at))
        if written:
            self._add(session, "system_prompt", written, at)
            session.prompts[name] = Prompt(written, f"c{session.added}")

    def _reply(self, session: CopilotSession, data: dict[str, Any], at: float | None) -> None:
        self._end_call(session)
        stats = self.stats
        stats.messages += 1
        session.output_tokens = count(data.get("outputTokens"))
        stats.add_usage(sum_assistant_outputTokens=session.output_tokens)
        content, reasoning = text(data.get("content")), text(data.get("reasoningText")) or blocks_text(data)
        stats.content_chars += len(content)
        self._add(session, "thinking", reasoning, at)
        self._add(session, "assistant_response", content, at)
        for request in map(mapping, sequence(data.get("toolRequests"))):
            arguments = as_json(request.get("arguments"))
            stats.content_chars += len(arguments)
            self._tool_call(session, text(request.get("toolCallId")), _tool_name(request, "name"), arguments, at)
        model = text(data.get("model"))
        self._model = model or self._model
        index, chunks = count(data.get("chunkIndex")), count(data.get("chunkCount"))
        if index + 1 >= chunks:
            stats.api_calls += 1
            session.call = ModelCalled(None, model, at=at, response_id=text(data.get("apiCallId")) or None)
            if session.usage is not None:
                self._end_call(session)

    def _use(self, session: CopilotSession, data: dict[str, Any]) -> None:
        """Add the usage of the call whose reply was just read, or comes next."""
        usage = FLAT.read_sent(data)
        if usage is not None:
            session.usage = usage
        if session.call is not None:
            self._end_call(session)

    def _end_call(self, session: CopilotSession) -> None:
        if session.call is None:
            return
        call = session.stated_call(self._store)
        if call.usage is not None:
            self._counted_calls += 1
            self.stats.peak_context = max(self.stats.peak_context, call.usage.input_total)
        self.out.append(call)
        session.call = session.usage = None

    def _tool_call(
        self, session: CopilotSession, call_id: str, name: str, arguments: str, at: float | None
    ) -> None:
        self.stats.tool_calls += 1
        session.requested.add(call_id)
        self._add(session, "tool_call", arguments, at, call_id=call_id, name=name)

    def _tool_started(self, session: CopilotSession, data: dict[str, Any], at: float | None) -> None:
        """Add a tool call that no reply requested: the user ran it."""
        call_id = text(data.get("toolCallId"))
        if call_id not in session.requested:
            self._tool_call(session, call_id, _tool_name(data, "toolName"), as_json(data.get("arguments")), at)

    def _tool_result(self, session: CopilotSession, data: dict[str, Any], at: float | None) -> None:
        result = mapping(data.get("result"))
        output = text(result.get("content"))
        self.stats.content_chars += len(output)
        self.stats.max_tool_output_chars = max(self.stats.max_tool_output_chars, len(output))
        call_id = text(data.get("toolCallId"))
        child = f"{self._main}/{call_id}"
        self._add(
            session,
            "tool_result",
            output or text(mapping(data.get("error")).get("message")),
            at,
            call_id=call_id,
            media=len(sequence(result.get("binaryResultsForLlm"))),
            child=child if child in self._sessions else None,
        )

    # -- inside -----------------------------------------------------------------------------------------------

    def _add(
        self,
        session: CopilotSession,
        content_type: ContentType,
        written: str | None,
        at: float | None,
        *,
        call_id: str = "",
        name: str = "",
        media: int = 0,
        child: str | None = None,
    ) -> None:
        if not written and not media and content_type != "tool_result":
            return
        session.added += 1
        key = session.last_key = f"c{session.added}"
        if session.retained is not None:
            session.retained.append(key)
        self.out.append(
            ContentAdded(
                content_type, written, call_id or None, name or None, media, key=key, at=at, child_key=child
            )
        )

    def _use_model(self, session: CopilotSession, model: str) -> None:
        if model and model != session.opened.model:
            session.opened = replace(session.opened, model=model)
            self._model = model
            self.out.append(session.opened)

    def _count_totals(self, data: dict[str, Any]) -> None:
        self.stats.add_usage(currentTokens=count(data.get("currentTokens")))
        for metric in mapping(data.get("modelMetrics")).values():
            usage = mapping(mapping(metric).get("usage"))
            self.stats.add_usage(**{name: count(usage.get(name)) for name in TOTALS})
        totals = self.stats.usage
        self.out.append(TotalsStated(totals.get("inputTokens"), totals.get("outputTokens")))


def _tool_name(call: dict[str, Any], key: str) -> str:
    """Return the name of a tool, which *key* holds, and of an MCP server's tool the server's with it."""
    server = text(call.get("mcpServerName"))
    return (
        mcp_tool_name(server, text(call.get("mcpToolName")) or text(call.get(key)))
        if server
        else text(call.get(key))
    )
