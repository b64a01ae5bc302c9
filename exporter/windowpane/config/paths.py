"""Where Windowpane keeps its files, as the platform has it."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs


def data_folder() -> Path:
    """The user's data folder for Windowpane; may not exist yet."""
    return Path(platformdirs.user_data_dir("windowpane", appauthor=False))


def default_store() -> Path:
    """The event store: `WINDOWPANE_STORE`, else `windowpane.db` in the data folder."""
    given = os.environ.get("WINDOWPANE_STORE")
    return Path(given).expanduser() if given else data_folder() / "windowpane.db"
