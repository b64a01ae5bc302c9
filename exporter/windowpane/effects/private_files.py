"""Files and folders that only their owner may read, whatever the umask."""

from __future__ import annotations

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
