"""Compactions of everything: a new list that shares nothing but the system prompt with the one before.

Within a named session it is either the summary of its conversation or the first call of a sub-agent that has the
same system prompt. It is a summary only if it holds a text that a model generated in the session, as a summary
does, or a good part of the names of the conversation that it would replace.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from windowpane.models.wire.calls import ApiCall, is_system, message_blocks
from windowpane.sources.conversations.observer import WindowObserver

SUMMARY_MARKS: Final = (
    "This session is being continued from a previous conversation",  # Claude Code
    "<state_snapshot>",  # Gemini CLI, Qwen Code
)
"""Marks of the summary that known agents start a compacted conversation with."""
MINIMUM_TURNS: Final = 3
MINIMUM_SCORE: Final = 0.3
"""Share of the conversation's names that a summary has at least."""
SEARCHED_MESSAGES: Final = 4
"""Messages, from the first, that a summary is looked for in."""
SEARCHED_BLOCKS: Final = 100
DELEGATED_CHARACTERS: Final = 60
"""A sub-agent's task starts with as many characters of the tool call that delegates it."""


def opening_summary(call: ApiCall) -> str | None:
    """Return the summary that the first message of *call* holds, by the marks of known agents; else None."""
    first = next((message for message in call.messages if not is_system(message)), None)
    texts = (spec.text for spec in message_blocks(call.shape, first) if spec.text) if first is not None else ()
    return next((text for text in texts if any(mark in text for mark in SUMMARY_MARKS)), None)


def summarizes(call: ApiCall, observer: WindowObserver, generated: Iterable[str]) -> bool:
    """Return whether *call* is the conversation of *observer*, replaced by a summary.

    *generated* are the texts that models generated in the session.
    """
    texts = [
        spec.text
        for message in [one for one in call.messages if not is_system(one)][:SEARCHED_MESSAGES]
        for spec in message_blocks(call.shape, message)
        if spec.text
    ]
    if any(text in sent for text in generated for sent in texts):
        return True
    if not texts or observer.tracker.turn < MINIMUM_TURNS or _is_delegated(texts[0], observer):
        return False
    blocks = [block for block in observer.tracker.window if block.content_type != "system_prompt" and block.text]
    summary = "\n\n".join(texts)
    if len(summary) * 2 > sum(block.chars for block in blocks):
        return False

    from windowpane.fidelity.facts import blocks_of, names_kept  # few conversations are compacted

    score = names_kept(blocks[-SEARCHED_BLOCKS:], blocks_of(summary))
    return score is not None and score >= MINIMUM_SCORE


def _is_delegated(task: str, observer: WindowObserver) -> bool:
    """Return whether the last reply calls a tool with *task* as an argument."""
    start = json.dumps(task[:DELEGATED_CHARACTERS], ensure_ascii=False)[1:-1]
    return any(start in (spec.text or "") for spec in observer.reply if spec.content_type == "tool_call")
