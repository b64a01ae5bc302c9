"""Statements: the sentences of the user and the model that a summary without a model repeats word for word.

Messages are a small part of a long session, among tens of thousands of tokens of tool calls and results, and they
record what was decided, why, and what remains.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from windowpane.core.window.blocks import Block
from windowpane.fidelity.authorship import authored
from windowpane.fidelity.languages import DECISION, REASON
from windowpane.fidelity.passages import sentences

MAXIMUM_CHARACTERS: Final = 240
"""Start of a sentence that is repeated."""
MINIMUM_CHARACTERS: Final = 20
"""A shorter sentence, such as a heading, states nothing by itself."""
MESSAGE_CHARACTERS: Final = 20_000
"""Start of one message that is read: a longer one is pasted."""
_CHOICE: Final = re.compile(r"\b(?:instead of|rather than|root cause|turn(?:s|ed) out)\b", re.IGNORECASE)
_OPEN: Final = re.compile(
    r"(?:[-*+] )?\[ \]"
    r"|\b(?:to-?do|next(?: steps?)?|remain(?:s|ing)|still|not yet|yet to|follow-?up|pending|blocked)\b",
    re.IGNORECASE,
)
_MARKS: Final = re.compile(r"^(?:[#>\s]|[-*+]\s)+")
"""Marks of headings, quotations and lists."""


class Statements(NamedTuple):
    """Sentences by what they state, oldest first, each once."""

    decisions: Sequence[str] = ()
    """Choices with or without their reason, and reasons of anything else."""
    open_work: Sequence[str] = ()
    other: Sequence[str] = ()
    """Everything else that the model wrote."""


NO_STATEMENTS: Final = Statements()


def statements_of(blocks: Sequence[Block]) -> Statements:
    """Return the statements in the messages among *blocks*; one that is repeated counts where it is last."""
    decisions: dict[str, None] = {}
    open_work: dict[str, None] = {}
    other: dict[str, None] = {}
    for one in authored(blocks):
        for sentence in sentences(one.text[:MESSAGE_CHARACTERS]):
            line = _MARKS.sub("", sentence)[:MAXIMUM_CHARACTERS].rstrip()
            if len(line) < MINIMUM_CHARACTERS:
                continue
            if DECISION.search(line) or REASON.search(line) or _CHOICE.search(line):
                kind = decisions
            elif _OPEN.search(sentence):
                kind = open_work
            elif one.author == "model":
                kind = other
            else:
                continue
            kind.pop(line, None)
            kind[line] = None
    return Statements([*decisions], [*open_work], [*other])


def is_reasoned(line: str) -> bool:
    """Return whether a line states a decision with its reason."""
    return DECISION.search(line) is not None and REASON.search(line) is not None


def is_open_item(line: str) -> bool:
    """Return whether a line is an item of open work, and not a sentence that mentions some."""
    return _OPEN.match(line) is not None
