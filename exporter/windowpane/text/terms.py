"""The terms that a new reader may not know, each with one sentence: the same on pages, in reports and docs."""

from __future__ import annotations

from typing import Final

TERMS: Final[dict[str, str]] = {
    "turn": "one call of the model with all that was added for it; one message of yours can take many",
    "live": "it has not ended, and its last event is at most 15 minutes old",
    "yellow, orange, red": "how full the window is; the chart shows where each starts",
    "overflow": "a call that does not fit the window with room for its reply",
    "item": "one message, tool call, tool result or definition in the window; events and metrics call it a block",
    "compaction": "content was replaced by less content, mostly by a summary",
    "fact": "a rule, request, decision, open item, failed command or file in content that was removed",
    "needed again": "removed content that the agent fetched, added or named again within 20 turns",
    "cache break": "a call that sent more than half of what the prompt cache held as new input",
    "rules visible": "standing instructions that the model still sees, of all that were recognized",
    "firing": "the alert's condition is true now, in a live session",
    "memory and skills": "content that the agent adds by itself: CLAUDE.md, skills, commands",
    "not in the recording": "what was sent without its text, usually the system prompt and tool definitions",
    "chain": "each event has the hash of the one before it, so that a change shows",
    "≈": "estimated; – is unknown",
}


ON_PAGES: Final[dict[str, tuple[str, ...]]] = {
    "fleet": ("live", "turn", "yellow, orange, red", "compaction", "≈"),
    "session": (
        "turn", "yellow, orange, red", "overflow", "memory and skills", "not in the recording", "compaction",
        "fact", "needed again", "cache break", "≈",
    ),
    "compare": ("compaction", "overflow", "fact", "needed again"),
    "trends": ("compaction", "fact", "≈"),
    "replay": ("compaction", "overflow", "needed again", "rules visible"),
    "alerts": ("firing", "live", "yellow, orange, red", "overflow"),
    "audit": ("chain",),
}  # fmt: skip
"""The terms of each page of the dashboard."""


def explain(page: str) -> str | None:
    """Return a Markdown line for each of the terms of a page; None without any."""
    return "  \n".join(f"**{term}**: {TERMS[term]}." for term in ON_PAGES.get(page, ())) or None


def terms_table() -> str:
    """Return the terms as a table of the documentation."""
    return "\n".join(
        ["| term | meaning |", "|---|---|", *(f"| {name} | {text} |" for name, text in TERMS.items())]
    )
