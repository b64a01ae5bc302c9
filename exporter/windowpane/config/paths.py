"""Default locations of Windowpane's files, by the conventions of the platform."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from windowpane.config.user_folder import user_folder
from windowpane.core.store_names import DEFAULT_FILE, StoreName, StoreUrl, parse_store_name

READ_ONLY_VARIABLE: Final = "WINDOWPANE_DASHBOARD_READ_ONLY"
"""Set by `windowpane dashboard --read-only`, for the processes that serve its pages."""
LOGIN_VARIABLE: Final = "WINDOWPANE_DASHBOARD_LOGIN"
"""Set where the dashboard was started with a login: pages then refuse every visitor if the setting disappears."""


def data_folder() -> Path:
    """Return the user's data folder for Windowpane; it may not exist yet."""
    return Path(user_folder())


def default_store_file() -> Path:
    """Return the event store of a user who has configured none."""
    return data_folder() / DEFAULT_FILE


def default_store() -> StoreName:
    """Return the name of the event store: `WINDOWPANE_STORE`, else `windowpane.db` in the data folder."""
    given = os.environ.get("WINDOWPANE_STORE")
    if not given:
        return default_store_file()
    return named_store(given, key="WINDOWPANE_STORE")


def named_store(text: str, *, key: str = "store") -> StoreName:
    """Return the store that *text* names. Raises `ConfigurationError` about *key*."""
    parsed = parse_store_name(text, key=key)
    return parsed if isinstance(parsed, StoreUrl) else Path(parsed).expanduser()


def local_base(store: StoreName) -> Path:
    """Return the path beside which the local files of a store are: what waits to be stored or delivered.

    Beside the file itself; for a store on a server, in a folder for it in the user's data folder.
    """
    if isinstance(store, StoreUrl):
        return data_folder() / "servers" / store.file_name / "store"
    return store
