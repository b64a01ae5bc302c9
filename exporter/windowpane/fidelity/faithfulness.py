"""Faithfulness: the share of a replacement's own statements that nothing in the removed text speaks against.

Coverage measures what is missing, and a good summary omits most of a conversation; faithfulness measures
what is wrong. A faithful summary has close to 1 whatever its length.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import islice
from typing import Final, NamedTuple

from windowpane.core.window.blocks import Block
from windowpane.fidelity.statement_index import StatementIndex
from windowpane.fidelity.statements import EXACT_WEIGHT, Statement, is_prose, read_statement, units_of
from windowpane.fidelity.tokens import ALTERNATIVES, TOKEN, TOKEN_KINDS

MAXIMUM_CLAIMS: Final = 250
"""Statements of the replacement that are checked."""
AFFIRMED_MARGIN: Final = 0.4
"""Share of a statement's words by which a denial of what it affirms has to be closer than anything that agrees.

A sentence seldom repeats all that another one negates, so that a smaller difference proves little.
"""


class _Source(NamedTuple):
    """A text that a claim is held against, and how close each of its units is to the claim."""

    units: StatementIndex
    votes: Counter[int]

    def closeness(self, units: Iterable[int], term: str) -> int:
        """Return the weight that the closest of *units* shares with the claim, *term* itself not counted."""
        return max((self.votes[number] for number in units), default=0) - _weight(term)


def faithfulness(
    removed: Sequence[Block], prose: Sequence[Sequence[str]], visible: Sequence[Block], *, task: str = ""
) -> float | None:
    """Return the share of the replacement's statements that nothing speaks against; None without statements.

    A statement counts for nothing if it has a name that occurs nowhere, and for less the closer the evidence
    against one of its numbers or negations is: another sentence about the same that has another number or the
    opposite, where none that agrees is as close. Evidence are the sentences of the removed text, and those
    of the replacement itself. Without a replacement in sight everything visible is checked. *prose* has the units
    of each removed block; none for a block that is not prose.
    """
    is_checked = _is_replacement if any(map(_is_replacement, visible)) else is_prose
    claims = list(islice(_claims(block for block in visible if is_checked(block)), MAXIMUM_CLAIMS))
    if not claims:
        return None
    texts = [block.text for block in removed if block.text]
    texts += [block.text for block in visible if block.text and not is_checked(block)]
    invented = _invented(claims, "\n".join((*texts, task)))
    stated = StatementIndex(claims)
    for claim in claims:
        stated.add(claim.text, TOKEN.findall(claim.text))
    recorded = StatementIndex(claims)
    for sentences in prose:
        for sentence in sentences:
            recorded.add(sentence, TOKEN.findall(sentence))
    doubt = 0.0
    for number, claim in enumerate(claims):
        if claim.exact.isdisjoint(invented):
            others = stated.votes(claim)
            del others[number]
            doubt += _doubt(claim, [_Source(recorded, recorded.votes(claim)), _Source(stated, others)])
        else:
            doubt += 1.0
    return 1.0 - doubt / len(claims)


def _claims(blocks: Iterable[Block]) -> Iterator[Statement]:
    for block in blocks:
        for unit in units_of(block):
            statement = read_statement(unit)
            if statement is not None:
                yield statement


def _is_replacement(block: Block) -> bool:
    return bool(block.text) and (block.content_type == "summary" or bool(block.replaces))


def _invented(claims: Iterable[Statement], text: str) -> Set[str]:
    """Return the names of *claims* that *text* does not have; the words of `read/write` may be apart."""
    names = frozenset[str]().union(*(claim.exact for claim in claims))
    return {
        name
        for name in names
        if name not in text
        and not (ALTERNATIVES.fullmatch(name) and all(part.lower() in text for part in name.split("/")))
    }


def _doubt(claim: Statement, sources: Sequence[_Source]) -> float:
    """Return how much speaks against a statement, 0 to 1."""
    limit = AFFIRMED_MARGIN * claim.weight
    near = [(one.units, number) for one in sources for number, vote in one.votes.items() if vote > limit]
    denied = frozenset[str]().union(*(index.negated(number) for index, number in near))
    doubts = [_polarity_doubt(claim, word, sources) for word in claim.negated]
    affirmed = [_polarity_doubt(claim, word, sources) for word in (claim.terms & denied) - claim.negated]
    numbers = [_number_doubt(claim, term, sources) for term in claim.exact if TOKEN_KINDS[term] == "number"]
    return max((0.0, *doubts, *numbers, *(doubt for doubt in affirmed if doubt > AFFIRMED_MARGIN)))


def _polarity_doubt(claim: Statement, word: str, sources: Sequence[_Source]) -> float:
    """Return how much closer sentences with the other polarity of *word* are than those with its own."""
    own = other = 0
    for source in sources:
        having = source.units.having(word)
        agreeing = [number for number in having if _same_polarity(claim, word, source.units.negated(number))]
        own = max(own, source.closeness(agreeing, word))
        other = max(other, source.closeness(set(having).difference(agreeing), word))
    return (other - own) / claim.weight


def _same_polarity(claim: Statement, word: str, negated: Set[str]) -> bool:
    """Return whether a sentence that negates *negated* has the claim's polarity of *word*.

    A word that the claim does not have is negated in the place of a synonym.
    """
    if word in claim.negated:
        return word in negated or not negated <= claim.terms
    return word not in negated


def _number_doubt(claim: Statement, number: str, sources: Sequence[_Source]) -> float:
    """Return how much closer the claim is to sentences with another number than to those with *number*."""
    own = max(source.closeness(source.units.having(number), number) for source in sources)
    own = max(own, 0)
    other = 0
    for source in sources:
        for unit, vote in source.votes.items():
            if vote > max(own, other) and _has_another_number(source.units.statement(unit), claim, number):
                other = vote
    return (other - own) / claim.weight


def _has_another_number(read: Statement | None, claim: Statement, number: str) -> bool:
    if read is None or number in read.exact:
        return False
    return any(TOKEN_KINDS[term] == "number" for term in read.exact - claim.exact)


def _weight(term: str) -> int:
    return EXACT_WEIGHT if TOKEN_KINDS[term] in ("path", "identifier", "number") else 1
