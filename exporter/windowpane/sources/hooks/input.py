"""The input of a hook: the document on its standard input, and the configured store.

The store is found without the schema of the configuration, which is slow to load.
"""

from __future__ import annotations

import json
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAXIMUM_CHARACTERS = 1_000_000


def read_document() -> dict[str, Any]:
    """Return the document; empty if it is not a JSON object."""
    try:
        document = json.loads(sys.stdin.read(MAXIMUM_CHARACTERS))
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def configured_store(name: str | None = None) -> str:
    """Return the path of the store *name*, else of the configured one; on a server, its URL."""
    name = name or os.environ.get("WINDOWPANE_STORE")
    if name:
        return os.path.expanduser(name if ":" not in name else _file_of(name))  # noqa: PTH111  # pathlib is slow
    if any(variable.startswith(("WINDOWPANE_CONFIG", "WINDOWPANE_STORE__")) for variable in os.environ):
        from windowpane.config.layers import Layers

        store = Layers.read(None).document.get("store") or {}
        if path := store.get("path"):
            return os.path.expanduser(_file_of(path))  # noqa: PTH111  # pathlib is slow
    from windowpane.config.user_folder import user_folder

    return os.path.join(user_folder(), "windowpane.db")  # noqa: PTH118


def _file_of(url: str) -> str:
    from windowpane.core.store_names import StoreUrl, parse_store_name

    name = parse_store_name(url)
    return name.url if isinstance(name, StoreUrl) else name
