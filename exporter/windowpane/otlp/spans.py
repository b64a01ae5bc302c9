"""The window on the agent's own OpenTelemetry spans: the GenAI conventions' attributes, and ours.

The API is never imported here. Where the agent traces, it has imported it; where it has not, there is no span.
Sources: the GenAI conventions for `gen_ai.conversation.*` (`compacted` is set to true or not at all); they have
no attributes for the window yet, so its size and use have the names Sentry gave them.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final

from windowpane.manager.spans import SpanIds, WindowOnSpan
from windowpane.otlp.records import plain

Attributes = dict[str, str | int | float | bool]

_API: Final = "opentelemetry.trace"
_OPERATION: Final = "gen_ai.operation.name"
_INFERENCE: Final = frozenset({"chat", "generate_content", "text_completion"})
_COMPACTED: Final = "gen_ai.conversation.compacted"

_latest: ContextVar[WindowOnSpan | None] = ContextVar("windowpane_window", default=None)
"""The window of the call that this thread or task is about to make, for spans that begin later."""


def attributes_of(window: WindowOnSpan) -> Attributes:
    """What a span says about the window of its call; what is unknown is left out."""
    status = window.status
    attributes: Attributes = {
        "gen_ai.conversation.id": plain(window.session_id),
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
    """A `SpanLink` to whatever span OpenTelemetry's context holds."""

    def current(self) -> SpanIds | None:
        """Ids of the current span; None where nothing is traced."""
        span = _current()
        if span is None:
            return None
        context = span.get_span_context()
        return SpanIds(f"{context.trace_id:032x}", f"{context.span_id:016x}") if context.is_valid else None

    def describe(self, window: Callable[[], WindowOnSpan]) -> None:
        """Set the attributes on the current span, and keep them for the inference span that begins next."""
        span = _current()
        if span is None:
            return
        found = window()
        _latest.set(found)
        if span.is_recording():
            _set(span, found)


class WindowSpanProcessor:
    """Tells inference spans that an instrumentation of the client begins by itself about the window.

    Add it to the tracer provider: `provider.add_span_processor(WindowSpanProcessor())`. It has the shape of the
    SDK's `SpanProcessor`, and works for calls made on the thread or task that called `on_turn_start`.
    """

    def on_start(self, span: Any, parent_context: Any = None) -> None:  # noqa: ARG002  # the SDK's signature
        """A span begins."""
        window = _latest.get()
        if window is not None and _operation(span) in _INFERENCE:
            _set(span, window)

    def on_end(self, span: Any) -> None:
        """A span has ended; there is nothing to add."""

    def _on_ending(self, span: Any) -> None:
        """A span is about to end; there is nothing to add."""

    def shutdown(self) -> None:
        """Nothing is held."""

    def force_flush(self, timeout_millis: int = 30_000) -> bool:  # noqa: ARG002  # the SDK's signature
        """Nothing waits."""
        return True


def _current() -> Any | None:
    """The span of the context, maybe one that records nothing; None where OpenTelemetry is not in use."""
    api = sys.modules.get(_API)
    return None if api is None else api.get_current_span()


def _operation(span: Any) -> str | None:
    """The GenAI operation a span says it is; only spans of the SDK can be read."""
    value = (getattr(span, "attributes", None) or {}).get(_OPERATION)
    return value if isinstance(value, str) else None


def _set(span: Any, window: WindowOnSpan) -> None:
    attributes = attributes_of(window)
    if _operation(span) not in (None, *_INFERENCE):
        attributes.pop(_COMPACTED, None)  # the conventions have it on inference spans only
    span.set_attributes(attributes)
