"""The sizes of windows that Claude Code states to its status line, by session: a small file for each.

The status line runs at every prompt, so few modules are imported. Nothing but the size and the model is kept.
"""

from __future__ import annotations

import json
import os

from windowpane.config.user_folder import user_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FOLDER = "status-line"
MAXIMUM_FILES = 1_000
"""Files that are kept; the oldest ones are deleted."""
WRONG_RELEASES = (2, 1, 212), (2, 1, 222)
"""The first and the last release that state 200,000 for a model whose window is larger."""
WRONG_MODEL = "claude-opus-5"


def is_wrong(version: object, model: str) -> bool:
    """Return whether this release of Claude Code states a wrong size for *model*."""
    parts = version.split(".") if isinstance(version, str) else []
    release = tuple(int(part) for part in parts if part.isdecimal())
    return WRONG_RELEASES[0] <= release <= WRONG_RELEASES[1] and model.startswith(WRONG_MODEL)


def remember_window(session_id: str, model: str, tokens: int) -> None:
    """Keep the size that the status line of a session was given. Raises `OSError` where it cannot be written."""
    remember(session_id, {"model": model, "tokens": tokens})


def remember(name: str, value: object) -> bool:
    """Keep a small value; return whether it differs from the one that is kept. Raises `OSError`."""
    path = _file(name)
    document = json.dumps(value)
    if path is None or _read(path) == document:
        return False
    folder = os.path.dirname(path)  # noqa: PTH120  # pathlib takes a third of the time of the interpreter
    os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103
    _delete_oldest(folder)
    written = f"{path}.{os.getpid()}"
    with open(written, "w", encoding="utf-8") as file:  # noqa: PTH123
        file.write(document)
    os.replace(written, path)  # noqa: PTH105
    return True


def window_in_status_line(session_id: str, model: str) -> int | None:
    """Return the size of *model*'s window that the session's status line was given; None without one."""
    path = _file(session_id)
    try:
        document: Any = json.loads((path and _read(path)) or "null")
    except ValueError:
        return None
    if not isinstance(document, dict) or str(document.get("model")).partition("[")[0] != model:
        return None
    tokens = document.get("tokens")
    return tokens if isinstance(tokens, int) and tokens > 0 else None


def _file(session_id: str) -> str | None:
    """Return the file of a session; None for an id that is not one of Claude Code."""
    if not session_id.replace("-", "").isalnum() or not session_id.isascii() or len(session_id) > 64:
        return None
    return os.path.join(user_folder(), FOLDER, session_id)  # noqa: PTH118


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123
            return file.read(1_000)
    except (OSError, ValueError):
        return None


def _delete_oldest(folder: str) -> None:
    files = sorted(os.scandir(folder), key=lambda file: file.stat().st_mtime)
    for file in files[: max(0, len(files) - MAXIMUM_FILES + 1)]:
        os.unlink(file.path)  # noqa: PTH108
