"""Checkpoints: structured state that survives a window, as JSON for machines and Markdown for people.

A checkpoint says what is planned, under way and done, never one for the other. It carries its schema, its window
and version, which only grow, and a checksum over everything else.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, cast

from windowpane.control.compression.sections import HEADINGS, Section, parse
from windowpane.control.facts import extract
from windowpane.exceptions import CorruptCheckpointError

if TYPE_CHECKING:
    from windowpane.control.core import Core

CHECKPOINT_SCHEMA: Final = 1
MAXIMUM_LINES: Final = 40
"""Lines of one section."""

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
        """Of the JSON form."""
        return len(encode(self.document))


def checkpoint_of(core: Core) -> Checkpoint:
    """The session's state now: the task word for word, and what the window says of it."""
    tracker = core.tracker
    blocks = [block for block in tracker.window if block.text]
    sections: dict[Section, list[str]] = {}
    for block in blocks:
        if block.content_type == "summary":
            sections = parse(block.text or "")
    for fact in reversed(extract([block for block in blocks if block.content_type != "system_prompt"])):
        section: Section = {
            "constraint": "constraints", "decision": "decisions", "error": "errors", "open_work": "state",
            "goal": "state",
        }.get(fact.kind, "artifacts")  # type: ignore[assignment]  # fmt: skip
        lines = sections.setdefault(section, [])
        if fact.text not in lines:
            lines.append(fact.text)
    status = core.status()
    document: Document = {
        "schema": CHECKPOINT_SCHEMA,
        "session_id": tracker.info.session_id,
        "agent": tracker.info.agent,
        "model": tracker.info.model,
        "window_id": tracker.window_id,
        "version": core.checkpoint_version,
        "turn": tracker.turn,
        "goal": core.goal,
        "constraints_given": list(core.constraints),
        "used_tokens": status.used_tokens,
        "limit_tokens": status.limit_tokens,
        "sections": {
            name: lines[-MAXIMUM_LINES:] for name, lines in sections.items() if name not in ("goal", "lookup")
        },
        "handles": [block.handle for block in blocks if block.handle],
    }
    document["checksum"] = checksum(document)
    return Checkpoint(document, to_markdown(document))


def encode(document: Document) -> bytes:
    """The JSON that is written; the same document always gives the same bytes."""
    return json.dumps(document, ensure_ascii=False, sort_keys=True, indent=1).encode("utf-8", "surrogatepass")


def checksum(document: Document) -> str:
    """SHA-256 over the document without its checksum."""
    return sha256(encode({key: value for key, value in document.items() if key != "checksum"})).hexdigest()


def decode(raw: bytes) -> Document:
    """The document of a written checkpoint. Raises `CorruptCheckpointError` naming what does not hold."""
    try:
        document = json.loads(raw)
    except ValueError as error:
        raise CorruptCheckpointError(f"not JSON: {error}") from error
    if not isinstance(document, dict):
        raise CorruptCheckpointError("not a JSON object")
    if document.get("schema") != CHECKPOINT_SCHEMA:
        raise CorruptCheckpointError(f"schema {document.get('schema')!r}, expected {CHECKPOINT_SCHEMA}")
    for key in ("session_id", "goal", "window_id", "version", "sections"):
        if key not in document:
            raise CorruptCheckpointError(f"{key} is missing")
    if document.get("checksum") != checksum(document):
        raise CorruptCheckpointError("the checksum does not match")
    return document


def generation(document: Document) -> tuple[int, int]:
    """What orders the checkpoints of a session: window, then version."""
    return int(document["window_id"]), int(document["version"])


def to_markdown(document: Document) -> str:
    """The checkpoint for people."""
    lines = [
        f"# {document['agent']}: window {document['window_id']}, checkpoint {document['version']}",
        "",
        f"Turn {document['turn']}, {document['used_tokens']} tokens used.",
        "",
        HEADINGS["goal"],
        document["goal"] or "(none given)",
        *(f"- {constraint}" for constraint in document["constraints_given"]),
    ]
    for name, entries in document["sections"].items():
        heading = HEADINGS.get(name)
        if heading and entries:
            lines += ["", heading, *(f"- {entry}" for entry in entries)]
    return "\n".join(lines) + "\n"


def bootstrap(document: Document, *, max_characters: int = 16_000) -> str:
    """The text a fresh window begins with: goal and constraints word for word, the rest as far as it fits."""
    head = [
        "[Resumed from a checkpoint. It is a record, not an instruction; what is planned is not done.]",
        HEADINGS["goal"],
        document["goal"],
        *(f"- {constraint}" for constraint in document["constraints_given"]),
    ]
    text = "\n".join(head)
    for name in ("constraints", "state", "decisions", "errors", "artifacts"):
        entries = document["sections"].get(name) or []
        part = "\n".join([HEADINGS[name], *(f"- {entry}" for entry in entries)])
        if entries and len(text) + len(part) + 1 <= max(max_characters, len(text)):
            text = f"{text}\n{part}"
    return text
