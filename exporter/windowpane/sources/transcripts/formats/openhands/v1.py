"""Events of OpenHands' SDK (V1): objects with a `kind`.

A call is one `llm_response_id`, which several actions can share. Its usage is that of the state beside the events
(`base_state.json`), where there is one; else what the totals of a `stats` event grew by.
"""

from __future__ import annotations

from typing import Any, Final

from windowpane.sources.transcripts.formats.openhands.events import CallCost, EventLog
from windowpane.sources.transcripts.json_document import MAXIMUM_NAME_CHARS
from windowpane.sources.transcripts.json_lines import as_json, count, instant, mapping, sequence, text, texts
from windowpane.sources.transcripts.records import SessionClosed, SessionDescribed

_SILENT: Final = frozenset(
    {
        "PauseEvent", "CondensationSummaryEvent",
        "LLMCompletionLogEvent", "HookExecutionEvent", "StreamingDeltaEvent", "TokenEvent",
        "ConversationErrorEvent",
        "SecurityAnalyzerConfigurationEvent", "ConversationWarningEvent", "InterruptEvent",
    }
)  # fmt: skip
"""Kinds without content for the model."""
_OVER: Final = ("completed", "failed")
_FINISHED: Final = {"finished": "completed", "error": "error: agent_error", "stuck": "error: agent_error"}
MAIN_USAGE: Final = ("default", "agent")
"""Names under which the totals of the agent's own model are listed; others are condensers and title writers."""


class SdkEvents(EventLog):
    """Reads the events of one conversation."""

    _trigger = "auto"
    """Trigger of the next condensation."""

    def read(self, event: dict[str, Any], number: int) -> None:
        """Add the records of one event."""
        kind, at = text(event.get("kind")), instant(event.get("timestamp"))
        key = text(event.get("id"))
        self.open(at)
        if kind == "SystemPromptEvent":
            self._count(text(mapping(event.get("system_prompt")).get("text")))
            self._system(event, key, at)
        elif kind == "MessageEvent":
            self._message(event, key, at)
        elif kind == "ActionEvent":
            self._action(event, key, at)
        elif kind == "ObservationEvent":
            self._result(_text_of(mapping(event.get("observation"))), event, key, at)
        elif kind == "UserRejectObservation":
            self._result(f"Action rejected: {text(event.get('rejection_reason'))}", event, key, at)
        elif kind == "AgentErrorEvent":
            self._result(text(event.get("error")), event, key, at)
        elif kind == "CondensationRequest":
            self._trigger = "manual" if event.get("reason") == "manual" else "auto"
        elif kind == "Condensation":
            forgotten = texts(event.get("forgotten_event_ids"))
            self.condense(forgotten, text(event.get("summary")), at, trigger=self._trigger)
            self._trigger = "auto"
        elif kind == "ACPToolCallEvent":
            self._executed(event, key, at)
        elif kind == "ConversationStateUpdateEvent":
            self._state(event, at)
        elif kind not in _SILENT:
            self.log.odd(number, "kind", f"unknown kind {kind[:64]!r}, skipped")

    # -- content ----------------------------------------------------------------------------------------------

    def _system(self, event: dict[str, Any], key: str, at: float | None) -> None:
        for field in ("system_prompt", "dynamic_context"):
            self.add("system_prompt", text(mapping(event.get(field)).get("text")), key, at)
        for tool in sequence(event.get("tools")):
            definition = mapping(tool)
            name = text(definition.get("title") or definition.get("name"))[:MAXIMUM_NAME_CHARS]
            self.add("tool_definition", as_json(tool), key, at, name=name or None)

    def _message(self, event: dict[str, Any], key: str, at: float | None) -> None:
        message = mapping(event.get("llm_message"))
        written, media = _text_of(message), _media_of(message)
        self._count(written)
        if event.get("source") == "agent":
            if self.start_call(text(event.get("llm_response_id")) or key):
                self._think(message, key, at)
            self.add("assistant_response", written, key, at)
            return
        self.interrupt()
        if event.get("source") == "user":
            self.stats.user_turns += 1
        self.add("user_message", written, key, at, media=media)
        injected = _text_of({"content": event.get("extended_content")})
        self.add("memory_injection", injected, key, at)

    def _action(self, event: dict[str, Any], key: str, at: float | None) -> None:
        self.stats.messages += 1
        self.stats.tool_calls += 1
        if self.start_call(text(event.get("llm_response_id")) or key):
            self._think(event, key, at)
            self.add("assistant_response", _text_of({"content": event.get("thought")}), key, at)
        call = mapping(event.get("tool_call"))
        name = text(event.get("tool_name") or call.get("name"))[:MAXIMUM_NAME_CHARS]
        arguments = call.get("arguments")
        written = arguments if isinstance(arguments, str) else as_json(event.get("action") or {})
        self.add("tool_call", written, key, at, call_id=_call_id(event), name=name or None)

    def _think(self, message: dict[str, Any], key: str, at: float | None) -> None:
        blocks = "".join(
            text(mapping(block).get("thinking")) for block in sequence(message.get("thinking_blocks"))
        )
        self.add("thinking", blocks or text(message.get("reasoning_content")), key, at)

    def _result(self, output: str, event: dict[str, Any], key: str, at: float | None) -> None:
        self._count(output)
        self.interrupt()
        name = text(event.get("tool_name"))[:MAXIMUM_NAME_CHARS] or None
        media = _media_of(mapping(event.get("observation")))
        self.add("tool_result", output, key, at, call_id=_call_id(event), name=name, media=media)
        self.add("memory_injection", _text_of({"content": event.get("extended_content")}), key, at)

    def _executed(self, event: dict[str, Any], key: str, at: float | None) -> None:
        """Add a tool call that another agent's program executed, with its result, once it is over."""
        is_over = event.get("status") in _OVER or event.get("is_error") is True
        if not is_over or event.get("parent_tool_call_id"):  # the latter is in the window of a sub-agent
            return
        self.stats.tool_calls += 1
        name = text(event.get("title") or event.get("tool_kind"))[:MAXIMUM_NAME_CHARS] or None
        self.add("tool_call", as_json(event.get("raw_input")), key, at, call_id=_call_id(event), name=name)
        output = event.get("raw_output")
        written = output if isinstance(output, str) else "" if output is None else as_json(output)
        written = written or "\n".join(filter(None, map(_block_text, sequence(event.get("content")))))
        self._count(written)
        self.add("tool_result", written, key, at, call_id=_call_id(event), name=name)

    def _count(self, written: str) -> None:
        self.stats.messages += 1
        self.stats.content_chars += len(written)

    # -- state ------------------------------------------------------------------------------------------------

    def _state(self, event: dict[str, Any], at: float | None) -> None:
        name, value = text(event.get("key")), event.get("value")
        if name == "stats":
            self._usage(mapping(value), at)
        elif name == "full_state":
            state = mapping(value)
            self._usage(mapping(state.get("stats")), at)
            self.describe(described(state))
        elif name == "execution_status" and text(value) in _FINISHED:
            self.interrupt()
            self.out.append(SessionClosed(_FINISHED[text(value)], at))

    def _usage(self, stats: dict[str, Any], at: float | None) -> None:
        metrics = main_metrics(stats)
        totals = mapping(metrics.get("accumulated_token_usage"))
        self.state_limit(count(totals.get("context_window")), at)
        cost = self.totals.next_call(totals, metrics.get("accumulated_cost"))
        if cost is not None and not self._costs:
            self.set_cost(CallCost(cost.usage, cost.model or text(metrics.get("model_name")), cost.cost_dollars))


