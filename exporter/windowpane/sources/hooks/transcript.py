"""The import of a transcript that a hook of Claude Code names, in a separate process."""

from __future__ import annotations

import json
import os
import sys

from windowpane.sources.hooks.failed_import import failure
from windowpane.sources.hooks.input import configured_store, read_document

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from typing import Any

SQLITE = b"SQLite format 3\0"
FIRST_EVENT = "SessionStart"


def import_named_transcript(store: str | None = None) -> None:
    """Import the transcript that standard input names; nothing fails, which would block the agent.

    The reason for a session that is not recorded is printed once per session, shown to the user and not sent to
    the model.
    """
    document = read_document()
    transcript = document.get("transcript_path")
    if not isinstance(transcript, str):
        return
    try:
        if problem := store_problem(configured_store(store)):
            message = f"Windowpane does not record this session: {problem}"
        else:
            problem = failure()
            message = f"Windowpane could not store what its last hook imported: {problem}"
            if os.path.isfile(transcript):  # noqa: PTH113
                start_import(transcript, store)
    except Exception as error:  # noqa: BLE001  # invalid settings, or no process can be started
        problem = str(error)
        message = f"Windowpane does not record this session: {problem}"
    if problem and _is_new(document, transcript, problem):
        sys.stdout.write(json.dumps({"systemMessage": message}) + "\n")


def store_problem(name: str) -> str:
    """Return why a hook cannot import into the store *name*, as far as it shows at once; empty if it may."""
    if name.startswith(("http://", "https://")):
        return (
            "the store is a server, and servers do not receive recordings yet, only events of `start()` and "
            "`observe()`; name the file of a store: windowpane hook install --write --store FILE"
        )
    if "://" in name:
        return ""
    try:
        with open(name, "r+b") as file:  # noqa: PTH123  # it has to be written to
            head = file.read(len(SQLITE))
    except FileNotFoundError:
        return ""  # the import creates it
    except OSError as error:
        return f"{name}: {error.strerror}"
    return f"{name} is not a store" if head and head != SQLITE else ""


def _is_new(document: dict[str, Any], transcript: str, problem: str) -> bool:
    """Return whether this session has not reported the problem; if that cannot be kept, whether it starts."""
    from hashlib import sha256

    from windowpane.sources.installed_agents.status_line_windows import remember

    session = sha256(str(document.get("session_id") or transcript).encode("utf-8", "replace")).hexdigest()
    try:
        return remember(session, problem)
    except OSError:
        return document.get("hook_event_name") == FIRST_EVENT


def start_import(transcript: str, store_file: str | None = None) -> subprocess.Popen[bytes]:
    """Start the import of one transcript, and of its sub-agents' beside it, without waiting for it."""
    import subprocess

    subagents = os.path.join(os.path.splitext(transcript)[0], "subagents")  # noqa: PTH118, PTH122
    paths = [transcript, subagents] if os.path.isdir(subagents) else [transcript]  # noqa: PTH112

    store = {} if store_file is None else {"WINDOWPANE_STORE": store_file}  # it may hold a password: no argument
    return subprocess.Popen(  # noqa: S603  # this program, and files that exist
        [sys.executable, "-P", "-m", "windowpane", "import", "--live", "--", *paths],  # -P: in any folder
        env={**os.environ, **store},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
