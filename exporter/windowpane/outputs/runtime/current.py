"""The outputs that run in this process: `start` registers them, managers and observed clients look them up.

Nothing heavy is imported here, so that an agent without outputs loads neither the store nor the endpoint.
"""

from __future__ import annotations

import secrets
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, Protocol

from windowpane.core.digests import KEY_BYTES, keyed_digester

if TYPE_CHECKING:
    from windowpane.config.schema import Config
    from windowpane.core.events import Event
    from windowpane.core.protocols import Digester
    from windowpane.outputs.runtime.task_queue import TaskQueue


class StoredWindow(NamedTuple):
    """The window in which the store's record of a session ends."""

    used_tokens: int
    digests: frozenset[str]
    """Those of its blocks."""


class RunningOutputs(Protocol):
    """The part of the process's outputs that a manager or an observed client uses."""

    def emit(self, batch: list[Event]) -> None:
        """Queue a turn's events without blocking."""
        ...

    @property
    def digest(self) -> Digester:
        """The store's keyed digester."""
        ...

    @property
    def config(self) -> Config:
        """The configuration that the outputs were started with."""
        ...

    @property
    def observations(self) -> TaskQueue:
        """The queue on which the calls of observed clients are read, off the agent's thread."""
        ...

    def earlier_compaction_tokens(self, agent: str, model: str, *, project: str) -> int | None:
        """Return the level at which *agent* compacted with *model* in the project before; None without one."""
        ...

    def stored_window(self, session_id: str) -> StoredWindow | None:
        """Return the window in which a stored session ends; None without one."""
        ...

    def record_hook(self, hook: str, seconds: float) -> None:
        """Record how long *hook* kept the agent waiting."""
        ...


_running: RunningOutputs | None = None


def running_outputs() -> RunningOutputs | None:
    """Return the outputs that `start` set up in this process; None before it and after `stop`."""
    return _running


def set_running_outputs(outputs: RunningOutputs | None) -> None:
    """Register the outputs of this process, or None when they stop."""
    global _running  # noqa: PLW0603  # one set of outputs per process
    _running = outputs


@cache
def process_digester() -> Digester:
    """Return a digester keyed for this process alone, used without a store."""
    return keyed_digester(secrets.token_bytes(KEY_BYTES))
