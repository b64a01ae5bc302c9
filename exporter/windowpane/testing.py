"""Test doubles for agents and Windowpane itself: a manual clock, a sink, a scripted model, stores in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, TypeVar

from windowpane.core.events import Event, Payload
from windowpane.core.vocabulary import CountSource
from windowpane.exceptions import StaleCheckpointError
from windowpane.manager.dependencies import Dependencies
from windowpane.manager.plans.checkpoint import StoredCheckpoint, generation

P = TypeVar("P")


class ManualClock:
    """A clock that moves only when advanced; seconds since the epoch."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        """Return the current time."""
        return self.now

    def advance(self, seconds: float) -> None:
        """Move the clock forward by *seconds*."""
        self.now += seconds


class RecordingSink:
    """An event sink that stores all events in order."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def write(self, batch: Sequence[Event]) -> None:
        """Store a batch."""
        self.events.extend(batch)

    def of(self, kind: type[P]) -> list[P]:
        """Return the payloads of one type, in order."""
        return [event.data for event in self.events if isinstance(event.data, kind)]

    def payloads(self) -> list[Payload]:
        """Return all payloads, in order."""
        return [event.data for event in self.events]


class ScriptedModel:
    """A language model `(system, user) -> text` that returns or raises prepared answers in turn."""

    def __init__(self, answers: Iterable[str | Exception]) -> None:
        self._answers = list(answers)
        self.asked: list[tuple[str, str]] = []
        """System and user prompt of each call."""

    def __call__(self, system: str, user: str) -> str:
        """Return the next answer; repeat the last one at the end."""
        self.asked.append((system, user))
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


class CharacterCounter:
    """A token counter for tests: four characters per token, rounded up."""

    source: CountSource = "exact"

    def count(self, text: str) -> int:
        """Return a quarter of the characters."""
        return (len(text) + 3) // 4


class MemoryArchive:
    """An archive in memory."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        """Originals by handle."""

    def put(self, session_id: str, handle: str, text: str) -> None:  # noqa: ARG002 (one session a test)
        """Store *text* under *handle*."""
        self.texts[handle] = text

    def get(self, session_id: str, handle: str) -> str | None:  # noqa: ARG002 (one session a test)
        """Return the stored text, or None."""
        return self.texts.get(handle)


class MemoryCheckpoints:
    """A checkpoint store in memory."""

    def __init__(self) -> None:
        self.saved: list[tuple[dict[str, Any], str]] = []
        """Documents with their Markdown, oldest first."""
        self.archived: list[str] = []
        """Ids of archived tasks."""
        self._put_aside: dict[str, int] = {}
        """Number of saved checkpoints that were archived with a task."""

    def save(self, document: Mapping[str, Any], markdown: str) -> None:
        """Store a checkpoint. Raises `StaleCheckpointError` if it is not newer."""
        newest = self.load(document["task_id"]).document
        if newest is not None and generation(dict(document)) <= generation(newest):
            raise StaleCheckpointError(f"{generation(dict(document))} is not newer than {generation(newest)}")
        self.saved.append((dict(document), markdown))

    def load(self, task_id: str) -> StoredCheckpoint:
        """Return the last checkpoint of a task that was not archived."""
        since = self.saved[self._put_aside.get(task_id, 0) :]
        own = [document for document, _ in since if document["task_id"] == task_id]
        return StoredCheckpoint(own[-1] if own else None)

    def archive(self, task_id: str) -> None:
        """Archive a task's checkpoints."""
        self.archived.append(task_id)
        self._put_aside[task_id] = len(self.saved)


def chat_reply(
    text: str | None = None,
    *,
    calls: Sequence[tuple[str, str, str]] = (),
    input_tokens: int | None = None,
    output_tokens: int = 0,
) -> dict[str, Any]:
    """Return an OpenAI chat completion as a dictionary; *calls* are (id, tool, arguments as JSON)."""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = [
            {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
            for call_id, name, arguments in calls
        ]
    reply: dict[str, Any] = {
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}],
    }
    if input_tokens is not None:
        reply["usage"] = {"prompt_tokens": input_tokens, "completion_tokens": output_tokens}
    return reply


def in_memory_dependencies(sink: RecordingSink, *, model: ScriptedModel | None = None) -> Dependencies:
    """Return dependencies for a manager that touches nothing outside the test."""
    return Dependencies(
        counter=CharacterCounter(),
        digest=lambda text: blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest(),
        emit=sink.write,
        clock=ManualClock(),
        timer=ManualClock(0.0),
        archive=MemoryArchive(),
        checkpoints=MemoryCheckpoints(),
        model=model,
    )
