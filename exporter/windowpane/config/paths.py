"""Default locations of Windowpane's files, by the conventions of the platform."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import platformdirs

from windowpane.core.store_names import DEFAULT_FILE, store_file

READ_ONLY_VARIABLE: Final = "WINDOWPANE_DASHBOARD_READ_ONLY"
"""Set by `windowpane dashboard --read-only`, for the processes that serve its pages."""


def data_folder() -> Path:
    """Return the user's data folder for Windowpane; it may not exist yet."""
    return Path(platformdirs.user_data_dir("windowpane", appauthor=False))


def default_store() -> Path:
    """Return the path of the event store: `WINDOWPANE_STORE`, else `windowpane.db` in the data folder."""
    given = os.environ.get("WINDOWPANE_STORE")
    if not given:
        return data_folder() / DEFAULT_FILE
    return Path(store_file(given, key="WINDOWPANE_STORE")).expanduser()
