"""The session of the agent that asks: its recording is found by what its program states, and read as it grows.

Claude Code states the session to the programs that it starts, and the id of each tool call; Codex states the
thread with each call. Of Gemini CLI and opencode only the folder is known that they work in: the session whose
recording in it was written last is the one that asks, since a prompt is written before the model reads it.
Of other programs only stored sessions are known. A session that is not recorded yet is never replaced by another.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import nlargest
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

from windowpane.core.characters import encodable
from windowpane.core.times import is_live, live_since
from windowpane.exceptions import WindowpaneError
from windowpane.sources.imports.outline import latest_sessions, outlines_of
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
CALL_SECONDS: Final = 3.0
"""Time that Claude Code has to write the call that it passes on; it writes several times a second."""
CALL_CHECK_SECONDS: Final = 0.1
_ID: Final = re.compile(r"[0-9A-Za-z_-]{8,80}")
_PROJECT_FILE_BYTES: Final = 8_192


class NoOwnSessionError(WindowpaneError):
    """The session of a caller is not recorded."""


class Recording(NamedTuple):
    """The files of a caller's session."""

    paths: tuple[Path, ...]
    session_id: str
    is_own: bool = False
    """The program that started this one stated it, so that its folder need not be compared."""
    live: int = 1
    """Recordings of the folder that the program writes at present, where it does not state which one is meant."""


class OwnSessions:
    """Finds the sessions of callers that work in *folder*; a stored session follows its recording."""

    def __init__(
        self,
        store: Store,
        *,
        folder: Path,
        environment: Mapping[str, str],
        follow: Callable[[Sequence[Path]], Watcher],
        started_at: float,
    ) -> None:
        """*started_at* is the time at which the caller's program started this one."""
        self._store = store
        self._folder = folder.resolve()
        self._environment = environment
        self._follow = follow
        self._started_at = started_at
        self._watchers: dict[tuple[Path, ...], Watcher] = {}

    def find(self, client: str, metadata: Mapping[str, object], *, now: float) -> tuple[SessionRow, int]:
        """Return the caller's session after reading its recording, and how many of the folder are live.

        Raises `NoOwnSessionError` where it is not recorded.
        """
        recording = self._recording(client, metadata, now)
        if recording is None:
            rows = self._of_folder(client)
            live = sum(is_live(row, now) for row in rows)
        else:
            self._read(recording.paths)
            rows, live = self._stated(recording), recording.live
        if not rows:
            raise NoOwnSessionError(
                f"this session of {client or 'this program'} in {self._folder} is not recorded yet; it is after "
                "its first model call, that of another program while `windowpane watch` runs"
            )
        return rows[0], live

    def _read(self, paths: tuple[Path, ...]) -> None:
        """Store the changes of the recordings since they were last read."""
        watcher = self._watchers.get(paths)
        if watcher is None:
            watcher = self._watchers.setdefault(paths, self._follow(paths))
        watcher.poll()

    def _stated(self, recording: Recording) -> list[SessionRow]:
        """Return the session of a recording, if it is the caller's."""
        row = self._store.session(recording.session_id)
        return [row] if row is not None and (recording.is_own or self._is_here(row.folder)) else []

    def _of_folder(self, client: str) -> list[SessionRow]:
        """Return the program's sessions in the folder since it started this one, the latest first."""
        name = client.casefold()
        rows = self._store.sessions(SessionFilter(folder=encodable(str(self._folder)), order="recent"))
        return [
            row
            for row in rows
            if self._is_here(row.folder)
            and row.parent_session_id is None
            and name.startswith(row.agent.casefold())
            and (row.last_at or 0) >= self._started_at
        ]

    def _is_here(self, folder: str) -> bool:
        return bool(folder) and Path(folder).resolve() == self._folder

    def _recording(self, client: str, metadata: Mapping[str, object], now: float) -> Recording | None:
        """Return the recording of the caller's session; None for a program whose recordings are not found."""
        if client.startswith("claude-code"):
            return self._claude(_identifier(metadata.get(CLAUDE_CALL)), now)
        if client.startswith("codex"):
            thread = _identifier(metadata.get(CODEX_THREAD))
            return _codex(thread) if thread else None
        if client.startswith("gemini-cli"):
            return self._gemini(now)
        if client.startswith("opencode"):
            return self._opencode(now)
        return None

    def _claude(self, call: str, now: float) -> Recording:
        """Return the recording that holds the *call*, else the one of the session that Claude Code started with.

        They differ after `/clear` and in a sub-agent, so a call that is in none is of a session without one.
        """
        projects = claude_folder() / "projects"
        session = _identifier(self._environment.get(CLAUDE_SESSION))
        started = next(iter(_by_name(projects, f"{session}.jsonl")), None) if session else None
        project = (
            projects / re.sub(r"[^0-9A-Za-z]", "-", str(self._folder)) if started is None else started.parent
        )
        live = 1
        if call:
            chosen = _with_call(project, call)
        elif session:
            chosen = started
        else:
            files = [path for path in _listed(project) if path.suffix == ".jsonl"]
            chosen, live = max(files, key=_changed_at, default=None), _live(map(_changed_at, files), now)
        if chosen is None:
            return Recording((), "")
        return Recording((chosen,), _claude_session(chosen), is_own=started is not None, live=live)

    def _gemini(self, now: float) -> Recording:
        chats = tuple(_gemini_projects(self._folder))
        files = [path for path in chain.from_iterable(map(_listed, chats)) if path.is_file()]
        latest = max(files, key=_changed_at, default=None)
        outlines = [] if latest is None else outlines_of(latest, first_message_titles=False)
        session_id = outlines[0].session_id if outlines else ""
        return Recording(chats, session_id, live=_live(map(_changed_at, files), now))

    def _opencode(self, now: float) -> Recording:
        databases = tuple(path for path in opencode_databases() if path.exists())
        here: list[tuple[float, str]] = []
        for database in databases:
            for changed_at, session in latest_sessions(database):
                if self._is_here(session.folder) and session.parent_session_id is None:
                    here.append((changed_at, session.session_id))
                if changed_at < live_since(now) and here:
                    break
        _, session_id = max(here, default=(0.0, ""))
        return Recording(databases, session_id, live=_live((changed_at for changed_at, _ in here), now))


