"""The agent's notes as a Markdown file that people can read and change."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from windowpane.effects.private_files import write_whole
from windowpane.manager.plans.notes import CATEGORIES, Category, Importance, Note

HEADING: Final = "# Notes"
_LINE: Final = re.compile(r"(?:[-*+] )?(?:\[(?P<importance>critical|high)\] )?(?P<text>\S.*)")
"""A note, with or without a list marker."""

_log = logging.getLogger(__name__)


class FileNotes:
    """A `NoteStore` in one file, without secrets."""

    def __init__(self, path: Path, *, redact: Callable[[str], str]) -> None:
        self._path = path
        self._redact = redact
        self._is_readable = True

    def load(self) -> Sequence[Note]:
        """Return the notes in the file; empty if it is missing or unreadable."""
        try:
            text = self._path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return ()
        except (OSError, UnicodeDecodeError) as error:
            _log.warning("the notes %s cannot be read: %s", self._path, error)
            self._is_readable = False
            return ()
        return tuple(_parsed(text))

    def save(self, notes: Sequence[Note]) -> None:
        """Write all notes, by category; a file that could not be read is renamed first."""
        if not self._is_readable:
            self._path.replace(self._path.with_name(f"{self._path.name}.unreadable"))
            self._is_readable = True
        lines = [HEADING]
        for category in CATEGORIES:
            inside = [note for note in notes if note.category == category]
            if inside:
                lines += ["", f"## {category.replace('_', ' ').capitalize()}"]
            for note in inside:
                mark = "" if note.importance == "normal" else f"[{note.importance}] "
                lines.append(f"- {mark}{self._redact(note.text)}")
        write_whole(self._path, ("\n".join(lines) + "\n").encode("utf-8", "surrogatepass"))


def _parsed(text: str) -> list[Note]:
    category: Category = "misc"
    names: dict[str, Category] = {name.replace("_", " ").capitalize(): name for name in CATEGORIES}
    notes: list[Note] = []
    for line in text.splitlines():
        if line.startswith("## "):
            category = names.get(line[3:].strip(), "misc")
        if line.startswith("#"):
            continue
        match = _LINE.fullmatch(line.strip())
        if match is not None:
            importance: Importance = "normal"
            if match["importance"] == "critical":
                importance = "critical"
            elif match["importance"] == "high":
                importance = "high"
            notes.append(Note(category, match["text"], importance, 0, 0))
    return notes
