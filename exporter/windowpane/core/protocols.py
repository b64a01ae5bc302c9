"""Protocols of the dependencies that the pure core receives: clock, digests, counters, catalog, sinks, archive.

The core never reads a file, a clock or the network itself. Each protocol is as small as its caller needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from windowpane.core.vocabulary import CountSource, LimitSource
from windowpane.exceptions import WindowpaneError

if TYPE_CHECKING:
    from windowpane.core.events import Event, Usage

Clock = Callable[[], float]
"""Seconds since the epoch, UTC."""

Digester = Callable[[str], str]
"""Text to a short hexadecimal digest, keyed per store so that digests of two stores cannot be compared."""


@runtime_checkable
class TokenCounter(Protocol):
    """Counts the tokens of a text for one model."""

    @property
    def source(self) -> CountSource:
        """Accuracy of the counts: `exact` or `estimate`."""
        ...

    def count(self, text: str) -> int:
        """Return the tokens of *text*; 0 for the empty string."""
        ...


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """The catalog entry of one model."""

    name: str
    """Name of the model in the catalog, safe as a metric label."""
    limit_tokens: int | None
    """Size of the context window; None when unknown."""
    provider: str = ""
    limit_source: LimitSource = "catalogue"
    smaller_tokens: int | None = None
    """The smaller one of two windows that the model is sold with; some agents, hosts and plans enforce it."""


class ModelCatalog(Protocol):
    """Model names to window sizes and prices, from a maintained data package."""

    def lookup(self, model: str) -> ModelInfo | None:
        """Return the entry of *model*, or None for an unknown model."""
        ...

    def family_limit(self, model: str) -> int | None:
        """Return the window of the newest model of the same family, for a model without an entry."""
        ...

    def next_limit(self, model: str, above: int) -> int | None:
        """Return the smallest window size of the model's provider that is at least *above* tokens."""
        ...

    def smaller_limit(self, model: str, used: int) -> int | None:
        """Return the smaller of two window sizes that *model* is sold with, if *used* tokens fit it."""
        ...

    def cost_dollars(self, model: str, usage: Usage, at: float | None) -> float | None:
        """Return the price of one call in US dollars at the time *at*; None when unknown."""
        ...


class EventSink(Protocol):
    """A destination of events. The pipeline's worker calls it, never the agent."""

    def write(self, batch: Sequence[Event]) -> None:
        """Write a batch of events in order. May raise: the pipeline contains and counts the error."""
        ...


class EventsSkippedError(WindowpaneError):
    """A sink accepted a batch except *events*, which it cannot use."""

    def __init__(self, events: Sequence[Event], cause: Exception) -> None:
        self.events = tuple(events)
        super().__init__(f"{len(events)} events cannot be used ({type(cause).__name__}: {cause})")


class Archive(Protocol):
    """Stores the originals of removed content, retrievable by handle."""

    def put(self, session_id: str, handle: str, text: str) -> None:
        """Store *text* under *handle*, with secrets redacted."""
        ...

    def get(self, session_id: str, handle: str) -> str | None:
        """Return the text stored under *handle*, or None when it has expired or never existed."""
        ...


class Embedder(Protocol):
    """Maps text to a vector; used for semantic duplication."""

    def __call__(self, text: str) -> Sequence[float]:
        """Return a vector of fixed length."""
        ...


class EnvironmentProbe(Protocol):
    """Observes the environment of a task, so that a resumed task can report changes."""

    def observe(self, paths: Sequence[str]) -> Mapping[str, str]:
        """Return facts by name, such as the commit that is checked out, and one for each of *paths*."""
        ...
