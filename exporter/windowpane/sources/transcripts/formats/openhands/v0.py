"""Events of OpenHands before its SDK (V0): objects with an `action` or an `observation`.

A call is one response of the model, which an event holds whole beside its action (`tool_call_metadata`); without
it every action of the agent is one call. A delegate works in its own window between the action that starts it and
the observation that ends it.
"""

from __future__ import annotations

from typing import Any, Final

from windowpane.sources.transcripts.formats.openai_chat import usage_of
from windowpane.sources.transcripts.formats.openhands.events import AGENT, CallCost, EventLog
from windowpane.sources.transcripts.json_document import MAXIMUM_NAME_CHARS, DocumentLog, JsonObject
from windowpane.sources.transcripts.json_lines import as_json, instant, mapping, sequence, text
from windowpane.sources.transcripts.records import SessionClosed, SessionDescribed, SessionOpened

_SILENT_ACTIONS: Final = frozenset(
    {
        "change_agent_state",
        "null",
        "recall",
        "condensation_request",
        "start",
        "pause",
        "resume",
        "stop",
        "summarize",
    }
)
_SILENT_OBSERVATIONS: Final = frozenset({"agent_state_changed", "null", "user_rejected_state", "loop_detection"})
_REPLIES: Final = frozenset({"message", "finish", "reject"})
"""Actions of the agent that are text for the user."""
_BOOKKEEPING: Final = frozenset(
    {
        "action", "thought", "keep_prompt", "is_confirmed", "confirmation_state", "action_risk", "security_risk",
        "kernel_init_code", "hidden", "blocking", "is_input", "is_static", "cwd", "translated_ipython_code",
        "impl_source", "wait_for_response", "include_extra", "images_urls", "image_urls",
    }
)  # fmt: skip
"""Arguments of an action that the model did not write."""
MAXIMUM_DELEGATES: Final = 16
"""Delegates within delegates."""


