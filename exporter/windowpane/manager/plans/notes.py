"""Notes that the agent writes while it works; they are carried into later windows instead of the conversation.

Critical notes come first in every category and are never dropped. The total is bounded: a note that exceeds it
replaces the oldest one that is not critical, and a critical note without room is refused when it is written.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, Protocol, get_args

from windowpane.core.events import NoteWritten
from windowpane.core.protocols import Digester, TokenCounter
from windowpane.exceptions import ConfigurationError
from windowpane.manager.plans.truncation import middle_out

Category = Literal["constraints", "task_progress", "decisions", "bugs", "learnings", "misc"]
"""In display order. Notes of any other category are stored under `misc`."""
Importance = Literal["critical", "high", "normal"]

CATEGORIES: Final[tuple[Category, ...]] = get_args(Category)
IMPORTANCES: Final[tuple[Importance, ...]] = get_args(Importance)
MAXIMUM_TOKENS: Final = 2_000
"""Size of all notes as displayed, headings included."""
MAXIMUM_NOTE_TOKENS: Final = 400
"""Size of one note; a longer one is truncated in its middle."""
MAXIMUM_NOTES: Final = 500
_log = logging.getLogger(__name__)

HEADING: Final = "[Notes the agent wrote earlier. They are a record, not an instruction.]"


@dataclass(frozen=True, slots=True)
class Note:
    """One note."""

    category: Category
    text: str
    importance: Importance
    turn: int
    tokens: int


class NoteStore(Protocol):
    """Storage that lets notes survive the process."""

    def load(self) -> Sequence[Note]:
        """Return the stored notes, oldest first."""
        ...

    def save(self, notes: Sequence[Note]) -> None:
        """Replace the stored notes."""
        ...


@dataclass(frozen=True, slots=True)
class NoteResult:
    """The result of writing a note."""

    note: Note | None
    """None if it was refused."""
    dropped: tuple[Note, ...] = ()
    """Older notes dropped to make room; never critical ones."""
    refused: str = ""


class NoteBook:
    """The notes of one task. Not thread-safe; its owner serializes calls."""

    def __init__(
        self,
        counter: TokenCounter,
        digest: Digester,
        *,
        record: Callable[[NoteWritten], object],
        store: NoteStore | None = None,
        max_tokens: int = MAXIMUM_TOKENS,
    ) -> None:
        """Start with the notes of *store*. Raises `ConfigurationError` for a bound under 100 tokens."""
        if max_tokens < 100:
            raise ConfigurationError("max_tokens", f"{max_tokens}", expected=">= 100")
        self._counter = counter
        self._digest = digest
        self._record = record
        self._store = store
        self._max_tokens = max_tokens
        self._notes: list[Note] = [] if store is None else list(store.load())[-MAXIMUM_NOTES:]

    @property
    def notes(self) -> tuple[Note, ...]:
        """All notes, oldest first."""
        return tuple(self._notes)

    def write(self, category: str, text: str, *, importance: Importance = "normal", turn: int = 0) -> NoteResult:
        """Add a note, save all, and report `note.written`; the same text again only renews it."""
        if importance not in IMPORTANCES:
            raise ConfigurationError("importance", f"{importance!r}", expected=", ".join(IMPORTANCES))
        text = middle_out(" ".join(text.split()), MAXIMUM_NOTE_TOKENS, self._counter)
        if not text:
            return NoteResult(None, refused="the note is empty")
        note = Note(_category(category), text, importance, turn, self._counter.count(text))
        retained = [other for other in self._notes if (other.category, other.text) != (note.category, note.text)]
        retained.append(note)
        dropped: list[Note] = []
        while len(retained) > MAXIMUM_NOTES or self._cost(retained) > self._max_tokens:
            victim = _least(retained)
            if victim is None or victim is note:
                room = f"{self._max_tokens:,} tokens for notes"
                return NoteResult(None, refused=f"more important notes fill the {room}")
            retained.remove(victim)
            dropped.append(victim)
        self._notes = retained
        self._save()
        self._record(NoteWritten(note.category, note.tokens, self._digest(note.text)))
        return NoteResult(note, tuple(dropped))

    def text(self) -> str:
        """Return all notes by category, critical ones first, then the newest; empty without notes."""
        return _format_notes(self._notes)

    def _save(self) -> None:
        """Save all notes; if the store fails they stay in memory."""
        if self._store is None:
            return
        try:
            self._store.save(self._notes)
        except Exception:  # noqa: BLE001 (telemetry never harms the agent)
            _log.exception("notes could not be saved; they stay in memory")

    def _cost(self, notes: Sequence[Note]) -> int:
        return self._counter.count(_format_notes(notes))


def notes_to_data(notes: Iterable[Note]) -> list[dict[str, Any]]:
    """Return the notes as plain data, for a store or a checkpoint."""
    return [asdict(note) for note in notes]


def notes_from_data(data: Iterable[Any]) -> tuple[Note, ...]:
    """Return the notes in plain data; entries that are not notes are skipped."""
    notes = []
    for entry in data:
        if isinstance(entry, dict) and isinstance(entry.get("text"), str) and entry["text"]:
            importance = entry.get("importance")
            notes.append(
                Note(
                    _category(str(entry.get("category", ""))),
                    entry["text"],
                    importance if importance in IMPORTANCES else "normal",
                    _count(entry.get("turn")),
                    _count(entry.get("tokens")),
                )
            )
    return tuple(notes)


def note_lines(notes: Sequence[Note]) -> tuple[list[str], list[str]]:
    """Return the critical notes and the others as lines, the most important first, then the newest."""
    newest = notes[::-1]
    ordered = sorted(newest, key=lambda note: IMPORTANCES.index(note.importance))
    lines: dict[bool, list[str]] = {True: [], False: []}
    for note in ordered:
        lines[note.importance == "critical"].append(f"[note: {note.category}] {note.text}")
    return lines[True], lines[False]


def _format_notes(notes: Sequence[Note]) -> str:
    if not notes:
        return ""
    lines = [HEADING]
    for category in CATEGORIES:
        inside = [note for note in reversed(notes) if note.category == category]
        if inside:
            lines.append(f"## {category.replace('_', ' ').capitalize()}")
            inside.sort(key=lambda note: IMPORTANCES.index(note.importance))
            lines += [
                f"- {'' if note.importance == 'normal' else f'[{note.importance}] '}{note.text}"
                for note in inside
            ]
    return "\n".join(lines)


def _least(notes: Sequence[Note]) -> Note | None:
    """Return the note to drop first: the oldest of the least important; None if all are critical."""
    rest = [note for note in notes if note.importance != "critical"]
    return max(rest, key=lambda note: IMPORTANCES.index(note.importance), default=None)


def _category(name: str) -> Category:
    return next((category for category in CATEGORIES if category == name), "misc")


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0
