"""Transcripts whose copied rows name the session that they came from, in the field `forkedFrom`.

A conversation that is sent to the background continues in a new file as well, which starts with a row of the
cause `fork_inherit`.
"""

from __future__ import annotations

import re
from typing import Any, Final

from windowpane.sources.transcripts.inherited import InheritedHistory
from windowpane.sources.transcripts.json_lines import mapping, text
from windowpane.sources.transcripts.transcript import Transcript

IS_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


_INHERITS: Final = "fork_inherit"


class ForkedTranscript(Transcript):
    """A transcript that may start with rows of another one, whose file beside it is the record of their calls."""

    _is_fork = False
    _inherits = False

    def _take(self, row: dict[str, Any]) -> None:
        origin = text(mapping(row["forkedFrom"]).get("sessionId")) if "forkedFrom" in row else ""
        if row.get("cause") == _INHERITS:
            self._inherits = True
        elif self._inherits and row.get("type") in ("user", "assistant"):
            self._inherits = False
            if not origin:
                self.report_copied("forkedFrom", "is not named")
        if origin and not self._is_fork:
            self._is_fork = True
            if IS_UUID.fullmatch(origin) and (self.path.parent / f"{origin}.jsonl").is_file():
                self.inherited = InheritedHistory(_is_copy)
            else:
                self.report_copied("forkedFrom", f"({origin[:64]}) is not there")
        super()._take(row)


def _is_copy(row: dict[str, Any]) -> bool:
    """Return whether a row was copied from another session, or is beside the conversation."""
    return "forkedFrom" in row or "uuid" not in row
