"""The link between hooks and the tracing span that is current around them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from windowpane.manager.engine import Engine
from windowpane.manager.status import Status


class SpanIds(NamedTuple):
    """Ids of a span and its trace; hexadecimal."""

    trace_id: str
    span_id: str


@dataclass(frozen=True, slots=True)
class WindowOnSpan:
    """Facts about the window that are written to the span of a call."""

    session_id: str
    status: Status
    compacted: bool
    """The conversation was compacted for this call."""


class SpanLink(Protocol):
    """The span that is current on the thread, or in the task, that calls a hook."""

    def current(self) -> SpanIds | None:
        """Its ids; None where there is no span."""
        ...

    def describe(self, window: Callable[[], WindowOnSpan]) -> None:
        """Describe the window on the span; *window* is called only if there is one."""
        ...


@contextmanager
def spanned(
    link: SpanLink,
    engine: Engine,
    lock: AbstractContextManager[Any],
    contain: Callable[[str, Exception], None],
) -> Iterator[None]:
    """Give a hook's events the current span's ids, and describe the window on the span afterwards.

    Failures of tracing are passed to *contain*; what the hook raises is raised.
    """
    try:
        ids = link.current()
        with lock:
            engine.tracker.set_span(*(ids or (None, None)))
    except Exception as error:  # noqa: BLE001 (telemetry never harms the agent)
        contain("reading the current span", error)

    def window() -> WindowOnSpan:
        with lock:
            compacted = (
                engine.reduction.compacted_turn is not None
                and engine.reduction.compacted_turn == engine.tracker.turn
            )
            return WindowOnSpan(engine.tracker.info.session_id, engine.status(), compacted)

    try:
        yield
    finally:
        try:
            link.describe(window)
        except Exception as error:  # noqa: BLE001 (telemetry never harms the agent)
            contain("describing the window to the current span", error)
