"""Checkpoints of a session: saving them as the window fills, and resuming a task from the newest one.

On resume the environment is probed again; what changed since the checkpoint is reported to the model and counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from windowpane.core.events import CheckpointLoaded, CheckpointRejected, CheckpointSaved
from windowpane.core.window.blocks import Block
from windowpane.effects.commands import (
    ArchiveCheckpoint,
    CommandResult,
    Effect,
    LoadCheckpoint,
    ProbeEnvironment,
    SaveCheckpoint,
)
from windowpane.exceptions import (
    CorruptCheckpointError,
    StaleCheckpointError,
    UnfinishedWriteError,
)
from windowpane.fidelity.facts import extract_facts
from windowpane.manager.engine import Engine
from windowpane.manager.levels import Levels
from windowpane.manager.plans.checkpoint import (
    BOOTSTRAP_CHARACTERS,
    CARRIED_TYPES,
    CHECKPOINT_SCHEMA,
    MAXIMUM_LINES,
    Checkpoint,
    Document,
    StoredCheckpoint,
    bootstrap,
    checksum,
    pinned_texts,
    to_markdown,
)
from windowpane.manager.plans.notes import notes_from_data, notes_to_data
from windowpane.manager.plans.summary import SECTION_OF, Section, merge_lines, parse_sections
from windowpane.manager.plans.task_record import TaskRecord
from windowpane.manager.step import CascadeResult

CHECKPOINT_TURNS: Final = 5
"""Turns between checkpoints while the window is above their level, or is reduced."""
BOOTSTRAP_RATIO: Final = 0.15
"""Share of usable that a bootstrap may take; goal, constraints and success criteria are always whole."""
CHARACTERS_A_TOKEN: Final = 3
DIGEST_CHARACTERS: Final = 12
"""Characters of a digest that are shown."""


@dataclass(frozen=True, slots=True)
class Resumption:
    """The checkpoint that a session resumed from."""

    version: int
    window_id: int
    age_seconds: float | None
    drift: tuple[str, ...] = ()
    """Differences of the environment to the checkpoint, one line each."""


def checkpoint_if_due(engine: Engine, levels: Levels, used_tokens: int) -> Effect[None]:
    """Save a checkpoint when the window passes the checkpoint level, and every few turns while it is above."""
    if used_tokens >= levels.checkpoint and _is_due(engine):
        yield from save_checkpoint(engine, "pressure")


def checkpoint_reduction(engine: Engine, result: CascadeResult) -> Effect[None]:
    """Save a checkpoint of a reduced window, unless one was saved a few turns ago.

    Evictions may keep a window below the checkpoint level for its whole life.
    """
    if result.done and _is_due(engine):
        yield from save_checkpoint(engine, "reduction")


def _is_due(engine: Engine) -> bool:
    last = engine.task.checkpoint_turn
    return last is None or engine.tracker.turn - last >= CHECKPOINT_TURNS


def save_milestone(engine: Engine) -> Effect[None]:
    """Save the checkpoint of the milestone that is pending, if any."""
    trigger, engine.task.milestone = engine.task.milestone, ""
    if trigger:
        yield from save_checkpoint(engine, trigger)


def save_checkpoint(engine: Engine, trigger: str, *, completed: str | None = None) -> Effect[bool]:
    """Save the session's state; return False if another session has saved a newer one, or the write takes long.

    A checkpoint that cannot be saved is reported and does not stop the session.
    """
    if not engine.settings.checkpoint:
        return True
    engine.task.milestone = ""
    engine.task.checkpoint_version += 1
    engine.task.checkpoint_turn = engine.tracker.turn
    if engine.settings.environment:
        seen = yield ProbeEnvironment(tuple(engine.task.record.paths))
        engine.task.environment = engine.task.environment if seen.failed or seen.value is None else seen.value
    saved = capture_checkpoint(engine, completed=completed)

    def record(result: CommandResult) -> None:
        if result.failed:
            reason = f"{type(result.error).__name__}: {result.error}"[:200]
            engine.tracker.record(CheckpointRejected(saved.version, reason))
        else:
            digest = engine.digest(saved.markdown)
            engine.tracker.record(CheckpointSaved(saved.version, trigger, saved.size_bytes, digest))

    reply = yield SaveCheckpoint(saved.document, saved.markdown, record, is_last=completed is not None)
    if isinstance(reply.error, UnfinishedWriteError):
        return False
    record(reply)
    return not isinstance(reply.error, StaleCheckpointError)


def capture_checkpoint(engine: Engine, *, completed: str | None = None) -> Checkpoint:
    """Return the session's state: the task word for word, its record, and the facts of the window.

    *completed* is the final summary of a task that is done.
    """
    tracker = engine.tracker
    blocks = [block for block in tracker.window if block.text and block.id != engine.task.stated_block]
    sections: dict[Section, list[str]] = {}
    for block in blocks:
        if block.content_type == "summary":
            sections = parse_sections(block.text or "")
    stated = [block for block in blocks if block.content_type != "system_prompt"]
    for fact in reversed(extract_facts(stated, engine.readings.read)):
        lines = sections.setdefault(SECTION_OF[fact.kind], [])
        if fact.text not in lines:
            lines.append(fact.text)
    sections["errors"] = merge_lines(sections.get("errors", ()), engine.failures(stated))
    status = engine.status()
    document: Document = {
        "schema": CHECKPOINT_SCHEMA,
        "task_id": engine.task.id,
        "session_id": tracker.info.session_id,
        "status": "active" if completed is None else "completed",
        "summary": completed or "",
        "saved_at": engine.now(),
        "agent": tracker.info.agent,
        "model": tracker.info.model,
        "window_id": engine.task.windows_before + tracker.window_id,
        "version": engine.task.checkpoint_version,
        "turn": tracker.turn,
        "goal": engine.task.goal,
        "constraints_given": list(engine.task.constraints),
        "task": engine.task.record.to_document(),
        "notes": notes_to_data(engine.notes.notes),
        "environment": dict(engine.task.environment),
        "used_tokens": status.used_tokens,
        "limit_tokens": status.limit_tokens,
        "sections": {
            name: lines[-MAXIMUM_LINES:]
            for name, lines in sections.items()
            if name not in ("goal", "progress", "lookup")
        },
        "pinned": _pinned(engine, blocks),
        "handles": [block.handle for block in blocks if block.handle],
    }
    document["checksum"] = checksum(document)
    return Checkpoint(document, to_markdown(document))


def _pinned(engine: Engine, blocks: Sequence[Block]) -> list[dict[str, str]]:
    """Return the pinned messages and memories, each once, without the task as it is stated in every call."""
    texts = {
        (block.content_type, block.text): None
        for block in blocks
        if block.pinned and block.text and block.content_type in CARRIED_TYPES and block.text != engine.task.goal
    }
    return [{"type": content_type, "text": text} for content_type, text in texts if text]


def resume(engine: Engine) -> Effect[Resumption | None]:
    """Resume the task from its newest checkpoint; None on a cold start, also where a slow disk forces one."""
    reply = yield LoadCheckpoint(engine.task.id)
    if reply.failed:
        is_late = isinstance(reply.error, UnfinishedWriteError)
        reason = "it could not be read in time" if is_late else f"{type(reply.error).__name__}: {reply.error}"
        engine.tracker.record(CheckpointRejected(None, reason[:200]))
        yield ArchiveCheckpoint(engine.task.id)
        return None
    stored: StoredCheckpoint = reply.value or StoredCheckpoint(None)
    for rejection in stored.rejected:
        engine.tracker.record(CheckpointRejected(rejection.version, rejection.reason[:200]))
    document = stored.document
    if document is None:
        return None
    if document.get("status") == "completed":  # its process ended before the checkpoint was archived
        yield ArchiveCheckpoint(engine.task.id)
        return None
    try:
        task = TaskRecord.from_document(document.get("task", {}))
    except CorruptCheckpointError as error:
        engine.tracker.record(CheckpointRejected(int(document["version"]), str(error)[:200]))
        yield ArchiveCheckpoint(engine.task.id)
        return None
    drift: tuple[str, ...] = ()
    if engine.settings.environment and document.get("environment"):
        seen = yield ProbeEnvironment(tuple(task.paths))
        if not seen.failed and seen.value is not None:
            engine.task.environment = seen.value
            drift = _drift(document["environment"], seen.value)
    return _take_up(engine, document, task, drift)


def discard_checkpoint(engine: Engine) -> Effect[None]:
    """Archive the stored checkpoint of the task, so that the session starts cold."""
    yield ArchiveCheckpoint(engine.task.id)


def _take_up(engine: Engine, document: Document, task: TaskRecord, drift: tuple[str, ...]) -> Resumption:
    engine.task.goal = engine.task.goal or str(document["goal"])
    engine.task.goal_is_given = bool(engine.task.goal)
    engine.task.constraints = _merged(document.get("constraints_given", ()), engine.task.constraints)
    task.success_criteria = _merged(task.success_criteria, engine.task.record.success_criteria)
    task.watch(engine.task.record.paths)
    engine.task.record = task
    for note in notes_from_data(document.get("notes") or ()):
        engine.notes.write(note.category, note.text, importance=note.importance, turn=note.turn)
    engine.task.carried = pinned_texts(document)
    engine.task.windows_before = int(document["window_id"])
    engine.task.checkpoint_version = int(document["version"])
    stated = {**document, "task": task.to_document(), "notes": notes_to_data(engine.notes.notes)}
    engine.task.opening = bootstrap(stated, max_characters=_room(engine), drift=drift)
    now, saved_at = engine.now(), document.get("saved_at")
    age = max(0.0, now - saved_at) if now is not None and isinstance(saved_at, int | float) else None
    engine.tracker.record(CheckpointLoaded(engine.task.checkpoint_version, age, len(drift)))
    return Resumption(engine.task.checkpoint_version, engine.task.windows_before, age, drift)


def _merged(older: Any, newer: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*map(str, older), *newer]))


def _room(engine: Engine) -> int:
    if engine.limits is None:
        return BOOTSTRAP_CHARACTERS
    return min(BOOTSTRAP_CHARACTERS, int(BOOTSTRAP_RATIO * engine.limits.usable_tokens * CHARACTERS_A_TOKEN))


def _short(value: str) -> str:
    """Shorten digests and commits."""
    return " ".join(f"{word[:DIGEST_CHARACTERS]}…" if len(word) >= 40 else word for word in value.split(" "))


def _drift(before: Mapping[str, str], now: Mapping[str, str]) -> tuple[str, ...]:
    """Return the facts of the environment that have changed."""
    return tuple(
        f"{name}: was {_short(value)}, is {_short(now.get(name, 'unknown'))}"
        for name, value in before.items()
        if now.get(name) != value
    )
