"""The file beside a sub-agent's recording that describes it, as Claude Code and Qwen Code write it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from windowpane.sources.transcripts.json_document import parse_embedded
from windowpane.sources.transcripts.json_lines import mapping

SUFFIX: Final = ".meta.json"
MAXIMUM_BYTES: Final = 256 * 1024
_ENDED: Final = frozenset({"completed", "failed", "cancelled"})


def description_of(recording: Path) -> dict[str, Any]:
    """Return the description of the sub-agent; empty if none can be read."""
    try:
        with recording.with_suffix(SUFFIX).open("rb") as file:
            return mapping(parse_embedded(file.read(MAXIMUM_BYTES).decode(errors="replace")))
    except OSError:
        return {}


def has_ended(recording: Path) -> bool:
    """Return whether the file states that the sub-agent has ended, as Qwen Code's does."""
    return description_of(recording).get("status") in _ENDED
