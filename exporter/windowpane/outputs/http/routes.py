"""The content of an HTTP endpoint: what it responds to which request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from prometheus_client.registry import CollectorRegistry


@dataclass(frozen=True, slots=True)
class Health:
    """State of the exporter; the details are sent to authenticated clients only."""

    ok: bool = True
    degraded: bool = False
    """True if it works, but events wait or the audit chain is broken; a probe still succeeds."""
    is_starting: bool = False
    """True while stored events are folded: everything works except the metrics."""
    details: Mapping[str, object] = field(default_factory=dict)

    @property
    def status(self) -> str:
        """`ok`, `starting`, `degraded` or `failing`, the most severe that holds."""
        if not self.ok:
            return "failing"
        return "degraded" if self.degraded else "starting" if self.is_starting else "ok"


@dataclass(frozen=True, slots=True)
class Target:
    """A metrics endpoint that Prometheus should scrape."""

    address: str
    """`host:port`."""
    labels: Mapping[str, str] = field(default_factory=dict)


class Headers(Protocol):
    """The headers of a request; the case of a name does not matter."""

    def get(self, name: str, /) -> str | None:
        """Return the first header of a name."""
        ...

    def items(self) -> Iterable[tuple[str, str]]:
        """Return all of them."""
        ...


class PostRequest(NamedTuple):
    """A POST whose client may make it."""

    path: str
    headers: Headers
    body: bytes
    """As it was sent."""
    project: str = ""
    """The project of its token; empty for none."""


class Response(NamedTuple):
    """The response to one request."""

    status: int
    body: bytes
    content_type: str = "text/plain; charset=utf-8"
    headers: tuple[tuple[str, str], ...] = ()


PostHandler = Callable[[PostRequest], Awaitable[Response]]
"""Runs on the event loop of the server, and blocks in threads only."""


def no_project(_: str) -> str:
    """Return the empty name, for every client."""
    return ""


@dataclass(frozen=True, slots=True)
class Routes:
    """The content of the endpoint; each callable is called at each request."""

    registry: CollectorRegistry | None = None
    """The metrics; None for an endpoint without any."""
    health: Callable[[], Health] = Health
    targets: Callable[[], Sequence[Target]] = tuple
    bearer_token: str | None = None
    posts: Mapping[str, PostHandler] = field(default_factory=dict)
    """The handlers of POST requests, by path; an agent's process has none."""
    project_of: Callable[[str], str] = no_project
    """The project of an `Authorization` header; empty for none."""
    authorized: Mapping[str, Callable[[str], bool]] = field(default_factory=dict)
    """The checks of the `Authorization` header for those paths that accept other tokens than *bearer_token*."""