def _live(changes: Iterable[float], now: float) -> int:
    """Return how many recordings were changed so recently that their sessions are live."""
    return sum(changed_at >= live_since(now) for changed_at in changes)


def _with_call(project: Path, call: str) -> Path | None:
    """Return the recording of Claude Code that holds the *call*, once it is written; None where it is in none."""
    until = time.monotonic() + CALL_SECONDS
    while True:
        latest = nlargest(SEARCHED_FILES, _claude_files(project), key=_changed_at)
        chosen = next((path for path in latest if _ends_with(path, call.encode())), None)
        if chosen is not None or time.monotonic() >= until:
            return chosen
        time.sleep(CALL_CHECK_SECONDS)


def _claude_session(recording: Path) -> str:
    """Return the session of a recording; that of a sub-agent is in a folder of its session."""
    is_subagent = recording.parent.name == SUBAGENTS
    return f"{recording.parent.parent.name}/{recording.stem}" if is_subagent else recording.stem


def _codex(thread: str) -> Recording:
    days = (Path(folder) for folder, _, names in os.walk(codex_sessions()) if names)
    files = chain.from_iterable(_ending(day, f"-{thread}.jsonl") for day in days)
    return Recording(tuple(sorted(files)), thread)


def _gemini_projects(folder: Path) -> Iterator[Path]:
    """Yield the folders of recordings of the project in *folder*."""
    for project in _listed(gemini_folder()):
        try:
            with (project / ".project_root").open("rb") as file:
                root = Path(file.read(_PROJECT_FILE_BYTES).decode().strip()).resolve()
        except (OSError, ValueError):  # also of a NUL character in the path
            continue
        if root == folder:
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
