"""Statements: the sentences and lines of a text, with what decides whether two of them agree.

A statement is compared by its significant words, reduced to their stems, so that light rewording changes little;
the cue that makes it a decision or a constraint is not one of them. Names and numbers are compared letter by
letter, and so are the words that it negates. Lines that a formatter has wrapped are joined first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from windowpane.core.remembered import Remembered
from windowpane.core.window.blocks import Block
from windowpane.fidelity.facts import PROSE_TYPES
from windowpane.fidelity.tokens import STOPWORDS as COMMON
from windowpane.fidelity.tokens import TOKEN, TOKEN_KINDS

MINIMUM_TERMS: Final = 3
"""Shorter statements, such as headings and list labels, state nothing that could be compared."""
MAXIMUM_CHARACTERS: Final = 400
"""A longer statement is cut here: minified code and pasted data are not sentences."""
NEGATION_REACH: Final = 4
"""A negation applies to the first significant word among so many that follow it."""
MATCH: Final = 0.55
"""Share of a statement's words, names counted double, from which another text is about the same."""
EXACT_WEIGHT: Final = 2

_ITEM: Final = re.compile(r"\s*(?:[-*+>#|•]|\d{1,3}[.)]\s|```|$)")
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])[\"')\]*]*\s+(?=[\"'(\[*`]*[A-Z0-9`])")
_OPEN_ENDS: Final = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be because but by for from has have if in into is it its not of on or our so than"
        " that the their then this to was we were when which while who will with would you your",
    )
)
"""Words that end no sentence: the line after them continues it."""
WRAPPED_CHARACTERS: Final = 30
"""A shorter line was not wrapped."""
NEGATIONS: Final = frozenset({"not", "no", "never", "cannot", "without", "neither", "nor", "none", "unable"})
SHORT_NOT: Final = re.compile(r"n['’]t\b")
NEGATION: Final = re.compile(rf"(?i)\b(?:{'|'.join(sorted(NEGATIONS))})\b|{SHORT_NOT.pattern}")
"""A word that negates."""
STOPWORDS: Final = COMMON | frozenset(
    re.findall(
        r"\w+",
        "all and any are but can did for had has her him his how its let may our she the use used uses using was"
        " who why you",
    )
)
MINIMUM_STEM: Final = 3
_SUFFIXES: Final = (
    "ations", "ation", "ments", "ment", "ings", "ing", "ers", "ied", "ies", "ed", "es", "er", "s", "e",
)  # fmt: skip


class Statement(NamedTuple):
    """The terms of a sentence or line that it is compared by."""

    text: str
    words: frozenset[str]
    """Stems of its significant words."""
    exact: frozenset[str]
    """Its names and numbers."""
    negated: frozenset[str]
    """Stems of the words that it negates."""

    @property
    def terms(self) -> frozenset[str]:
        """Its words, names and numbers."""
        return self.words | self.exact

    @property
    def weight(self) -> int:
        """The sum of its words, names and numbers counted double."""
        return len(self.words) + EXACT_WEIGHT * len(self.exact)

    def common(self, other: Statement) -> int:
        """Return the weight of the words that *other* has too."""
        return len(self.words & other.words) + EXACT_WEIGHT * len(self.exact & other.exact)

    def matches(self, other: Statement) -> bool:
        """Return whether *other* is about the same: it has the share `MATCH` of the words."""
        return self.common(other) >= MATCH * self.weight


def is_prose(block: Block) -> bool:
    """Return whether a person or the model wrote a block as prose."""
    return block.content_type in PROSE_TYPES


def units_of(block: Block) -> Iterable[str]:
    """Return the units of a block: sentences of prose, lines of anything else."""
    text = block.text or ""
    if is_prose(block):
        return units(text)
    return (text.replace("\\n", "\n") if block.content_type == "tool_call" else text).split("\n")


def units(text: str) -> Iterator[str]:
    """Yield the sentences of *text*, and its lines where they are not sentences; wrapped lines are joined."""
    for line in unwrapped(text):
        if line and not line.isspace():
            yield from (part for part in _SENTENCE_END.split(line) if part)


