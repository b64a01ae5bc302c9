"""Text for a model after a compaction: the rules of its user, and work that was open.

Only what the user typed and the model wrote is given back, marked as recorded. Instructions of the system prompt
and of memory files are not: the agents' programs send those again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Final

from windowpane.core.characters import plain
from windowpane.core.window.blocks import Block
from windowpane.core.window_tools import marked
from windowpane.fidelity.rule_comparison import ComparedText
from windowpane.fidelity.rules import find_rules
from windowpane.fidelity.situation import open_work

MAXIMUM_TOKENS: Final = 500
OPEN_WORK_TOKENS: Final = 150
"""Of them for open work, if there are rules too."""
_HEAD: Final = (
    "Added by Windowpane after the compaction from the recorded session; the summary may contain it too."
)
_RULES: Final = "Standing instructions that your user typed, verbatim:"
_OPEN_WORK: Final = "Work that you or your user listed as open before the compaction:"


def given_back(
    conversation: Sequence[Block], removed: Sequence[Block], visible: Sequence[Block], count: Callable[[str], int]
) -> str:
    """Return at most `MAXIMUM_TOKENS` for the model; empty if nothing is missing.

    *conversation* is the content of the whole session, *removed* what its last compaction removed, *visible* what
    is known of the window after it. *count* returns the tokens of a text.
    """
    seen = ComparedText(block.text or "" for block in visible)
    rules = [
        rule.text for rule in find_rules(conversation) if rule.source == "user" and not _states(seen, rule.text)
    ]
    work = [line for line in open_work(removed) if not _states(seen, line)]
    remaining = MAXIMUM_TOKENS - sum(map(count, (marked("", _HEAD), _RULES, _OPEN_WORK)))
    listed_work = _latest(work, min(remaining, OPEN_WORK_TOKENS) if rules else remaining, count)
    listed_rules = _latest(rules, remaining - sum(map(count, listed_work)), count)
    sections = [[title, *lines] for title, lines in ((_RULES, listed_rules), (_OPEN_WORK, listed_work)) if lines]
    return marked("\n".join(chain(*sections)), _HEAD) if sections else ""


def _states(text: ComparedText, sentence: str) -> bool:
    return text.match(sentence).match in ("verbatim", "reworded")


def _latest(sentences: Sequence[str], tokens: int, count: Callable[[str], int]) -> list[str]:
    """Return the latest lines that have at most *tokens* together, in order."""
    listed: list[str] = []
    for line in (f"- {plain(' '.join(sentence.split()))}" for sentence in reversed(sentences)):
        tokens -= count(line) + 1
        if tokens < 0:
            break
        listed.append(line)
    return listed[::-1]
