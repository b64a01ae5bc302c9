"""The start of a task: from its newest checkpoint where there is one, else cold.

What surrounds the task is looked at again; what changed since the checkpoint is told to the model and counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from windowpane.core.events import CheckpointLoaded, CheckpointRejected
from windowpane.effects.commands import ArchiveCheckpoint, Effect, LoadCheckpoint, ProbeEnvironment
from windowpane.exceptions import CorruptCheckpointError
from windowpane.manager.engine import Engine
from windowpane.manager.plans.checkpoint import BOOTSTRAP_CHARACTERS, Document, Found, bootstrap
from windowpane.manager.plans.notes import from_data
from windowpane.manager.plans.task_record import TaskRecord

BOOTSTRAP_RATIO: Final = 0.15
"""Of usable that a bootstrap may take; goal, constraints and success criteria are whole whatever that is."""
CHARACTERS_A_TOKEN: Final = 3
DIGEST_CHARACTERS: Final = 12
"""Of a digest, as it is told."""


@dataclass(frozen=True, slots=True)
class Resumption:
    """What a session resumed from."""

    version: int
    window_id: int
    age_seconds: float | None
    drift: tuple[str, ...] = ()
    """What surrounds the task and is no longer as the checkpoint has it, one line each."""


def resume(engine: Engine) -> Effect[Resumption | None]:
    """Take up the task's newest checkpoint; None on a cold start."""
    answer = yield LoadCheckpoint(engine.task_id)
    if answer.failed:
        engine.tracker.record(CheckpointRejected(None, f"{type(answer.error).__name__}: {answer.error}"[:200]))
        yield ArchiveCheckpoint(engine.task_id)
        return None
    found: Found = answer.value or Found(None)
    for rejection in found.rejected:
        engine.tracker.record(CheckpointRejected(rejection.version, rejection.reason[:200]))
    document = found.document
    if document is None:
        return None
    if document.get("status") == "completed":  # its process ended before it was put aside
        yield ArchiveCheckpoint(engine.task_id)
        return None
    try:
        task = TaskRecord.from_document(document.get("task", {}))
    except CorruptCheckpointError as error:
        engine.tracker.record(CheckpointRejected(int(document["version"]), str(error)[:200]))
        yield ArchiveCheckpoint(engine.task_id)
        return None
    drift: tuple[str, ...] = ()
    if engine.settings.environment and document.get("environment"):
        seen = yield ProbeEnvironment(tuple(task.paths))
        if not seen.failed and seen.value is not None:
            engine.environment = seen.value
            drift = _drift(document["environment"], seen.value)
    return _take_up(engine, document, task, drift)


def start_anew(engine: Engine) -> Effect[None]:
    """A cold start whatever was saved: what there is of the task is put aside."""
    yield ArchiveCheckpoint(engine.task_id)


def _take_up(engine: Engine, document: Document, task: TaskRecord, drift: tuple[str, ...]) -> Resumption:
    engine.goal = engine.goal or str(document["goal"])
    engine.goal_is_given = bool(engine.goal)
    engine.constraints = _merged(document.get("constraints_given", ()), engine.constraints)
    task.success_criteria = _merged(task.success_criteria, engine.task.success_criteria)
    task.watch(engine.task.paths)
    engine.task = task
    for note in from_data(document.get("notes") or ()):
        engine.notes.write(note.category, note.text, importance=note.importance, turn=note.turn)
    engine.windows_before = int(document["window_id"])
    engine.checkpoint_version = int(document["version"])
    stated = {
        **document,
        "goal": engine.goal,
        "constraints_given": engine.constraints,
        "task": task.to_document(),
    }
    engine.opening = bootstrap(stated, max_characters=_room(engine), drift=drift)
    now, saved_at = engine.now(), document.get("saved_at")
    age = max(0.0, now - saved_at) if now is not None and isinstance(saved_at, int | float) else None
    engine.tracker.record(CheckpointLoaded(engine.checkpoint_version, age, len(drift)))
    return Resumption(engine.checkpoint_version, engine.windows_before, age, drift)


def _merged(older: Any, newer: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*map(str, older), *newer]))


def _room(engine: Engine) -> int:
    if engine.limits is None:
        return BOOTSTRAP_CHARACTERS
    return min(BOOTSTRAP_CHARACTERS, int(BOOTSTRAP_RATIO * engine.limits.usable_tokens * CHARACTERS_A_TOKEN))


def _short(value: str) -> str:
    """Digests and commits by their beginning: that they differ is all they say."""
    return " ".join(f"{word[:DIGEST_CHARACTERS]}…" if len(word) >= 40 else word for word in value.split(" "))


def _drift(before: Mapping[str, str], now: Mapping[str, str]) -> tuple[str, ...]:
    """The facts that no longer hold."""
    return tuple(
        f"{name}: was {_short(value)}, is {_short(now.get(name, 'unknown'))}"
        for name, value in before.items()
        if now.get(name) != value
    )
