"""Commands: the side effects that the manager needs, yielded by pure code and carried out by a driver.

A driver carries a command out without holding a lock, on the agent's thread, on another thread, or awaited. A
failure is sent back as the error of a `CommandResult` and is never raised inside the effect.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ArchiveOriginals:
    """Write texts to the archive. Returns None."""

    items: tuple[tuple[str, str], ...]
    """Handle and text of each."""


@dataclass(frozen=True, slots=True)
class CallModel:
    """Call the language model. Returns its text."""

    system: str
    user: str


@dataclass(frozen=True, slots=True)
class RunSubagent:
    """Run a sub-agent in a separate context window. Returns its text."""

    assignment: str


@dataclass(frozen=True, slots=True)
class SaveCheckpoint:
    """Write a checkpoint as JSON and Markdown. Returns None; fails with `StaleCheckpointError`.

    Fails with `UnfinishedWriteError` if it takes long: the write continues, and *on_late* receives its outcome.
    """

    document: dict[str, Any]
    markdown: str
    on_late: Callable[[CommandResult], object]
    is_last: bool = False
    """True at the end of a task, when the write is worth a longer wait."""


@dataclass(frozen=True, slots=True)
class LoadCheckpoint:
    """Read the newest checkpoint of a task. Fails with `CorruptCheckpointError`."""

    task_id: str


@dataclass(frozen=True, slots=True)
class ArchiveCheckpoint:
    """Move the checkpoints of a task to the archive. Returns None."""

    task_id: str
    is_last: bool = False
    """As in `SaveCheckpoint`."""


@dataclass(frozen=True, slots=True)
class ProbeEnvironment:
    """Observe the surroundings of the task. Returns facts by name, None without a probe."""

    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Compute:
    """Compute a value from immutable values, which may take long. Returns it."""

    function: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class CompactionProposal:
    """A compaction before it is applied; tokens as counted at ingest."""

    strategy: str
    trigger: str
    tokens_before: int
    """Tokens of the blocks to be replaced."""
    tokens_after: int
    """Upper bound for the replacement."""
    blocks: int


@dataclass(frozen=True, slots=True)
class ConfirmCompaction:
    """Ask the registered callbacks for consent. Returns False when one of them vetoes the compaction."""

    proposal: CompactionProposal


Command = (
    ArchiveOriginals
    | CallModel
    | RunSubagent
    | SaveCheckpoint
    | LoadCheckpoint
    | ArchiveCheckpoint
    | ProbeEnvironment
    | ConfirmCompaction
    | Compute
)


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The value that a command returned, or the error that it failed with."""

    value: Any = None
    error: Exception | None = None

    @property
    def failed(self) -> bool:
        """True if the command could not be carried out."""
        return self.error is not None


Effect = Generator[Command, CommandResult, T]
"""A computation that yields commands, receives their results, and returns a value of type `T`."""


def compute(function: Callable[[], T]) -> Effect[T]:
    """Return the value of *function*, computed without the session's lock; raises what it raises.

    The session may have changed when the value is there.
    """
    result = yield Compute(function)
    if result.error is not None:
        raise result.error
    value: T = result.value
    return value


def cancel_when(cancelled: Callable[[], bool], effect: Effect[None]) -> Effect[None]:
    """Run *effect* until it ends, or close it before its next command once *cancelled* returns True."""
    result = None
    try:
        while not cancelled():
            result = yield (next(effect) if result is None else effect.send(result))
    except StopIteration:
        return
    finally:
        effect.close()
