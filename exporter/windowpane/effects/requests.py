"""What the manager's core asks of the world: it yields a request and goes on with the answer.

A driver carries requests out, with no lock held and however it likes: on the agent's thread, on another, or
awaited. A request that fails is answered by an exception inside `Answer`, never raised into the core.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class KeepOriginals:
    """Put texts into the archive; answered with None."""

    items: tuple[tuple[str, str], ...]
    """Handle and text of each."""


@dataclass(frozen=True, slots=True)
class AskModel:
    """Ask the language model; answered with its text."""

    system: str
    user: str


@dataclass(frozen=True, slots=True)
class AskSubagent:
    """Have a sub-agent work in a window of its own; answered with its text."""

    assignment: str


@dataclass(frozen=True, slots=True)
class SaveCheckpoint:
    """Write a checkpoint's JSON and Markdown; answered with None. Fails with `StaleCheckpointError`."""

    document: dict[str, Any]
    markdown: str


@dataclass(frozen=True, slots=True)
class LoadCheckpoint:
    """Read the newest checkpoint of a task; answered with `Found`. Fails with `CorruptCheckpointError`."""

    task_id: str


@dataclass(frozen=True, slots=True)
class ArchiveCheckpoint:
    """Put the checkpoints of a task aside; answered with None."""

    task_id: str


@dataclass(frozen=True, slots=True)
class ProbeEnvironment:
    """Look at what surrounds the task; answered with facts by name, or None where nothing looks."""

    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Proposal:
    """A compaction that is about to be made; tokens as counted at ingest."""

    strategy: str
    trigger: str
    tokens_before: int
    """Of what would be replaced."""
    tokens_after: int
    """At most, as far as can be told before."""
    blocks: int


@dataclass(frozen=True, slots=True)
class Consult:
    """Ask whoever wants to be asked whether to go on; answered with False for no."""

    proposal: Proposal


Request = (
    KeepOriginals
    | AskModel
    | AskSubagent
    | SaveCheckpoint
    | LoadCheckpoint
    | ArchiveCheckpoint
    | ProbeEnvironment
    | Consult
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a request."""

    value: Any = None
    error: Exception | None = None

    @property
    def failed(self) -> bool:
        """Whether the request could not be carried out."""
        return self.error is not None


Program = Generator[Request, Answer, T]
"""A hook: yields requests, is sent answers, returns its result."""


def unless(ended: Callable[[], bool], program: Program[None]) -> Program[None]:
    """*program*, given up at its next step once it has *ended* what it works for."""
    answer = None
    try:
        while not ended():
            answer = yield (next(program) if answer is None else program.send(answer))
    except StopIteration:
        return
    finally:
        program.close()
