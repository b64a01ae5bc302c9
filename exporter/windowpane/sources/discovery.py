"""Finds recordings on disk and tells their format by their content."""

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
    """One reader a format, the most particular first.

    *complete* says whether files are finished; None: those not written to for two minutes are. What a file that
    is still growing leaves open is held back.
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
"""Folders below the one named."""
SUFFIXES: Final = frozenset({".json", ".jsonl", ".traj"})
"""Of files picked up from folders; a file that is named itself may be called anything."""
_UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")


def files_of(paths: Iterable[Path]) -> Iterator[Path]:
    """The files to read, each once: those named, and those below the folders named, sorted.

    Hidden files and folders below a named folder are left out, and symbolic links to folders are not followed.
    Neither are pipes, sockets and devices read.
    """
    seen: set[Path] = set()
    for path in paths:
        for file in _below(path) if path.is_dir() else (path,):
            place = file.resolve()
            if place not in seen:
                seen.add(place)
                yield file


def default_places(readers: Sequence[Reader]) -> tuple[Path, ...]:
    """Where the tools keep their recordings on this machine, as far as these places exist."""
    return tuple(place for reader in readers for place in reader.default_paths() if place.is_dir())


def reader_for(path: Path, readers: Sequence[Reader]) -> Reader:
    """The reader that recognises the file.

    Raises `SourceError` when it cannot be read and `UnknownFormatError` when no reader recognises it.
    """
    if _is_device(path):
        raise SourceError(str(path), "not a regular file; save it as one first")
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError as error:
        raise SourceError(str(path), error.strerror or "cannot be read") from error
    for reader in readers:
        if reader.recognises(path, head):
            return reader
    expected = ", ".join(reader.format for reader in readers)
    raise UnknownFormatError(str(path), f"{_seems(head)}; expected a recording of {expected}")


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
    """Whether reading *path* could wait for ever or never end: a pipe, a socket, a device."""
    return path.exists() and not path.is_file()


def _seems(head: bytes) -> str:
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