class ClassicEvents(EventLog):
    """Reads the events of one conversation."""

    def __init__(self, log: DocumentLog, key: str, **more: Any) -> None:
        super().__init__(log, key, **more)
        self._document = log
        self._sessions = [key]
        """The session, and the delegates that work for it."""
        self._last_call = ""
        """The call that an observation without any id answers."""

    def read(self, event: dict[str, Any], number: int) -> None:
        """Add the records of one event."""
        at = instant(event.get("timestamp"))
        self.open(at)
        key = _key(event, number)
        self.stats.messages += 1
        arguments = event.get("args")
        if isinstance(arguments, dict):
            self.stats.content_chars += len(as_json(arguments))
        self.stats.content_chars += len(text(event.get("content")))
        action, observation = text(event.get("action")), text(event.get("observation"))
        if action:
            self._act(action, event, key, at)
        elif observation and observation not in _SILENT_OBSERVATIONS:
            self._observe(observation, event, key, at)
        elif not observation:
            self.log.odd(number, "action", "an event without an action or an observation, skipped")

    # -- actions ----------------------------------------------------------------------------------------------

    def _act(self, action: str, event: dict[str, Any], key: str, at: float | None) -> None:
        arguments = mapping(event.get("args")) or event
        source = text(event.get("source"))
        if action == "system":
            self._system(arguments, key, at)
        elif action == "condensation":
            self.condense(_forgotten(arguments), text(arguments.get("summary")), at)
        elif action in _SILENT_ACTIONS:
            return
        elif source in ("user", "environment") or (not source and action == "message"):
            self._instruct(arguments, key, at, by_user=source == "user")
        else:
            self._reply(action, event, arguments, key, at)

    def _system(self, arguments: dict[str, Any], key: str, at: float | None) -> None:
        version = text(arguments.get("openhands_version"))[:MAXIMUM_NAME_CHARS]
        self.describe(SessionDescribed(agent_version=version))
        self.add("system_prompt", text(arguments.get("content")), key, at)
        for tool in sequence(arguments.get("tools")):
            name = text(mapping(mapping(tool).get("function")).get("name"))[:MAXIMUM_NAME_CHARS]
            self.add("tool_definition", as_json(tool), key, at, name=name or None)

    def _instruct(self, arguments: dict[str, Any], key: str, at: float | None, *, by_user: bool) -> None:
        self.interrupt()
        self.stats.user_turns += by_user
        media = len(sequence(arguments.get("image_urls")))
        self.add("user_message", text(arguments.get("content")), key, at, media=media)

    def _reply(
        self, action: str, event: dict[str, Any], arguments: dict[str, Any], key: str, at: float | None
    ) -> None:
        """Add an action of the agent: the text of the reply it is from, once, and its call of a tool."""
        metadata = mapping(event.get("tool_call_metadata"))
        response = mapping(metadata.get("model_response"))
        choice = mapping(next(iter(sequence(response.get("choices"))), None))
        message = mapping(choice.get("message"))
        written = text(message.get("content")) if metadata else text(arguments.get("thought"))
        if action == "message":
            written = text(arguments.get("content")) or written
        elif action in ("finish", "reject"):
            written = written or text(arguments.get("final_thought"))
        if self.start_call(text(response.get("id")) or f"event-{key}", self._cost(event, response, choice)):
            self.add("thinking", text(message.get("reasoning_content")), key, at)
            self.add("assistant_response", written, key, at)
        if action not in _REPLIES:
            self.stats.tool_calls += 1
        if action not in _REPLIES or metadata:
            self._last_call = text(metadata.get("tool_call_id"))[:MAXIMUM_NAME_CHARS] or f"call-{key}"
            name = (text(metadata.get("function_name")) or action)[:MAXIMUM_NAME_CHARS]
            sent = _arguments(self._last_call, message, arguments)
            self.add("tool_call", sent, key, at, call_id=self._last_call, name=name)
        if action == "delegate":
            self._delegate(key, at)

    def _cost(self, event: dict[str, Any], response: dict[str, Any], choice: dict[str, Any]) -> CallCost | None:
        """Return what the event states of its call; None where other parts of the recording may know it."""
        metrics = mapping(event.get("llm_metrics"))
        grown = self.totals.next_call(
            mapping(metrics.get("accumulated_token_usage")), metrics.get("accumulated_cost")
        )
        usage = usage_of(JsonObject(response, "tool_call_metadata.model_response", self._document))
        if usage is None:
            return grown
        model = text(response.get("model"))[:MAXIMUM_NAME_CHARS]
        stop = text(choice.get("finish_reason"))[:64] or None
        return CallCost(usage, model, None if grown is None else grown.cost_dollars, None, stop)

    # -- observations -----------------------------------------------------------------------------------------

    def _observe(self, observation: str, event: dict[str, Any], key: str, at: float | None) -> None:
        extras = mapping(event.get("extras"))
        self.interrupt()
        if observation == "recall":
            self.add("memory_injection", _recalled(extras), key, at)
            return
        child = self._end_delegate(at) if observation == "delegate" else None
        metadata = mapping(event.get("tool_call_metadata"))
        cause = event.get("cause")
        call_id = text(metadata.get("tool_call_id"))[:MAXIMUM_NAME_CHARS] or (
            f"call-{cause}" if isinstance(cause, int) else self._last_call
        )
        name = text(metadata.get("function_name")) or observation
        content = text(event.get("content")) or (as_json(extras.get("outputs")) if extras.get("outputs") else "")
        images = len(sequence(extras.get("image_urls")))
        self.add(
            "tool_result", content, key, at, call_id=call_id or None, name=name[:MAXIMUM_NAME_CHARS],
            media=images, child_key=child,
        )  # fmt: skip

    # -- delegates --------------------------------------------------------------------------------------------

    def _delegate(self, key: str, at: float | None) -> None:
        """Continue in the window of a delegate."""
        self.end_call()
        if len(self._sessions) > MAXIMUM_DELEGATES:
            return
        parent = self._sessions[-1]
        child = f"{parent}/{key}"[:MAXIMUM_NAME_CHARS]
        self._sessions.append(child)
        self.stats.sessions += 1
        self.out.append(SessionOpened(child, AGENT, parent_key=parent, at=at))

    def _end_delegate(self, at: float | None) -> str | None:
        """Return to the window that delegated; returns the delegate's session."""
        if len(self._sessions) < 2:  # the session itself and its delegate
            return None
        child = self._sessions.pop()
        self.out.append(SessionClosed("completed", at))
        self.out.append(SessionOpened(self._sessions[-1], AGENT, at=at))
        return child


def _arguments(call_id: str, message: dict[str, Any], arguments: dict[str, Any]) -> str:
    """Return the arguments of a call: as the model wrote them, else those of the action."""
    calls = (mapping(call) for call in sequence(message.get("tool_calls")))
    sent = next((mapping(call.get("function")) for call in calls if call.get("id") == call_id), {})
    written = {field: value for field, value in arguments.items() if field not in _BOOKKEEPING}
    return text(sent.get("arguments")) or as_json(written)


def _key(event: dict[str, Any], number: int) -> str:
    event_id = event.get("id")
    return str(event_id) if isinstance(event_id, int) and abs(event_id) < 2**53 else f"row-{number}"


def _forgotten(arguments: dict[str, Any]) -> list[str]:
    """Return the keys of the events that a condensation removes, listed or as a range."""
    listed = [str(one) for one in sequence(arguments.get("forgotten_event_ids")) if isinstance(one, int)]
    first, last = arguments.get("forgotten_events_start_id"), arguments.get("forgotten_events_end_id")
    if listed or not isinstance(first, int) or not isinstance(last, int):
        return listed
    return [str(one) for one in range(max(first, 0), min(last, first + 100_000) + 1)]


def _recalled(extras: dict[str, Any]) -> str:
    """Return the texts that a recall put into the prompt; the template around them is not recorded."""
    fields = ("repo_instructions", "additional_agent_instructions", "conversation_instructions")
    parts = [text(extras.get(field)) for field in fields]
    parts += [text(mapping(entry).get("content")) for entry in sequence(extras.get("microagent_knowledge"))]
    return "\n".join(part for part in parts if part)
