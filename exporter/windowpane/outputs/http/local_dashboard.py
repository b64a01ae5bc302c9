"""The address of a dashboard that runs on this machine, so that alert messages can link to it.

The dashboard announces itself in a file beside the store. A file of a process that no longer runs is ignored.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from windowpane.effects.processes import is_running

SUFFIX: Final = ".dashboard.json"
MAXIMUM_BYTES: Final = 4_096
LOCAL: Final = ("http://127.0.0.1:", "http://localhost:", "http://[::1]:")


@contextmanager
def announced(store: Path, url: str) -> Iterator[None]:
    """Announce the dashboard of *store* at *url* while the block runs, if the file can be written."""
    file = _file(store)
    with suppress(OSError):
        file.write_text(json.dumps({"url": url, "pid": os.getpid()}), encoding="utf-8")
    try:
        yield
    finally:
        if _read(file).get("pid") == os.getpid():
            with suppress(OSError):
                file.unlink()


def local_dashboard(store: Path) -> str | None:
    """Return the address of the running dashboard of *store*; None where none runs on this machine."""
    values = _read(_file(store))
    url, pid = values.get("url"), values.get("pid")
    if not isinstance(url, str) or not url.startswith(LOCAL) or not isinstance(pid, int):
        return None
    return url if pid > 0 and is_running(pid) else None


def _file(store: Path) -> Path:
    return store.with_name(store.name + SUFFIX)


def _read(file: Path) -> dict[str, object]:
    try:
        with file.open("rb") as stream:
            values = json.loads(stream.read(MAXIMUM_BYTES))
    except (OSError, ValueError):
        return {}
    return values if isinstance(values, dict) else {}
