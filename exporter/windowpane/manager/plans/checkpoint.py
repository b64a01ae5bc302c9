"""Checkpoints: structured state that survives a window, as JSON for machines and Markdown for people.

A checkpoint records planned, started and finished work apart. It has a schema, a window and a version, which only
grow, and a checksum over everything else.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, Any, Final, Literal, NamedTuple, cast

from pydantic import BaseModel, Field, Strict

from windowpane.core.vocabulary import ContentType
from windowpane.exceptions import CorruptCheckpointError
from windowpane.manager.plans.notes import note_lines, notes_from_data
from windowpane.manager.plans.summary import HEADINGS, PREAMBLE, Section
from windowpane.manager.plans.task_record import StoredTask, TaskRecord, read_stored

CHECKPOINT_SCHEMA: Final = 1
MAXIMUM_LINES: Final = 40
"""Lines of one section."""
BOOTSTRAP_CHARACTERS: Final = 16_000
CARRIED_TYPES: Final[tuple[ContentType, ...]] = ("user_message", "memory_injection")
"""Types of content that are pinned again when a task is resumed."""

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint ready to be written."""

    document: Document
    markdown: str

    @property
    def version(self) -> int:
        """Grows with every checkpoint of a session."""
        return cast("int", self.document["version"])

    @property
    def size_bytes(self) -> int:
        """Size of the JSON form."""
        return len(encode(self.document))


class Rejection(NamedTuple):
    """A stored checkpoint that was not used."""

    version: int | None
    """None if it cannot be read."""
    reason: str


class StoredDocument(BaseModel):
    """The document of a checkpoint, as far as a later session depends on it."""

    schema_number: Literal[1] = Field(alias="schema")
    session_id: str
    goal: str
    window_id: Annotated[int, Strict()]
    version: Annotated[int, Strict()]
    sections: dict[str, tuple[str, ...]]
    task: StoredTask = StoredTask()
    constraints_given: tuple[str, ...] = ()
    environment: dict[str, str] = {}
    checksum: str


class StoredCheckpoint(NamedTuple):
    """The content of a checkpoint store for one task."""

    document: Document | None
    """The newest valid checkpoint; None on a cold start."""
    rejected: tuple[Rejection, ...] = ()


def encode(document: Document) -> bytes:
    """Return the JSON to write; the same document always gives the same bytes."""
    return json.dumps(document, ensure_ascii=False, sort_keys=True, indent=1).encode("utf-8", "surrogatepass")


def checksum(document: Document) -> str:
    """SHA-256 over the document without its checksum."""
    return sha256(encode({key: value for key, value in document.items() if key != "checksum"})).hexdigest()


def decode(raw: bytes) -> Document:
    """Return the document of a written checkpoint. Raises `CorruptCheckpointError` with the invalid part."""
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise CorruptCheckpointError(f"not JSON: {error}") from error
    if read_stored(StoredDocument, document).checksum != checksum(document):
        raise CorruptCheckpointError("the checksum does not match")
    return cast("Document", document)


def generation(document: Document) -> tuple[int, int]:
    """Return the sort key of a session's checkpoints: window, then version."""
    return int(document["window_id"]), int(document["version"])


def to_markdown(document: Document) -> str:
    """Return the checkpoint as Markdown for people."""
    task = TaskRecord.from_document(document.get("task", {}))
    lines = [
        f"# {document['agent']}: window {document['window_id']}, checkpoint {document['version']}",
        "",
        f"Turn {document['turn']}, {document['used_tokens']} tokens used.",
        "",
        HEADINGS["goal"],
        document["goal"] or "(none given)",
        *(f"- {constraint}" for constraint in document["constraints_given"]),
        *(f"- Success: {criterion}" for criterion in task.success_criteria),
    ]
    marks = {"done": "[x]", "in_progress": "[~]", "planned": "[ ]"}
    boxes = [f"{marks[status]} {name}" for name, status in task.subtasks.items()]
    record: list[tuple[str, list[str]]] = [
        ("## Subtasks (x done, ~ in progress)", boxes),
        ("## Decisions made", [str(choice) for choice in task.choices]),
        ("## Open issues", task.open_issues),
        ("## Learnings", task.learnings),
        *((HEADINGS[name], entries) for name, entries in document["sections"].items() if name in HEADINGS),
    ]
    for heading, entries in record:
        if entries:
            lines += ["", heading, *(f"- {entry}" for entry in entries)]
    if document.get("summary"):
        lines += ["", "## Result", document["summary"]]
    return "\n".join(lines) + "\n"


def bootstrap(
    document: Document, *, max_characters: int = BOOTSTRAP_CHARACTERS, drift: Sequence[str] = ()
) -> str:
    """Return the record that a fresh window starts with, as far as it fits; the task itself is stated beside it.

    Urgent entries come first: changes of the environment, critical notes, which are never omitted, subtasks in
    progress, open issues.
    """
    task = TaskRecord.from_document(document.get("task", {}))
    origin = f"checkpoint {document['version']}, window {document['window_id']}"
    text = f"{PREAMBLE}\n[Resumed from {origin}. What is planned is not done.]"
    sections: Mapping[str, Sequence[str]] = document["sections"]
    changed = "## Changed since the checkpoint; look again before relying on it"
    text += _fitting(changed, drift, max_characters - len(text))
    critical, others = note_lines(notes_from_data(document.get("notes") or ()))
    room = max(max_characters - len(text), _length(HEADINGS["progress"], critical))
    text += _fitting(HEADINGS["progress"], (*critical, *task.lines(), *others), room)
    for name in cast("tuple[Section, ...]", ("constraints", "state", "decisions", "errors", "artifacts")):
        text += _fitting(HEADINGS[name], sections.get(name, ()), max_characters - len(text), newest=True)
    return text


def goal_text(goal: str, constraints: Sequence[str], criteria: Sequence[str], *, heading: bool = False) -> str:
    """Goal, constraints and success criteria, word for word."""
    lines = [
        goal,
        *(f"{'- ' if heading else 'Constraint: '}{constraint}" for constraint in constraints),
        *(f"{'- ' if heading else ''}Success: {criterion}" for criterion in criteria),
    ]
    lines = [line for line in lines if line]
    return "\n".join([HEADINGS["goal"], *lines] if heading and lines else lines)


def pinned_texts(document: Document) -> list[tuple[ContentType, str]]:
    """Return the pinned messages and memories of a checkpoint; entries that are neither are skipped."""
    entries = document.get("pinned")
    return [
        (entry["type"], entry["text"])
        for entry in (entries if isinstance(entries, list) else ())
        if isinstance(entry, dict) and entry.get("type") in CARRIED_TYPES and isinstance(entry.get("text"), str)
    ]


def _length(heading: str, entries: Sequence[str]) -> int:
    return len(heading) + 1 + sum(len(entry) + len("\n- ") for entry in entries)


def _fitting(heading: str, entries: Iterable[str], room: int, *, newest: bool = False) -> str:
    """Return the section with the first entries that fit *room* characters, or the *newest*; empty if none."""
    lines = [f"\n- {entry}" for entry in entries]
    room -= len(heading) + 1
    taken = 0
    for line in reversed(lines) if newest else lines:
        room -= len(line)
        if room < 0:
            break
        taken += 1
    chosen = lines[len(lines) - taken :] if newest else lines[:taken]
    return f"\n{heading}{''.join(chosen)}" if chosen else ""
