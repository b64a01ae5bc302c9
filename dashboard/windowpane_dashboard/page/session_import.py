"""The import of one session that is opened before it is stored, by the command in a separate process."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from typing import Final

from windowpane.config.paths import default_store, local_base
from windowpane.sources.imports.noted_outlines import outlined_sessions

OPENED: Final = "opened_unread_session"
"""Key of the session whose recording the visitor asked to read; an address alone imports nothing."""
IMPORT_SECONDS: Final = 120.0
_COMMAND: Final = (sys.executable, "-P", "-m", "windowpane", "import", "--json")

_log: Final = logging.getLogger(__name__)


def import_session(session_id: str) -> str:
    """Import the recording of a session on this machine into the store; return why its file cannot be read."""
    outlined = outlined_sessions(local_base(default_store()))
    file = next((one.file for one in outlined if one.session_id == session_id), None)
    recording = (f"--session={session_id}",) if file is None else ("--", file)
    try:
        done = subprocess.run(  # noqa: S603  # our own program
            (*_COMMAND, *recording), capture_output=True, timeout=IMPORT_SECONDS, check=False
        )
        if not done.stdout:  # no file of this name
            return "" if file is None else f"{file}: cannot be read"
        reports = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        _log.warning("the recording of a session cannot be imported", exc_info=True)
        return ""
    return next((f"{report['file']}: {report['error']}" for report in reports if report["error"]), "")
