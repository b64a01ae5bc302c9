"""The session of the agent that asks: its recording is found by what its program states, and read as it grows.

Claude Code states the session to the programs that it starts, and the id of each tool call; Codex states the
thread with each call. Of Gemini CLI, opencode and all others only the folder is known that they work in: the
session with the latest event in it is the one that asks.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import nlargest
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

from windowpane.core.times import is_live
from windowpane.exceptions import WindowpaneError
from windowpane.sources.imports.watch import Watcher
from windowpane.sources.installed_agents.locations import (
    claude_folder,
    codex_sessions,
    gemini_folder,
    opencode_databases,
)
from windowpane.store.filters import SessionFilter
from windowpane.store.records import SessionRow
from windowpane.store.store import Store

SUBAGENTS: Final = "subagents"
CLAUDE_SESSION: Final = "CLAUDE_CODE_SESSION_ID"
CLAUDE_CALL: Final = "claudecode/toolUseId"
CODEX_THREAD: Final = "threadId"
SINCE_SECONDS: Final = 24 * 3600.0
"""Recordings without a change for longer are not read: the session that asks has just written to its own."""
SEARCHED_FILES: Final = 20
"""Recordings of Claude Code that are searched for a call, the latest ones."""
SEARCHED_BYTES: Final = 512 * 1024
"""The end of a recording that is searched for a call."""
_ID: Final = re.compile(r"[0-9A-Za-z_-]{8,80}")
_PROJECT_FILE_BYTES: Final = 8_192


class NoOwnSessionError(WindowpaneError):
    """The session of a caller is not recorded."""


class Recording(NamedTuple):
    """The files of a caller's session."""

    paths: tuple[Path, ...]
    session_id: str = ""
    """Its id where its program states it; else the latest session of the folder is meant."""
    is_own: bool = False
    """The program that started this one stated it, so that its folder need not be compared."""


class OwnSessions:
    """Finds the sessions of callers that work in *folder*; a stored session follows its recording."""

    def __init__(
        self,
        store: Store,
        *,
        folder: Path,
        environment: Mapping[str, str],
        follow: Callable[[Sequence[Path]], Watcher],
    ) -> None:
        self._store = store
        self._folder = folder.resolve()
        self._environment = environment
        self._follow = follow
        self._watchers: dict[tuple[Path, ...], Watcher] = {}

    def find(self, client: str, metadata: Mapping[str, object], *, now: float) -> tuple[SessionRow, int]:
        """Return the caller's session after reading its recording, and how many of the folder are live.

        Raises `NoOwnSessionError` where none is recorded.
        """
        recording = self._recording(client, metadata)
        watcher = self._watchers.get(recording.paths)
        if watcher is None:
            watcher = self._watchers.setdefault(recording.paths, self._follow(recording.paths))
        watcher.poll()
        rows = self._stated(recording) if recording.session_id else self._of_folder(client)
        if not rows:
            raise NoOwnSessionError(
                f"no session of {client or 'this program'} in {self._folder} is recorded yet; it is after its "
                "first model call, that of another program while `windowpane watch` runs"
            )
        return rows[0], sum(is_live(row, now) for row in rows)

    def _stated(self, recording: Recording) -> list[SessionRow]:
        """Return the session that the caller's program states, if it is the caller's."""
        row = self._store.session(recording.session_id)
        return [row] if row is not None and (recording.is_own or self._is_here(row)) else []

    def _of_folder(self, client: str) -> list[SessionRow]:
        """Return the sessions of the caller's program in the folder, the latest first."""
        name = client.casefold()
        rows = self._store.sessions(SessionFilter(folder=str(self._folder), order="recent"))
        return [
            row
            for row in rows
            if self._is_here(row) and row.parent_session_id is None and name.startswith(row.agent.casefold())
        ]

    def _is_here(self, row: SessionRow) -> bool:
        return bool(row.folder) and Path(row.folder).resolve() == self._folder

    def _recording(self, client: str, metadata: Mapping[str, object]) -> Recording:
        if client.startswith("claude-code"):
            return self._claude(_identifier(metadata.get(CLAUDE_CALL)))
        if client.startswith("codex"):
            return _codex(_identifier(metadata.get(CODEX_THREAD)))
        if client.startswith("gemini-cli"):
            return Recording(tuple(_gemini_projects(self._folder)))
        if client.startswith("opencode"):
            return Recording(tuple(path for path in opencode_databases() if path.exists()))
        return Recording(())

    def _claude(self, call: str) -> Recording:
        """Return the recording that holds the *call*, else the one of the session that Claude Code started with.

        They differ after `/clear` and in a sub-agent.
        """
        projects = claude_folder() / "projects"
        session = _identifier(self._environment.get(CLAUDE_SESSION))
        started = next(iter(_by_name(projects, f"{session}.jsonl")), None) if session else None
        project = (
            projects / re.sub(r"[^0-9A-Za-z]", "-", str(self._folder)) if started is None else started.parent
        )
        latest = nlargest(SEARCHED_FILES, _claude_files(project), key=_changed_at)
        chosen = next((path for path in latest if call and _ends_with(path, call.encode())), started)
        return (
            Recording(())
            if chosen is None
            else Recording((chosen,), _claude_session(chosen), is_own=started is not None)
        )


def _claude_session(recording: Path) -> str:
    """Return the session of a recording; that of a sub-agent is in a folder of its session."""
    is_subagent = recording.parent.name == SUBAGENTS
    return f"{recording.parent.parent.name}/{recording.stem}" if is_subagent else recording.stem


def _codex(thread: str) -> Recording:
    days = (Path(folder) for folder, _, names in os.walk(codex_sessions()) if names)
    files = chain.from_iterable(_ending(day, f"-{thread}.jsonl") for day in days) if thread else ()
    return Recording(tuple(sorted(files)), thread)


def _gemini_projects(folder: Path) -> Iterator[Path]:
    """Yield the folders of recordings of the project in *folder*."""
    for project in _listed(gemini_folder()):
        try:
            with (project / ".project_root").open("rb") as file:
                root = file.read(_PROJECT_FILE_BYTES).decode().strip()
        except (OSError, ValueError):
            continue
        if Path(root).resolve() == folder:
            yield project / "chats"


def _claude_files(project: Path) -> Iterator[Path]:
    """Yield the recordings of a project: its sessions, and the sub-agents of each."""
    for entry in _listed(project):
        if entry.suffix == ".jsonl":
            yield entry
        else:
            yield from (path for path in _listed(entry / SUBAGENTS) if path.suffix == ".jsonl")


def _listed(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _by_name(folder: Path, name: str) -> Iterator[Path]:
    return (path for entry in _listed(folder) if (path := entry / name).is_file())


def _ending(folder: Path, end: str) -> Iterator[Path]:
    return (path for path in _listed(folder) if path.name.endswith(end))


def _changed_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _ends_with(path: Path, text: bytes) -> bool:
    """Return whether the end of a file contains *text*."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - SEARCHED_BYTES))
            return text in file.read(SEARCHED_BYTES)
    except OSError:
        return False


def _identifier(value: object) -> str:
    """Return an id that a program states; empty for anything that is not one."""
    return value if isinstance(value, str) and _ID.fullmatch(value) else ""
