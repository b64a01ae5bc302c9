"""Scenarios of other systems that do not apply to this engine, and why."""

from __future__ import annotations

from typing import Final

NOT_APPLICABLE: Final[dict[int, str]] = {
    128: (
        "Letta refuses to compact fewer than four messages. Few huge messages are what overflows, so here no "
        "count stops a compaction: the accept gate asks for progress instead, and one message is never cut."
    ),
}
