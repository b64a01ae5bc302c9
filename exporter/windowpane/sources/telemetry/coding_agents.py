"""The telemetry of Claude Code, Codex, Gemini CLI and Qwen Code: their events, and the spans of Claude Code.

These events carry usage and no prompts. Each names its session; Claude Code also the part of it that made the
call, since its sub-agents have separate windows.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from windowpane.models.wire.usage import CLAUDE_CODE_EVENT, CODEX_EVENT, GEMINI_CLI_EVENT
from windowpane.sources.telemetry.attributes import amount_of, count_of, first_of, text_of
from windowpane.sources.telemetry.records import Attributes, LogRecord
from windowpane.sources.telemetry.reported_call import ReportedCall, ReportedCompaction

PREFIXES: Final = ("claude_code.", "codex.", "gemini_cli.", "qwen-code.")
AGENTS: Final = {
    "claude_code": "claude-code", "codex": "codex", "gemini_cli": "gemini-cli", "qwen-code": "qwen-code",
}  # fmt: skip
SERVICES: Final = {
    "claude-code": "claude_code", "codex": "codex", "codex-cli": "codex", "codex_cli_rs": "codex",
    "codex_exec": "codex", "gemini-cli": "gemini_cli", "qwen-code": "qwen-code",
}  # fmt: skip
"""Names of the programs' processes, which identify the program of a bare event name."""
MAIN_THREAD: Final = ("repl_main_thread", "sdk", "main")
"""Starts of the sources of Claude Code's calls that belong to the session's own window. Those of a sub-agent have
the session that its transcript has, so that both are one."""
GEMINI_SIDE_CALLS: Final = "utility_"
"""Start of the roles of Gemini CLI's calls beside the conversation, such as that of a compression."""
QWEN_SIDE_CALLS: Final = ("compress", "side-query", "prompt_suggestion", "forked_query", "speculation")
"""Starts of the ids of such prompts of Qwen Code's; others start with the id of the session."""
LLM_REQUEST: Final = "claude_code.llm_request"
"""The span of one of Claude Code's calls."""


class AgentEvent:
    """A log record of one of the programs: its name and where it belongs."""

    __slots__ = ("kind", "program", "record")

    def __init__(self, record: LogRecord, program: str, kind: str) -> None:
        self.record = record
        self.program = program
        self.kind = kind
        """The name without the program's prefix."""


def agent_event(record: LogRecord) -> AgentEvent | None:
    """Return *record* as an event of one of the programs; None for any other record."""
    for name in (record.name, record.body):
        if isinstance(name, str) and name.startswith(PREFIXES):
            program, _, kind = name.partition(".")
            return AgentEvent(record, program, kind)
    program = SERVICES.get(str(record.resource.get("service.name")), "")
    return AgentEvent(record, program, record.name) if program and record.name else None


def read_call(event: AgentEvent) -> ReportedCall | None:
    """Return the call that an event reports, if it reports one."""
    attributes = event.record.attributes
    call: ReportedCall | None = None
    if event.program == "claude_code" and event.kind == "api_request":
        call = claude_call(attributes)
    elif event.program == "codex" and event.kind == "sse_event":
        call = _codex_call(attributes)
    elif event.program in ("gemini_cli", "qwen-code") and event.kind == "api_response":
        call = _gemini_call(attributes, event.program)
    if call is not None:
        call.agent = AGENTS[event.program]
        session = session_of(event)
        call.parent = session if call.conversation not in ("", session) else ""
        call.conversation = call.conversation or session
    return call


def read_compaction(event: AgentEvent) -> ReportedCompaction | None:
    """Return the compaction that an event reports, if it reports one."""
    attributes = event.record.attributes
    if event.program == "claude_code" and event.kind == "compaction":
        return ReportedCompaction(
            text_of(attributes, "trigger") or "auto",
            count_of(attributes, "pre_tokens"),
            count_of(attributes, "post_tokens"),
            str(attributes.get("success", "true")).lower() != "false",
            _seconds(attributes, "duration_ms"),
        )
    if event.program in ("gemini_cli", "qwen-code") and event.kind == "chat_compression":
        before, after = count_of(attributes, "tokens_before"), count_of(attributes, "tokens_after")
        return ReportedCompaction("auto", before, after, before is None or after is None or after < before)
    return None


