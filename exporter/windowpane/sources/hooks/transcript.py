"""The import of a transcript that a hook of Claude Code names, in a separate process."""

from __future__ import annotations

import os
import sys

from windowpane.sources.hooks.input import read_document

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess


def import_named_transcript(store_file: str | None = None) -> None:
    """Import the transcript that standard input names; nothing is printed, and nothing fails.

    The output of a hook is sent to the model, and a failure blocks the agent.
    """
    transcript = read_document().get("transcript_path")
    try:
        if isinstance(transcript, str) and os.path.isfile(transcript):  # noqa: PTH113
            start_import(transcript, store_file)
    except (OSError, ValueError):  # the process cannot be started, or the path cannot be one
        return


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
