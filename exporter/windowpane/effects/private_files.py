"""Files and folders that only their owner may read, whatever the umask."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

MODE_FILE: Final = 0o600
MODE_FOLDER: Final = 0o700


def create_folder(path: Path) -> None:
    """Create *path* and its missing parents for their owner only; folders that exist stay as they are."""
    missing = []
    while not path.exists():
        missing.append(path)
        path = path.parent
    for folder in reversed(missing):
        try:
            folder.mkdir(MODE_FOLDER)
        except FileExistsError:
            continue  # another process was faster
        folder.chmod(MODE_FOLDER)  # an umask may have removed the owner's own rights


def write_whole(path: Path, content: bytes, *, is_durable: bool = True) -> None:
    """Replace a file in one step, durably: after a crash it is the old or the new one. Raises `OSError`.

    Unless it *is_durable*, that is so for other processes, and a crash of the machine may cost the file.
    """
    create_folder(path.parent)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".writing-")  # for the owner only
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            if is_durable:
                file.flush()
                os.fsync(file.fileno())
        Path(temporary).chmod(MODE_FILE)
        Path(temporary).replace(path)
    except BaseException:
        with suppress(FileNotFoundError):
            Path(temporary).unlink()
        raise
    if is_durable:
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names of the files in a folder durable, where the system can. Raises `OSError`."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
