"""Recordings that an agent's program compressed with Zstandard, such as the older rollouts of Codex."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import BinaryIO, Final, cast

from windowpane.exceptions import SourceError

SUFFIX: Final = ".jsonl.zst"
OTHER_SUFFIXES: Final = (".bz2", ".gz", ".xz", ".zip", ".zst")
"""Suffixes of files that were compressed by hand, which are named in reports and not read."""
_MAGIC: Final = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"PK\3\4": "ZIP",
    b"\x28\xb5\x2f\xfd": "zstd",
}
MODULES: Final = ("compression.zstd", "backports.zstd")
"""The module of Python from 3.14 on, and its port."""
NEEDED: Final = "compressed with Zstandard, which Python before 3.14 reads with the package backports.zstd"


def compression_of(head: bytes) -> str:
    """Return the name of the compression of a file that starts with *head*; empty where it has none."""
    return next((name for magic, name in _MAGIC.items() if head.startswith(magic)), "")


def zstd_module() -> ModuleType | None:
    """Return the module that decompresses; None where none is installed."""
    for name in MODULES:
        with suppress(ImportError):
            return import_module(name)
    return None


def open_recording(path: Path) -> BinaryIO:
    """Open a recording for reading, decompressed.

    Raises `OSError`, and `SourceError` where nothing here decompresses it. Reading raises `reading_errors`.
    """
    if not path.name.endswith(SUFFIX):
        return path.open("rb")
    module = zstd_module()
    if module is None:
        raise SourceError(str(path), NEEDED)
    return cast("BinaryIO", module.open(path, "rb"))


def reading_errors() -> tuple[type[Exception], ...]:
    """Return the errors of a damaged or deleted file."""
    module = zstd_module()
    return (OSError, EOFError) if module is None else (OSError, EOFError, module.ZstdError)


def decompressed(raw: bytes, *, limit_bytes: int) -> bytes | None:
    """Return at most *limit_bytes* of a frame; empty for a damaged one, None where nothing decompresses it."""
    module = zstd_module()
    if module is None:
        return None
    try:
        return bytes(module.ZstdDecompressor().decompress(raw, limit_bytes))
    except module.ZstdError:
        return b""
