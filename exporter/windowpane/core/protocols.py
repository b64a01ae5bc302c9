"""The protocols between the pure core and the world around it.

The core never reads a file, a clock or the network: whatever it needs of them comes in through
one of these protocols. Each is as small as its caller, so a test double is a few lines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from windowpane.core.vocabulary import CountSource

if TYPE_CHECKING:
    from windowpane.core.events import Event, Usage

Clock = Callable[[], float]
"""Seconds since the epoch, UTC."""

Digester = Callable[[str], str]
"""Text to a short hexadecimal digest, keyed per store so that digests reveal nothing across stores."""


@runtime_checkable
class TokenCounter(Protocol):
    """Counts the tokens of a text for one model."""

    @property
    def source(self) -> CountSource:
        """How far the counts can be trusted: `exact` or `estimate`."""
        ...

    def count(self, text: str) -> int:
        """Tokens of *text*; 0 for the empty string."""
        ...


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What a catalog knows about one model."""

    name: str
    """The catalog's name of the model, safe as a metric label."""
    limit_tokens: int | None
    """Size of the context window; None when the catalog does not say."""
    provider: str = ""


class ModelCatalog(Protocol):
    """Model names to window sizes and prices, from a maintained data package."""

    def lookup(self, model: str) -> ModelInfo | None:
        """What is known about *model*, or None: an unknown model has an unknown limit."""
        ...

    def next_limit(self, model: str, above: int) -> int | None:
        """The smallest window size sold by the model's provider that is at least *above* tokens."""
        ...

    def cost_dollars(self, model: str, usage: Usage, at: float | None) -> float | None:
        """Price of one call in US dollars at the time *at*; None when the price is unknown."""
        ...


class EventSink(Protocol):
    """Something events are written to. Called from the pipeline's worker, never from the agent."""

    def write(self, batch: Sequence[Event]) -> None:
        """Take a batch of events in order. May raise: the pipeline contains and counts it."""
        ...


class Archive(Protocol):
    """Keeps the originals of what left the window, retrievable by handle."""

    def put(self, session_id: str, handle: str, text: str) -> None:
        """Keep *text* under *handle*; secrets are redacted before it is stored."""
        ...

    def get(self, session_id: str, handle: str) -> str | None:
        """The text kept under *handle*, or None when it has expired or never existed."""
        ...


class LanguageModel(Protocol):
    """Any callable that answers a system and a user prompt with text."""

    def __call__(self, system: str, user: str) -> str:
        """The model's answer."""
        ...


class Embedder(Protocol):
    """Text to a vector; used for semantic duplication."""

    def __call__(self, text: str) -> Sequence[float]:
        """A vector of fixed length."""
        ...


class EnvironmentProbe(Protocol):
    """Looks at what surrounds a task, so that a resumed one can tell what changed meanwhile."""

    def observe(self, paths: Sequence[str]) -> Mapping[str, str]:
        """Facts by name, such as the commit that is checked out, and one for each of *paths*."""
        ...
