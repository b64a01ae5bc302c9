"""Names the agents of the OpenAI Agents SDK, and who handed over to whom, by the spans of its tracing."""

from __future__ import annotations

from collections import OrderedDict
from types import new_class
from typing import Any, Final

from windowpane.sources.clients.agent_scopes import enter_agent, exit_agent
from windowpane.sources.clients.calls import boundary

_MODEL_CALLS: Final = ("generation", "response")
"""Types of spans around one call of a model."""
MAXIMUM_SPANS: Final = 10_000
"""Spans and handoffs that are remembered at once."""


def agents_trace_processor() -> Any:
    """Return a tracing processor by which observed calls are in sessions with the names of their agents.

    Use it in `agents.add_trace_processor(...)`, beside `observe_everything()` or an observed client. An agent
    that is handed the conversation, or that is used as a tool, has a child session. Nothing is exported.
    """
    from agents.tracing import TracingProcessor

    return new_class("WindowpaneTraceProcessor", (ProcessorMethods, TracingProcessor))()


class ProcessorMethods:
    """The methods of the processor."""

    def __init__(self) -> None:
        self._agents: OrderedDict[str, str] = OrderedDict()
        """Open spans, and the span of the agent that each is in."""
        self._handoffs: OrderedDict[tuple[str, str], str] = OrderedDict()
        """Traces and names of agents in them that were handed the conversation, and the span that did so."""
        self._runs: OrderedDict[str, tuple[str, str]] = OrderedDict()
        """Spans of agents, with their name and the span of the agent above them."""

    def on_trace_start(self, trace: Any) -> None:
        """Do nothing: a trace has no calls outside of its spans."""

    def on_trace_end(self, trace: Any) -> None:
        """Do nothing."""

    def on_span_start(self, span: Any) -> None:
        """Note which agent a span is in, and assign the call of a model to it."""
        with boundary.contain("reading a span of the Agents SDK"):
            above = self._agents.get(span.parent_id, "")
            data, own = span.span_data, above
            if data.type == "agent":
                own = span.span_id
                parent = above or self._handoffs.pop((span.trace_id, data.name), "")
                _remember(self._runs, own, (data.name, parent))
            _remember(self._agents, span.span_id, own)
            if data.type in _MODEL_CALLS and own in self._runs:
                name, parent = self._runs[own]
                enter_agent(name, own, parent)

    def on_span_end(self, span: Any) -> None:
        """Note a handoff, and end the assignment of a model's call."""
        with boundary.contain("reading a span of the Agents SDK"):
            own, data = self._agents.pop(span.span_id, ""), span.span_data
            if data.type in _MODEL_CALLS:
                exit_agent()
            elif data.type == "handoff" and data.to_agent:
                _remember(self._handoffs, (span.trace_id, data.to_agent), own)
            elif data.type == "agent":
                self._runs.pop(span.span_id, None)

    def shutdown(self, *_: object) -> None:
        """Do nothing: nothing waits here."""

    def force_flush(self) -> None:
        """Do nothing."""


def _remember(entries: OrderedDict[Any, Any], key: object, value: object) -> None:
    entries[key] = value
    if len(entries) > MAXIMUM_SPANS:
        entries.popitem(last=False)
