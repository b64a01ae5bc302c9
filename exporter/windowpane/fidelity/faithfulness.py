"""Faithfulness: the share of a replacement's own statements that nothing in the removed text contradicts.

Coverage measures what is missing, and a good summary omits most of a conversation; faithfulness measures
what is wrong. A faithful summary has close to 1 whatever its length.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import chain, islice
from typing import Final

from windowpane.core.window.blocks import Block
from windowpane.fidelity.evidence import Evidence
from windowpane.fidelity.facts import FactFinder
from windowpane.fidelity.numbers import number_doubt
from windowpane.fidelity.polarity import polarity_doubt
from windowpane.fidelity.statement_index import Work
from windowpane.fidelity.statements import Statement, is_prose, read_statement, units_of
from windowpane.fidelity.tokens import ALTERNATIVES

MAXIMUM_CLAIMS: Final = 250
"""Statements of the replacement that are checked."""
COMPOSED_DOUBT: Final = 0.25
"""Doubt about a name that occurs nowhere but whose parts all do: often one that is planned, or is made of two."""

_FRAME: Final = re.compile(
    r"This session is being continued from a previous conversation"
    r"|If you need specific details from before compaction"
    r"|ontinue the conversation from where (?:it|we) left"
)
"""Sentences that Claude Code writes around each summary."""
_NAME_PART: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")


def faithfulness(
    removed: Sequence[Block],
    prose: Sequence[Sequence[str]],
    visible: Sequence[Block],
    finder: FactFinder,
    *,
    work: Work,
    task: str = "",
) -> float | None:
    """Return the share of the replacement's statements that nothing contradicts; None without statements.

    A statement counts for nothing if it has a name that occurs nowhere, and for less the closer the evidence
    against one of its numbers or negations is: another sentence about the same that has another number or the
    opposite, where none that agrees is as close. Evidence are the sentences of the removed text, and those
    of the replacement itself. Without a visible replacement everything visible is checked. *prose* has the units
    of each removed block; none for a block that is not prose. *finder* has read the removed text.
    As many statements are checked as *work* allows.
    """
    is_checked = _is_replacement if any(map(_is_replacement, visible)) else is_prose
    claims = list(islice(_claims(block for block in visible if is_checked(block)), MAXIMUM_CLAIMS))
    if not claims:
        return None
    stated = Evidence(claims, (claim.text for claim in claims), work)
    recorded = Evidence(claims, chain.from_iterable(prose), work)
    texts = [block.text for block in removed if block.text]
    texts += [block.text for block in visible if block.text and not is_checked(block)]
    names = {name for claim in claims for name in claim.exact if not finder.has(name)}
    invented = _invented(names, "\n".join((*texts, task)))
    lines = "\n".join(block.text for block in removed if block.text and not is_prose(block)).lower()
    doubt, checked = 0.0, 0
    for number, claim in enumerate(claims):
        sources = (recorded.near(claim, None), stated.near(claim, number))
        own = max(
            max((invented.pop(name, 0.0) for name in claim.exact), default=0.0),
            polarity_doubt(claim.text, sources),
            number_doubt(claim.text, sources, lines, work),
        )
        if work.is_used_up():
            break
        doubt += own
        checked += 1
    return 1.0 - doubt / checked if checked else None


def _claims(blocks: Iterable[Block]) -> Iterator[Statement]:
    for block in blocks:
        for unit in units_of(block):
            statement = None if _FRAME.search(unit) else read_statement(unit)
            if statement is not None:
                yield statement


def _is_replacement(block: Block) -> bool:
    return bool(block.text) and (block.content_type == "summary" or bool(block.replaces))


def _invented(names: Set[str], text: str) -> dict[str, float]:
    """Return the doubt about each name that *text* does not have; the words of `read/write` may be apart."""
    missing = [name for name in names if name not in text]
    if not missing:
        return {}
    lowered = text.lower()
    doubts = {}
    for name in missing:
        is_composed = all(part.lower() in lowered for part in _NAME_PART.findall(name))
        is_alternatives = ALTERNATIVES.fullmatch(name) is not None
        if not (is_composed and is_alternatives):
            doubts[name] = COMPOSED_DOUBT if is_composed or is_alternatives else 1.0
    return doubts