def unwrapped(text: str) -> Iterator[str]:
    """Yield the lines of *text* with those joined that a formatter has wrapped."""
    current = ""
    for line in text.split("\n"):
        if current and _continues(current, line):
            current = f"{current.rstrip()} {line.strip()}"
            continue
        if current:
            yield current
        current = line
    if current:
        yield current


def _continues(line: str, following: str) -> bool:
    """Return whether *following* continues *line*: it starts no item, and the line before it did not end."""
    if len(line) < WRAPPED_CHARACTERS or _ITEM.match(following) or line.lstrip().startswith(("#", "|")):
        return False
    end = line.rstrip()
    if end[-1:] in ".!?:;{}":
        return False
    first = following.lstrip()[:1]
    return not first.isupper() or end[-1:] == "," or end.rsplit(" ", 1)[-1].lower() in _OPEN_ENDS


@lru_cache(maxsize=4_096)
def read_statement(text: str) -> Statement | None:
    """Return what *text* is compared by; None if it has too few significant words."""
    text = text[:MAXIMUM_CHARACTERS]
    words: set[str] = set()
    exact: set[str] = set()
    negated: set[str] = set()
    reach = 0
    for role, term in map(_ROLES.__getitem__, TOKEN.findall(SHORT_NOT.sub(" not", text))):
        if role == "other":
            reach = max(0, reach - 1)
        elif role == "negation":
            reach = 0 if reach else NEGATION_REACH
        else:
            (words if role == "word" else exact).add(term)
            if reach:
                negated.add(term)
                reach = 0
    if len(words) + len(exact) < MINIMUM_TERMS:
        return None
    return Statement(text, frozenset(words), frozenset(exact), frozenset(negated))


class _Role(NamedTuple):
    """The part of a token in a statement, and the term that it is compared as."""

    role: Literal["exact", "word", "negation", "other"]
    term: str


def _role_of(token: str) -> _Role:
    kind = TOKEN_KINDS[token]
    if kind in ("path", "identifier", "number"):
        return _Role("exact", token)
    word = token.lower()
    if word in NEGATIONS:
        return _Role("negation", word)
    if len(word) < 3 or kind is not None or word in STOPWORDS or not word[0].isalnum():
        return _Role("other", word)
    return _Role("word", STEMS[token])


_ROLES: Final = Remembered(_role_of)


def states_nothing(text: str) -> bool:
    """Return whether *text* has neither a name or number nor a sentence: `ok`, `Done.`, `I understand`."""
    if any(TOKEN_KINDS[token] in ("path", "identifier", "number", "error") for token in TOKEN.findall(text)):
        return False
    return not any(read_statement(unit) for unit in units(text))


def stem(word: str) -> str:
    """Return *word* without the endings that inflection changes, at most two, and with at least three letters."""
    for _ in range(2):
        for suffix in _SUFFIXES:
            if word.endswith(suffix) and len(word) - len(suffix) >= MINIMUM_STEM:
                word = word[: -len(suffix)]
                break
    return word[:-1] if len(word) > MINIMUM_STEM and word[-1] == word[-2] else word


STEMS: Final[Remembered[str, str]] = Remembered(lambda word: stem(word.lower()))


def contradicts(one: Statement, other: Statement) -> bool:
    """Return whether one of two sentences about the same negates a word that the other states.

    Not where the other negates a synonym in its place: a word that the first does not have.
    """
    return _denies(one, other, other.negated - one.terms) or _denies(other, one, one.negated - other.terms)


def denies(one: Statement, other: Statement) -> bool:
    """Return whether one of two texts about the same negates a word that the other states."""
    return _denies(one, other) or _denies(other, one)


def _denies(one: Statement, other: Statement, synonyms: frozenset[str] = frozenset()) -> bool:
    return len(one.negated & (other.terms - other.negated)) > len(synonyms)
