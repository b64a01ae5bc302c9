"""The import of one session that is opened before it is stored, by the command in a separate process."""

from __future__ import annotations

import logging
import subprocess
import sys
from typing import Final

IMPORT_SECONDS: Final = 120.0
_COMMAND: Final = (sys.executable, "-P", "-m", "windowpane", "import", "--json")

_log: Final = logging.getLogger(__name__)


def import_session(session_id: str) -> bool:
    """Import the recording of a session on this machine into the store; return whether there is one."""
    try:
        done = subprocess.run(  # noqa: S603  # our own program
            (*_COMMAND, f"--session={session_id}"), capture_output=True, timeout=IMPORT_SECONDS, check=False
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        _log.warning("the recording of a session cannot be imported", exc_info=True)
        return False
    return done.returncode == 0
