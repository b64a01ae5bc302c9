"""The sessions that a program records on this machine while its calls pass, for programs whose calls state none.

Gemini CLI and Qwen Code write a prompt into the recording of its session before they send it. Of the recordings
of one project, those that are written to while the program runs name its session; one of a sub-agent starts with
the task with which its calls start too. A command such as a compaction is not written before its call: then the
session is the one that starts as the call does.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from windowpane.sources.installed_agents.locations import gemini_folder, qwen_folder
from windowpane.sources.transcripts.formats.gemini.parts import parts_of
from windowpane.sources.transcripts.formats.gemini.session import project_folder
from windowpane.sources.transcripts.json_lines import head_rows, instant, mapping, text
from windowpane.sources.transcripts.playback import session_id_of

HEAD_BYTES: Final = 256 * 1024
"""Start of a recording that is searched for the first prompt."""
CLOCK_SECONDS: Final = 2.0
"""Difference by which the times of files may be behind the clock."""


class SessionIds(NamedTuple):
    """The ids of a session and of the one that started it, as its recording has them."""

    session_id: str
    parent_id: str = ""


@dataclass(frozen=True, slots=True)
class _Opening:
    """The start of a recording."""

    key: str
    parent_key: str
    """Empty for the session of a user."""
    folder: str
    started_at: float
    prompt: str


@dataclass(frozen=True, slots=True)
class _Recordings:
    """The recordings of one program."""

    source: str
    root: Callable[[], Path]
    """One folder per project."""
    files: tuple[str, ...]
    """Patterns of the files in the folder of a project."""
    opening: Callable[[Path, Sequence[dict[str, Any]]], _Opening]


class RecordedSessions:
    """The sessions that programs record of their work in one folder, from a moment on. Used by one thread."""

    def __init__(self, folder: Path, *, since: float) -> None:
        self._folder = os.path.realpath(folder)
        self._since = since - CLOCK_SECONDS
        self._projects: dict[str, Path] = {}
        """The folder of the project's recordings, by program, once one was found."""
        self._openings: dict[Path, _Opening] = {}

    def of(self, program: str, first_texts: Sequence[str], *, resumes: bool = False) -> SessionIds | None:
        """Return the session of a call whose first message has *first_texts*; None where that is uncertain.

        *resumes* is whether the call sends a reply of the model: the session may not have been written to since.
        """
        recordings = _PROGRAMS.get(program)
        if recordings is None:
            return None
        written = self._written(program, recordings, since=self._since)
        if not written and resumes:
            earlier = sorted(self._written(program, recordings, since=0.0), key=lambda row: -row[0])
            started_alike = (row for row in earlier if not row[1].parent_key and row[1].prompt in first_texts)
            written = list(islice(started_alike, 1))
        sessions = sorted(
            ((at, opening) for at, opening in written if not opening.parent_key), key=lambda pair: -pair[0]
        )
        if not sessions:
            return None
        latest = sessions[0][1]
        if any(at > latest.started_at and one.key != latest.key for at, one in sessions):
            return None  # another program runs at the same time
        for _, opening in written:
            if opening.parent_key == latest.key and opening.prompt and opening.prompt in first_texts:
                return SessionIds(*(session_id_of(recordings.source, key) for key in (opening.key, latest.key)))
        return SessionIds(session_id_of(recordings.source, latest.key))

    def _written(self, program: str, recordings: _Recordings, *, since: float) -> list[tuple[float, _Opening]]:
        """Return the recordings of the project that were written to *since*, each with the time of that."""
        project = self._projects.get(program)
        projects = _folders(recordings.root()) if project is None else [project]
        rows = []
        for folder in projects:
            for path in chain.from_iterable(map(folder.glob, recordings.files)):
                with suppress(OSError):
                    written_at = path.stat().st_mtime
                    if written_at < since:
                        continue
                    opening = self._opening(path, recordings)
                    if opening is not None and os.path.realpath(opening.folder) == self._folder:
                        self._projects[program] = folder
                        rows.append((written_at, opening))
        return rows

    def _opening(self, path: Path, recordings: _Recordings) -> _Opening | None:
        opening = self._openings.get(path)
        if opening is None:
            with path.open("rb") as file:
                rows = head_rows(file.read(HEAD_BYTES))
            if not rows:
                return None
            opening = recordings.opening(path, rows)
            if opening.prompt:  # else it is still being written
                self._openings[path] = opening
        return opening


def _folders(root: Path) -> Iterator[Path]:
    with suppress(OSError):
        yield from (path for path in root.iterdir() if path.is_dir())


def _gemini_opening(path: Path, rows: Sequence[dict[str, Any]]) -> _Opening:
    header = rows[0]
    is_child = header.get("kind") == "subagent"
    prompts = (row.get("content") for row in rows if row.get("type") == "user")
    return _Opening(
        text(header.get("sessionId")),
        path.parent.name if is_child else "",
        project_folder(path),
        instant(header.get("startTime")) or 0.0,
        _first_text(next(prompts, None)),
    )


def _qwen_opening(_path: Path, rows: Sequence[dict[str, Any]]) -> _Opening:
    first = rows[0]
    session = text(first.get("sessionId"))
    agent = text(first.get("agentId")) if first.get("isSidechain") is True else ""
    prompts = (mapping(row.get("message")).get("parts") for row in rows if row.get("type") == "user")
    return _Opening(
        f"{session}/{agent}" if agent else session,
        session if agent else "",
        text(first.get("cwd")),
        instant(first.get("timestamp")) or 0.0,
        _first_text(next(prompts, None)),
    )


def _first_text(content: object) -> str:
    return next((part.text for part in parts_of(content) if part.kind == "text" and part.text), "")


_PROGRAMS: Final[Mapping[str, _Recordings]] = {
    "gemini-cli": _Recordings("gemini_cli", gemini_folder, ("chats/*.jsonl", "chats/*/*.jsonl"), _gemini_opening),
    "qwen-code": _Recordings("qwen_code", qwen_folder, ("chats/*.jsonl", "subagents/*/*.jsonl"), _qwen_opening),
}
