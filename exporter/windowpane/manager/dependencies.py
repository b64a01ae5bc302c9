"""The task of a managed session, and the dependencies it needs: tokenizer, stores, clocks, models."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from windowpane.core.events import Event, Usage
from windowpane.core.protocols import Archive, Clock, Digester, EnvironmentProbe, TokenCounter
from windowpane.core.vocabulary import CountSource
from windowpane.effects.background_writer import BackgroundWriter
from windowpane.fidelity.judge.sampling import SampledJudge
from windowpane.manager.plans.checkpoint import StoredCheckpoint
from windowpane.manager.plans.notes import NoteStore
from windowpane.manager.spans import SpanLink

BYTES_PER_TOKEN: Final = 4
_log = logging.getLogger(__name__)


class CheckpointStore(Protocol):
    """A store of checkpoints by task."""

    def save(self, document: dict[str, Any], markdown: str) -> None:
        """Write a checkpoint. Raises `StaleCheckpointError` if a newer one exists."""
        ...

    def load(self, task_id: str) -> StoredCheckpoint:
        """Return the newest intact checkpoint. Raises `CorruptCheckpointError` if all are damaged."""
        ...

    def archive(self, task_id: str) -> None:
        """Archive the checkpoints of a task: no session resumes from them any more."""
        ...


@dataclass(frozen=True, slots=True)
class Dependencies:
    """Tokenizer, stores, clocks and models of a manager; replace any of them to change or disable it."""

    counter: TokenCounter
    digest: Digester
    emit: Callable[[list[Event]], None]
    clock: Clock | None
    """None if events have no time."""
    timer: Callable[[], float]
    """Seconds of a monotonic clock, for durations."""
    archive: Archive | None = None
    checkpoints: CheckpointStore | None = None
    environment: EnvironmentProbe | None = None
    notes: NoteStore | None = None
    """A store in which the agent's notes survive the process."""
    subagent: Callable[[str], Any] | None = None
    """A sub-agent `(assignment) -> result`, sync or async, that works in a separate window."""
    model: Callable[[str, str], Any] | None = None
    """A language model `(system, user) -> text`, sync or async; writes summaries."""
    hook_took: Callable[[str, float], object] | None = None
    """Called with the name and seconds of each hook, for the exporter's metrics about itself."""
    cost_of: Callable[[Usage], float | None] | None = None
    model_cost_of: Callable[[Usage], float | None] | None = None
    """The price of a call of *model*, from its tokens as *counter* counts them; None if it is unknown."""
    next_limit: Callable[[int], int | None] | None = None
    judge: SampledJudge | None = None
    """Judges a sample of the compressions, off the agent's path."""
    evaluations: BackgroundWriter | None = None
    """Measures the fidelity of compressions after the hook that made them; None measures it within the hook."""
    spans: SpanLink | None = None
    """The link to the agent's own tracing."""


@dataclass(frozen=True, slots=True)
class Task:
    """The task of a session; in every call word for word."""

    goal: str = ""
    constraints: tuple[str, ...] = ()
    success_criteria: tuple[str, ...] = ()
    task_id: str = ""
    """The name of its checkpoints, by which another session can continue it."""
    paths: tuple[str, ...] = ()
    """Files that the task depends on."""


class ContainedCounter:
    """A token counter that counts by the size of the text once the user's counter fails."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._failed = False

    @property
    def source(self) -> CountSource:
        """The source that the counter reports; an estimate once it has failed."""
        return "estimate" if self._failed else self._counter.source

    def count(self, text: str) -> int:
        """Return the tokens of *text*, whole and never negative."""
        try:
            return _whole(self._counter.count(text))
        except Exception:  # noqa: BLE001 (a tokenizer may be the user's code, and ask a server)
            if not self._failed:
                self._failed = True
                _log.exception("the token counter failed; counting %d bytes a token instead", BYTES_PER_TOKEN)
            return -(-len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN)


def _whole(tokens: float) -> int:
    """Round up, because some counters return fractions; raises `ValueError` for a negative count."""
    if tokens < 0:
        raise ValueError(f"a count of {tokens} tokens")
    return math.ceil(tokens)
