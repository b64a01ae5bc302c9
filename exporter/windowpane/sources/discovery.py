"""The readers of all formats, and the search for recordings on disk, whose format is recognized by content."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from windowpane.exceptions import SourceError, UnknownFormatError
from windowpane.sources.claude_code.reader import ClaudeCodeReader
from windowpane.sources.codex import CodexReader
from windowpane.sources.mini_swe_agent import MiniSweAgentReader
from windowpane.sources.openai_chat import OpenAIChatReader
from windowpane.sources.pi import PiReader
from windowpane.sources.reader import Reader
from windowpane.sources.swe_agent import SweAgentReader
from windowpane.sources.tau_bench import Tau2Reader, TauBenchReader


def all_readers(*, complete: bool | None = None) -> tuple[Reader, ...]:
    """Return one reader per format, the most specific first.

    *complete* is whether files are finished; None: those without a write for two minutes are. The open end of a
    file that may grow is deferred.
    """
    return (
        PiReader(complete=complete),
        CodexReader(complete=complete),
        ClaudeCodeReader(complete=complete),
        MiniSweAgentReader(),
        SweAgentReader(),
        Tau2Reader(),
        TauBenchReader(),
        OpenAIChatReader(),
    )


HEAD_BYTES: Final = 64 * 1024
MAXIMUM_DEPTH: Final = 12
"""Levels of folders below a given one."""
SUFFIXES: Final = frozenset({".json", ".jsonl", ".traj"})
"""Suffixes of the files read from folders; a file given by its path may have any."""
_UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")


def files_of(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the files to read, each once: those in *paths*, and those below the folders in *paths*, sorted.

    Skipped below a folder are hidden files and folders, symbolic links to folders, pipes, sockets and devices.
    """
    seen: set[Path] = set()
    for path in paths:
        for file in _below(path) if path.is_dir() else (path,):
            resolved = file.resolve()
            if resolved not in seen:
                seen.add(resolved)
                yield file


def default_folders(readers: Sequence[Reader]) -> tuple[Path, ...]:
    """Return the folders where the tools keep their recordings on this machine, as far as they exist."""
    return tuple(folder for reader in readers for folder in reader.default_paths() if folder.is_dir())


def reader_for(path: Path, readers: Sequence[Reader]) -> Reader:
    """Return the reader that recognizes the file.

    Raises `SourceError` when it cannot be read and `UnknownFormatError` when no reader recognizes it.
    """
    if _is_device(path):
        raise SourceError(str(path), "not a regular file; save it as one first")
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError as error:
        raise SourceError(str(path), error.strerror or "cannot be read") from error
    for reader in readers:
        if reader.recognizes(path, head):
            return reader
    expected = ", ".join(reader.format for reader in readers)
    raise UnknownFormatError(str(path), f"{_description(head)}; expected a recording of {expected}")


def _below(folder: Path) -> Iterator[Path]:
    top = len(folder.parts)
    for name, folders, files in os.walk(folder):
        here = Path(name)
        if len(here.parts) - top >= MAXIMUM_DEPTH:
            folders.clear()
        folders[:] = sorted(folder for folder in folders if not folder.startswith("."))
        for file in sorted(files):
            if not file.startswith(".") and Path(file).suffix in SUFFIXES and not _is_device(here / file):
                yield here / file


def _is_device(path: Path) -> bool:
    """Return whether *path* is a pipe, a socket or a device, which may block or never end."""
    return path.exists() and not path.is_file()


def _description(head: bytes) -> str:
    if not head:
        return "the file is empty"
    if head.startswith(_UTF_16):
        return "UTF-16 text, not UTF-8"
    if b"\0" in head:
        return "binary data"
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if start in (b"{", b"["):
        return "JSON of no known format"
    return "neither JSON nor JSON Lines"
