"""Facts about a task's surroundings: working directory, checked-out commit, and files by content.

They are recorded in checkpoints and compared when a task is resumed. Only files are read; no command is run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

MAXIMUM_BYTES: Final = 64 * 1024 * 1024
"""Larger files are compared by size alone."""
ABSENT: Final = "absent"


class LocalEnvironment:
    """An `EnvironmentProbe` of this machine; relative paths are below *root*."""

    def __init__(self, root: Path | None = None) -> None:
        self._root = root

    def observe(self, paths: Sequence[str]) -> dict[str, str]:
        """Return facts by name: `folder`, `commit` and `branch` of a repository, and one for each path."""
        root = (self._root or Path.cwd()).resolve()
        facts = {"folder": str(root), **_repository(root)}
        for path in paths:
            facts[f"file {path}"] = _state(root / path)
        return facts


def _state(path: Path) -> str:
    try:
        if path.is_dir():
            return "folder"
        size = path.stat().st_size
        if size > MAXIMUM_BYTES:
            return f"{size} bytes"
        with path.open("rb") as file:
            return f"sha256 {hashlib.file_digest(file, 'sha256').hexdigest()}"
    except FileNotFoundError:
        return ABSENT
    except OSError as error:
        return f"unreadable ({type(error).__name__})"


def _repository(root: Path) -> dict[str, str]:
    """Return commit and branch of the git repository that *root* is in; empty without one."""
    for folder in (root, *root.parents):
        git = folder / ".git"
        if git.exists():
            break
    else:
        return {}
    try:
        if git.is_file():
            git = (folder / git.read_text(encoding="utf-8").strip().removeprefix("gitdir:").strip()).resolve()
        head = (git / "HEAD").read_text(encoding="utf-8").strip()
        if not head.startswith("ref:"):
            return {"commit": head}
        name = head.removeprefix("ref:").strip()
        facts = {"branch": name.removeprefix("refs/heads/")}
        commit = _commit(git, name)
    except (OSError, UnicodeDecodeError):
        return {}  # an unreadable repository counts as none
    return {**facts, "commit": commit} if commit else facts


def _commit(git: Path, name: str) -> str:
    """Return the commit of a reference: loose or packed, in a worktree's folder or the common one."""
    folders = [git]
    common = git / "commondir"
    if common.is_file():
        folders.append((git / common.read_text(encoding="utf-8").strip()).resolve())
    for folder in folders:
        loose = folder / name
        if loose.is_file():
            return loose.read_text(encoding="utf-8").strip()
        packed = folder / "packed-refs"
        if packed.is_file():
            for line in packed.read_text(encoding="utf-8").splitlines():
                if line.endswith(f" {name}"):
                    return line.split(" ", 1)[0]
    return ""
