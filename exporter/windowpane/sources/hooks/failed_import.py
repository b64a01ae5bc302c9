"""The reason why the last import by a hook failed, which nothing showed: the hook had ended before."""

from __future__ import annotations

import os

from windowpane.config.user_folder import user_folder

FILE = "failed-hook-import"
MAXIMUM_CHARACTERS = 500


def failure() -> str:
    """Return the reason; empty where the last import succeeded."""
    try:
        with open(_file(), encoding="utf-8") as file:  # noqa: PTH123  # pathlib is slow
            return file.read(MAXIMUM_CHARACTERS)
    except (OSError, ValueError):
        return ""


def record(reason: str) -> None:
    """Keep the reason why an import failed; an empty one after a success."""
    from contextlib import suppress
    from pathlib import Path

    from windowpane.core.characters import plain
    from windowpane.effects.private_files import write_whole

    with suppress(OSError):
        if reason:
            write_whole(Path(_file()), plain(reason)[:MAXIMUM_CHARACTERS].encode("utf-8", "replace"))
        else:
            Path(_file()).unlink(missing_ok=True)


def _file() -> str:
    return os.path.join(user_folder(), FILE)  # noqa: PTH118