class Thread(NamedTuple):
    """A statement of Codex about a conversation; fields that it does not state are empty."""

    conversation: str
    parent: str = ""
    """The conversation that started it."""
    compaction_tokens: int | None = None
    """The configured level at which it is compacted."""


def read_thread(event: AgentEvent) -> Thread | None:
    """Return the statement of an event of Codex about a conversation, if it makes one."""
    attributes = event.record.attributes
    if event.program != "codex":
        return None
    if event.kind == "conversation_starts":
        return Thread(session_of(event), compaction_tokens=count_of(attributes, "auto_compact_token_limit"))
    if event.kind == "agent_communication" and attributes.get("kind") == "spawn":
        return Thread(text_of(attributes, "receiver_thread_id"), text_of(attributes, "sender_thread_id"))
    return None


def session_of(event: AgentEvent) -> str:
    """Return the id of the event's session."""
    record = event.record
    names = ("session.id", "conversation.id", "session_id", "thread.id")
    return text_of(record.attributes, *names) or text_of(record.resource, *names)


def latency_seconds(event: AgentEvent) -> float | None:
    """Return how long the call took, whose event is sent at its end."""
    return _seconds(event.record.attributes, "duration_ms")


def claude_call(attributes: Attributes) -> ReportedCall:
    """Return a call of Claude Code, in an event or in a span; its input is stated without the cache."""
    source = text_of(attributes, "query_source")
    call = ReportedCall(
        "claude_code",
        text_of(attributes, "model", "gen_ai.request.model"),
        usage=CLAUDE_CODE_EVENT.read(attributes),
        response_id=text_of(attributes, "request_id"),
        stop_reason=first_of(attributes.get("stop_reason")),
        cost_dollars=amount_of(attributes, "cost_usd"),
        conversation=text_of(attributes, "session.id"),
        agent=AGENTS["claude_code"],
    )
    if source and not source.startswith(MAIN_THREAD):
        agent_id = text_of(attributes, "agent_id", "agent.id")
        call.part = f"agent-{agent_id}" if agent_id else text_of(attributes, "agent.name") or source
    return call


def _codex_call(attributes: Attributes) -> ReportedCall | None:
    if attributes.get("event.kind") != "response.completed" or count_of(attributes, "input_token_count") is None:
        return None
    return ReportedCall(
        "codex",
        text_of(attributes, "model", "slug"),
        usage=CODEX_EVENT.read(attributes),
        response_id=text_of(attributes, "response.id"),
    )


def _gemini_call(attributes: Attributes, program: str) -> ReportedCall:
    """Return a call of Gemini CLI or Qwen Code; a sub-agent's has the session that its own recording has."""
    call = ReportedCall(
        program,
        text_of(attributes, "model"),
        usage=GEMINI_CLI_EVENT.read(attributes),
        response_id=text_of(attributes, "response_id"),
        stop_reason=first_of(attributes.get("finish_reasons")),
    )
    role, prompt_id = text_of(attributes, "role"), text_of(attributes, "prompt_id")
    if role == "subagent":
        call.conversation = prompt_id.rpartition("#")[0]
    elif role.startswith(GEMINI_SIDE_CALLS):
        call.part = role
    elif text_of(attributes, "subagent_name"):
        _, _, run = prompt_id.partition("#")
        call.part = run.rpartition("#")[0] or text_of(attributes, "subagent_name")
    else:
        call.part = next((start for start in QWEN_SIDE_CALLS if prompt_id.startswith(start)), "")
    return call


def _seconds(attributes: dict[str, Any] | Attributes, name: str) -> float | None:
    milliseconds = amount_of(attributes, name)
    return None if milliseconds is None else milliseconds / 1_000
