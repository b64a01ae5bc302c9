"""The readers of all formats, and the search for recordings on disk, whose format is recognized by content."""

from __future__ import annotations

import errno
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from windowpane.core.characters import encodable
from windowpane.core.files import irregular_kind
from windowpane.core.store_names import DEFAULT_FILE
from windowpane.exceptions import SourceError, UnknownFormatError
from windowpane.sources.transcripts import compressed, databases
from windowpane.sources.transcripts.folders import (
    AIDER_HISTORY,
    BESIDE_EVENTS,
    STORAGE_FOLDERS,
    FolderReader,
    Stamp,
    is_searched_storage,
    names_in,
    stamp_of,
)
from windowpane.sources.transcripts.formats import agent_sidecar
from windowpane.sources.transcripts.formats.registry import FormatReaders
from windowpane.sources.transcripts.json_document import shape_of
from windowpane.sources.transcripts.json_lines import instant
from windowpane.sources.transcripts.reader import INDEX, Reader

CLAUDE_CODE: Final = "sessions-index.json"
"""Of a project's folder; titles and folders are in the transcripts too."""
CLINE: Final = "sessions.db"
_CLINE_COLUMNS: Final = frozenset({"session_id", "messages_path"})
"""Of the table of sessions, each of which has its messages in a file."""


def is_index(path: Path, head: bytes) -> bool:
    """Return whether the file, which starts with *head*, only lists recordings."""
    if path.name == CLAUDE_CODE:
        return shape_of(head) >= {"version", "entries"}
    return path.name == CLINE and databases.has_columns(path, head, "sessions", _CLINE_COLUMNS)


def all_readers(*, complete: bool | None = None) -> FormatReaders:
    """Return one reader per format, the most specific first; each is loaded when it is used.

    *complete* is whether files are finished; None: those without a write for two minutes are. The open end of a
    file that may grow is deferred.
    """
    return FormatReaders(complete=complete)


_READERS: Final = FormatReaders()
HEAD_BYTES: Final = 64 * 1024
RECOGNIZED_SUFFIXES: Final = frozenset({".csv", ".md"})
"""Suffixes of files of which only few are recordings: those of a folder are read where one is recognized."""
MINIMUM_ID: Final = 8
"""Characters of a session id by which its file is found."""
FIRST_BYTES: Final = 4_096
"""Start of a file that is searched for a time, before the rest of its head is."""
_TIME: Final = re.compile(
    rb'"(?:\w*[tT]ime\w*|ts|created\w*|date)":\s*'
    rb'(?:"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|[+-]\d\d:\d\d)?)|(1\d{9}(?:\d{3})?)\b)'
)
"""A field with a time: ISO 8601, seconds or milliseconds."""
_SECONDS: Final = 10
"""Digits of a time in seconds."""
MARKDOWN_BYTES: Final = 4_096
"""Start of such a file that is searched for the marks of Aider, or for the columns of Langfuse."""
MAXIMUM_DEPTH: Final = 12
"""Levels of folders below a given one."""
SUFFIXES: Final = databases.SUFFIXES | {".eval", ".har", ".json", ".jsonl", ".ndjson", ".traj"}
"""Suffixes of the files read from folders, in either case; a file given by its path may have any."""
_UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")