def main_metrics(stats: dict[str, Any]) -> dict[str, Any]:
    """Return the metrics of the agent's own model."""
    by_name = mapping(stats.get("usage_to_metrics"))
    names = [name for name in (*MAIN_USAGE, *by_name) if name in by_name]
    is_clear = bool(names) and (names[0] in MAIN_USAGE or len(by_name) == 1)
    return mapping(by_name.get(names[0])) if is_clear else {}


def described(state: dict[str, Any]) -> SessionDescribed:
    """Return the names of a conversation in its state."""
    return SessionDescribed(
        title=text(state.get("title")), folder=text(mapping(state.get("workspace")).get("working_dir"))
    )


def _block_text(block: object) -> str:
    """Return the text of a block of the Agent Client Protocol, which may be within `content`."""
    stated = mapping(block)
    inner = mapping(stated.get("content"))
    return text(inner.get("text")) or next(
        (text(stated.get(name)) for name in ("text", "new_text", "newText") if stated.get(name)), ""
    )


def _call_id(event: dict[str, Any]) -> str | None:
    return text(event.get("tool_call_id"))[:MAXIMUM_NAME_CHARS] or None


def _text_of(holder: dict[str, Any]) -> str:
    """Return the text of a message's or an observation's content; earlier observations have one `output`."""
    content = holder.get("content")
    if isinstance(content, str):
        return content
    if content is None:
        return text(holder.get("output"))
    return "".join(text(mapping(part).get("text")) for part in sequence(content))


def _media_of(holder: dict[str, Any]) -> int:
    images = (mapping(part).get("image_urls") for part in sequence(holder.get("content")))
    return sum(len(sequence(urls)) for urls in images)
