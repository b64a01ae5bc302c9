"""The memory of a whole import: where nothing has changed since, nothing is loaded to find that out.

An import of the same paths with the same settings, for which every file and folder is in the state in which the
last one read it, has the reports of that one: from the metadata of the files and a few rows of the store, before
readers, settings and tracker are loaded.
"""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from windowpane.core.version import package_version
from windowpane.exceptions import StoreError
from windowpane.sources.imports.remembered_files import FileMemory, remembered_report
from windowpane.sources.transcripts.folders import stamp_of
from windowpane.store import read_files
from windowpane.store.read_files import FileState, ReadFile

if TYPE_CHECKING:
    from windowpane.sources.imports.file_report import FileReport

_log: Final = logging.getLogger(__name__)

MAXIMUM_FILES: Final = 10_000
"""Of an import of more files each is looked at again; that costs less than remembering all of them."""
MAXIMUM_DEPTH: Final = 32
SETTLED_SECONDS: Final = 2.0
"""A folder that changed so shortly before may change again without another time of change."""
LOCKED_SECONDS: Final = 0.5
_SETTINGS: Final = "WINDOWPANE_"
"""Start of the environment variables that are settings."""
_SESSION: Final = "SELECT revision, events FROM sessions WHERE session_id = ? AND +current = 1"

State = tuple[int, int, int]
"""Inode, size and time of change; the size of a folder is 0."""


class _Session(NamedTuple):
    revision: int
    events: int


class _Results:
    """The remembered files of a store in a SQLite file, read without the rest of the store."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def read_file(self, path: str) -> ReadFile | None:
        """Return a remembered file."""
        return read_files.load(self._connection, path)

    def session(self, session_id: str) -> _Session | None:
        """Return one session, or None."""
        row = self._connection.execute(_SESSION, (session_id,)).fetchone()
        return None if row is None else _Session(*row)


def import_key(paths: Sequence[Path], options: Mapping[str, object]) -> str:
    """Return the key of an import: a digest of all that its result depends on besides the files and the store."""
    config = os.environ.get("WINDOWPANE_CONFIG")
    environment = sorted((name, value) for name, value in os.environ.items() if name.startswith(_SETTINGS))
    settings = (
        package_version(), str(Path.cwd()), [str(path) for path in paths], sorted(options.items()), environment,
        None if config is None else _content(config),
    )  # fmt: skip
    return f"import:{blake2b(repr(settings).encode('utf-8', 'surrogatepass'), digest_size=16).hexdigest()}"


def _content(file: str) -> bytes | None:
    try:
        return Path(file).read_bytes()
    except (OSError, ValueError):
        return None


def unchanged_reports(store_file: str, key: str) -> list[FileReport] | None:
    """Return the reports of the last import of *key* if nothing has changed since, else None."""
    if not os.path.isfile(store_file):  # noqa: PTH113  # a URL is not one
        return None
    try:
        address = f"{Path(store_file).absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(address, uri=True, timeout=LOCKED_SECONDS)) as connection:
            results = _Results(connection)
            remembered = results.read_file(key)
            return None if remembered is None else _reports(json.loads(remembered.report), results)
    except (OSError, sqlite3.Error, ValueError, KeyError, TypeError):
        return None


def _reports(last: dict[str, Any], results: _Results) -> list[FileReport] | None:
    if any(state_of(path) != (state and tuple(state)) for path, state in last["looked_at"].items()):
        return None
    reports = []
    for name, parts in last["recordings"].items():
        path = Path(name)
        stamp = stamp_of(path, parts)
        state = FileState(path.stat().st_ino, stamp.size, stamp.mtime_ns, last["reading"])
        report = remembered_report(results, path, state)
        if report is None:
            return None
        if name not in last["given"]:
            report.skip_unknown()
        reports.append(report)
    return reports


def state_of(path: str) -> State | None:
    """Return the state of a file or folder; None for one that does not exist."""
    try:
        status = os.stat(path)  # noqa: PTH116  # a third of the time of pathlib
    except OSError:
        return None
    is_file = not os.path.isdir(path)  # noqa: PTH112
    return status.st_ino, status.st_size if is_file else 0, status.st_mtime_ns


class LastImport:
    """Remembers one import in the store, if all that it found can be recognized again by metadata."""

    def __init__(self, key: str, paths: Sequence[Path]) -> None:
        """Look at the folders among *paths* before they are read."""
        self._key = key
        self._given = [str(path) for path in paths if not path.is_dir()]
        self._looked_at: dict[str, State | None] = {}
        self._recognizable = all(self._look_at(str(path)) for path in paths if path.is_dir())

    def _look_at(self, folder: str, depth: int = 0) -> bool:
        """Note the states of a folder and those in it; return whether they show every change below it."""
        state = self._looked_at[folder] = state_of(folder)
        if state is None or depth > MAXIMUM_DEPTH or time.time() - state[2] / 1e9 < SETTLED_SECONDS:
            return False
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_symlink():
                        return False
                    if entry.name.endswith(".md"):  # its content decides whether it is a recording
                        self._looked_at[entry.path] = state_of(entry.path)
                    if (
                        entry.is_dir()
                        and not entry.name.startswith(".")
                        and not self._look_at(entry.path, depth + 1)
                    ):
                        return False
        except OSError:
            return False
        return True

    def remember(self, store: FileMemory, reports: Sequence[FileReport]) -> None:
        """Remember the import by the files that it read, as *store* remembers each of them."""
        from windowpane.sources.transcripts.discovery import parts_of  # loads all readers

        paths = [report.path for report in reports]
        if not self._recognizable or not 0 < len(paths) <= MAXIMUM_FILES or any(map(Path.is_symlink, paths)):
            return
        files = [store.read_file(str(path)) for path in paths]
        readings = {None if file is None else file.state.reading for file in files}
        if len(readings) != 1 or None in readings:
            return
        last = {
            "looked_at": self._looked_at, "recordings": {str(path): parts_of(path) for path in paths},
            "given": self._given, "reading": readings.pop(),
        }  # fmt: skip
        if any(state_of(path) != state for path, state in self._looked_at.items()):
            return
        try:
            store.remember_file(self._key, ReadFile(FileState(0, 0, 0, ""), json.dumps(last).encode()))
        except StoreError as error:
            _log.warning("the next import will look at every file again: %s", error)
