"""Coding agents as they are published on npm: the pinned releases, installed once in the user's cache."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
from pathlib import Path
from typing import Final

RELEASES: Final = {
    "claude": "@anthropic-ai/claude-code@2.1.332",
    "codex": "@openai/codex@0.171.0",
    "gemini": "@google/gemini-cli@0.61.0",
    "qwen": "@qwen-code/qwen-code@0.24.4",
    "opencode": "opencode-ai@1.18.33",
}
"""Each program with its package and release."""


class NotInstalledError(Exception):
    """npm is missing, or cannot install a program."""


def release(program: str) -> str:
    """Return the pinned release of a program."""
    return RELEASES[program].rpartition("@")[2]


def npm_program(program: str) -> Path:
    """Return the path of a program, installed alone in a folder of its release."""
    npm = shutil.which("npm")
    if npm is None:
        raise NotInstalledError("npm is not installed")
    package = RELEASES[program]
    key = hashlib.sha256(package.encode()).hexdigest()[:16]
    folder = Path.home() / ".cache" / "windowpane-tests" / f"npm-{key}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the tests run in several processes
        if not (folder / "complete").exists():
            done = subprocess.run(
                [npm, "install", "--silent", "--no-save", "--prefix", folder, package],
                cwd=folder, capture_output=True, text=True, check=False,
            )  # fmt: skip
            if done.returncode != 0:
                raise NotInstalledError(f"{package} cannot be installed: {done.stderr.strip()[-300:]}")
            (folder / "complete").touch()
    return folder / "node_modules" / ".bin" / program