def files_of(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the files to read, each once: those in *paths*, and those below the folders in *paths*, sorted.

    Hidden files and folders are skipped. Links to folders are not followed, and are yielded like pipes, devices
    and links that lead nowhere: `reader_for` states why none of these is read.
    """
    seen: set[str] = set()
    for path in _gathered(paths):
        for file in _below(path) if path.is_dir() else (path,):
            resolved = os.path.realpath(file)
            if resolved not in seen:
                seen.add(resolved)
                yield file


def recording_of(session_id: str, paths: Iterable[Path]) -> Path | None:
    """Return the latest recording below *paths* that a session is named by, as most agents name their files."""
    key = session_id.rpartition(":")[2]
    if len(key) < MINIMUM_ID:
        return None
    files = [path for path in files_of(paths) if key in encodable(path.stem)]
    return max(files, key=lambda path: path.stat().st_mtime, default=None)


def by_start(files: Sequence[Path]) -> list[Path]:
    """Return the files in the order in which their sessions started, since later ones learn from earlier ones.

    The start is the first time in a file, else its last change. Files of one time keep their order.
    """
    return sorted(files, key=_start_of) if len(files) > 1 else list(files)


def _start_of(path: Path) -> float:
    try:
        changed_at = path.stat().st_mtime
    except OSError:
        return 0.0
    return (_first_time(path) or changed_at) if path.is_file() else changed_at  # a pipe would wait for its writer


def _first_time(path: Path) -> float | None:
    with suppress(SourceError, *compressed.reading_errors()), compressed.open_recording(path) as file:
        for piece in (file.read(FIRST_BYTES), file.read(HEAD_BYTES - FIRST_BYTES)):
            for iso, number in _TIME.findall(piece):
                scale = 1 if len(number) == _SECONDS else 1_000
                start = instant(iso.decode()) if iso else float(number) / scale
                if start is not None:
                    return start
    return None


def reader_for(path: Path, readers: Sequence[Reader]) -> Reader:
    """Return the reader that recognizes the file.

    Raises `SourceError` when it cannot be read and `UnknownFormatError` when no reader recognizes it.
    """
    if problem := unreadable(path):
        raise SourceError(str(path), problem)
    if path.is_dir():
        return _folder_reader(path, readers)
    try:
        with compressed.open_recording(path) as file:
            head = file.read(HEAD_BYTES)
    except compressed.reading_errors() as error:
        raise SourceError(str(path), getattr(error, "strerror", None) or "cannot be read") from error
    for reader in readers.for_file(path, head) if isinstance(readers, FormatReaders) else readers:
        if reader.recognizes(path, head):
            return reader
    if is_index(path, head):
        raise UnknownFormatError(str(path), INDEX)
    formats = readers.names if isinstance(readers, FormatReaders) else [reader.format for reader in readers]
    expected = ", ".join(dict.fromkeys(formats))
    raise UnknownFormatError(str(path), f"{_description(head)}; expected a recording of {expected}")


def _folder_reader(path: Path, readers: Sequence[Reader]) -> Reader:
    names = names_in(path)
    if isinstance(readers, FormatReaders):
        return next(reader for reader, _ in readers.for_folder(path, names))
    return next(reader for reader in readers if isinstance(reader, FolderReader) and reader.parts(path, names))


def stamp(path: Path, *, now: float | None = None) -> Stamp:
    """Return what changes whenever the recording at *path* does; see `stamp_of`."""
    return stamp_of(path, parts_of(path), now=now)


def parts_of(path: Path) -> list[str]:
    """Return the names of the files that make up the recording at *path*, if that is a folder; else none."""
    return _parts(path, names_in(path)) if path.is_dir() else []


def _parts(folder: Path, names: Sequence[str]) -> list[str]:
    """Return those of the files of a folder that are one recording."""
    return next((parts for _, parts in _READERS.for_folder(folder, names)), [])


def _gathered(paths: Iterable[Path]) -> list[Path]:
    """Replace files that are parts of one folder's recording by that folder, where several are given."""
    paths = list(paths)
    pieces = {path for path in paths if _parts(path.parent, [path.name])}
    parents = Counter(path.parent for path in pieces)
    return [path.parent if path in pieces and parents[path.parent] > 1 else path for path in paths]


class FolderListing(NamedTuple):
    """The recordings directly in a folder, and the folders to search below it."""

    recordings: tuple[Path, ...]
    """Files, sorted; first the folder itself where it is a recording, and links to folders."""
    folders: tuple[Path, ...]


def list_folder(folder: Path) -> FolderListing:
    """Return what is in a folder; nothing where it cannot be listed."""
    names: list[str] = []
    folders: list[str] = []
    links: list[str] = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if not _is_folder(entry):
                names.append(entry.name)
            elif not entry.name.startswith("."):
                (links if entry.is_symlink() else folders).append(entry.name)
    parts = frozenset(_parts(folder, names))
    beside = BESIDE_EVENTS if "events" in folders or "events" in links else frozenset()
    listed = frozenset(names)
    files = sorted(
        name
        for name in names
        if name not in parts
        and name not in beside
        and not _is_covered(name, listed)
        and _is_searched(folder / name)
    )
    if set(STORAGE_FOLDERS) <= {*folders}:
        folders = [name for name in folders if is_searched_storage(folder, name)]
    itself = (folder,) if parts else ()
    recordings = (*(folder / link for link in sorted(links)), *itself, *(folder / name for name in files))
    return FolderListing(recordings, tuple(folder / name for name in sorted(folders)))


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a folder or leads to one."""
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


def _below(folder: Path, depth: int = 0) -> Iterator[Path]:
    listing = list_folder(folder)
    yield from listing.recordings
    if depth < MAXIMUM_DEPTH:
        for below in listing.folders:
            yield from _below(below, depth + 1)


def _is_covered(name: str, names: frozenset[str]) -> bool:
    """Return whether a file is read with another one, or is the compressed copy of another one."""
    if name.endswith(agent_sidecar.SUFFIX):
        return f"{name.removesuffix(agent_sidecar.SUFFIX)}.jsonl" in names
    packed = Path(name)
    return packed.suffix in compressed.OTHER_SUFFIXES and packed.stem in names


def _is_searched(file: Path) -> bool:
    """Return whether a file of a folder may be a recording: no store, and of Markdown only Aider's histories."""
    if file.name == AIDER_HISTORY:
        return True
    if file.name.startswith(".") or file.name == DEFAULT_FILE:
        return False
    suffix = file.suffix.lower()
    if suffix not in RECOGNIZED_SUFFIXES:
        if suffix in compressed.OTHER_SUFFIXES:
            suffix = Path(file.stem).suffix.lower()
        return suffix in SUFFIXES
    try:
        with file.open("rb") as opened:
            head = opened.read(MARKDOWN_BYTES)
    except OSError:
        return False
    return any(reader.recognizes(file, head) for reader in _READERS.by_file_name(file))


def unreadable(path: Path) -> str:
    """Return why *path* cannot be read as a file; empty where it can be tried."""
    try:
        kind = irregular_kind(path.stat().st_mode)
    except OSError as error:
        if path.is_symlink():
            return (
                "a symbolic link to itself" if error.errno == errno.ELOOP else "a symbolic link to a missing file"
            )
        return error.strerror or "cannot be read"
    if kind == "a folder" and path.is_symlink():
        return "a symbolic link to a folder, which is not followed; name the folder itself"
    if kind == "a folder" and _parts(path, names_in(path)):
        return ""
    return f"{kind}, not a regular file; save it as one first" if kind else ""


def _description(head: bytes) -> str:
    if not head:
        return "the file is empty"
    if head.startswith(_UTF_16):
        return "UTF-16 text, not UTF-8"
    if compression := compressed.compression_of(head):
        return f"compressed with {compression}; unpack it first"
    if b"\0" in head:
        return "binary data"
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if start in (b"{", b"["):
        return "JSON of no known format"
    return "neither JSON nor JSON Lines"
