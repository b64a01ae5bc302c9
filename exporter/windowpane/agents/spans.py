"""Attributes of the context window on the agent's OpenTelemetry spans.

The API is never imported here: an agent that traces has imported it, and without the API no span exists. Sources:
the GenAI conventions for `gen_ai.conversation.*` (`compacted` is set to true or not at all). They have no
attributes for the window yet, so its size and utilization have Sentry's names.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final

from windowpane.manager.spans import SpanIds, WindowOnSpan
from windowpane.outputs.otlp.records import attribute_text

Attributes = dict[str, str | int | float | bool]

_API: Final = "opentelemetry.trace"
_OPERATION: Final = "gen_ai.operation.name"
_INFERENCE: Final = frozenset({"chat", "generate_content", "text_completion"})
_COMPACTED: Final = "gen_ai.conversation.compacted"

_latest: ContextVar[WindowOnSpan | None] = ContextVar("windowpane_window", default=None)
"""The window of the next call of this thread or task, for spans that start later."""


def span_attributes(window: WindowOnSpan) -> Attributes:
    """Return the attributes of the call's window, without unknown values."""
    status = window.status
    attributes: Attributes = {
        "gen_ai.conversation.id": attribute_text(window.session_id),
        "context_window.used_tokens": status.used_tokens,
        "context_window.turn": status.turn,
        "context_window.window.id": status.window_id,
    }
    if status.limit_tokens is not None:
        attributes["gen_ai.context.window_size"] = status.limit_tokens
    if status.utilization is not None:
        attributes["gen_ai.context.utilization"] = status.utilization
    if status.zone is not None:
        attributes["context_window.zone"] = status.zone
    if status.turns_until_red is not None and math.isfinite(status.turns_until_red):
        attributes["context_window.turns_until_red"] = status.turns_until_red
    if window.compacted:
        attributes[_COMPACTED] = True
    return attributes


class CurrentSpan:
    """A `SpanLink` to the current span of OpenTelemetry's context."""

    def current(self) -> SpanIds | None:
        """Return the ids of the current span; None without one."""
        span = _current()
        if span is None:
            return None
        context = span.get_span_context()
        return SpanIds(f"{context.trace_id:032x}", f"{context.span_id:016x}") if context.is_valid else None

    def describe(self, window: Callable[[], WindowOnSpan]) -> None:
        """Set the attributes on the current span, and store them for the next inference span."""
        span = _current()
        if span is None:
            return
        described = window()
        _latest.set(described)
        if span.is_recording():
            _set(span, described)


class WindowSpanProcessor:
    """Adds the window's attributes to inference spans that an instrumentation of the client starts.

    Add it to the tracer provider: `provider.add_span_processor(WindowSpanProcessor())`. It has the interface of
    the SDK's `SpanProcessor`, and works for calls on the thread or task that called `on_turn_start`.
    """

    def on_start(self, span: Any, parent_context: Any = None) -> None:  # noqa: ARG002  # the SDK's signature
        """Set the attributes on a started inference span."""
        window = _latest.get()
        if window is not None and _operation(span) in _INFERENCE:
            _set(span, window)

    def on_end(self, span: Any) -> None:
        """Do nothing: the span has its attributes."""

    def _on_ending(self, span: Any) -> None:
        """Do nothing: the span has its attributes."""

    def shutdown(self) -> None:
        """Do nothing: the processor does not hold resources."""

    def force_flush(self, timeout_millis: int = 30_000) -> bool:  # noqa: ARG002  # the SDK's signature
        """Return True: nothing is pending."""
        return True


def _current() -> Any | None:
    """Return the current span, which may not record; None if OpenTelemetry is not in use."""
    api = sys.modules.get(_API)
    return None if api is None else api.get_current_span()


def _operation(span: Any) -> str | None:
    """Return the GenAI operation of a span; only spans of the SDK can be read."""
    value = (getattr(span, "attributes", None) or {}).get(_OPERATION)
    return value if isinstance(value, str) else None


def _set(span: Any, window: WindowOnSpan) -> None:
    attributes = span_attributes(window)
    if _operation(span) not in (None, *_INFERENCE):
        attributes.pop(_COMPACTED, None)  # the conventions define it for inference spans only
    span.set_attributes(attributes)
