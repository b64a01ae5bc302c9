"""Priority: what a person said matters more than what a tool printed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from windowpane.core.vocabulary import ContentType
from windowpane.manager.snapshot import Item, Snapshot

STANDING: Final[dict[ContentType, float]] = {
    "system_prompt": 1.0,
    "user_message": 1.0,
    "tool_definition": 0.9,
    "summary": 0.9,
    "memory_injection": 0.7,
    "media": 0.6,
    "assistant_response": 0.5,
    "tool_call": 0.4,
    "tool_result": 0.3,
    "thinking": 0.2,
    "placeholder": 0.1,
}
"""Worth of a type of content, 0 to 1."""
ERROR_BONUS: Final = 0.2
"""A tool result that reports a failure is worth more: it says what not to try again."""


def priority(items: Sequence[Item], snapshot: Snapshot) -> Sequence[float | None]:
    """The worth of a block's type; failures count a little more than other results."""
    failed = {block_id for block_id, finding in snapshot.findings.items() if _is_failure(finding)}
    return [
        STANDING.get(item.block.content_type, 0.5) + (ERROR_BONUS if item.block.id in failed else 0.0)
        for item in items
    ]


def _is_failure(finding: str) -> bool:
    lowered = finding.lower()
    return "error" in lowered or "failed" in lowered or "exception" in lowered
