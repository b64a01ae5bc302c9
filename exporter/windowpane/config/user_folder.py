"""The folder of a user's data, by the conventions of the platform; the status line loads no more for it."""

from __future__ import annotations

import os
import sys


def user_folder() -> str:
    """Return the user's data folder for Windowpane; it may not exist yet."""
    moved = os.environ.get("XDG_DATA_HOME", "")
    if sys.platform == "win32":
        folder = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif os.path.isabs(moved):  # noqa: PTH117  # pathlib is slow
        folder = moved
    else:
        folder = "~/Library/Application Support" if sys.platform == "darwin" else "~/.local/share"
    return os.path.join(os.path.expanduser(folder), "windowpane")  # noqa: PTH111, PTH118
