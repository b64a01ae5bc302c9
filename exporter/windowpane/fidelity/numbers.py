"""Doubt about numbers: a text has another number beside the same word, and the number itself nowhere as close.

The numbers of all sentences are looked up by their value and by the words beside them. Tool output is only
searched for the numbers that no sentence supports, all of them in one pass.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, NamedTuple

from windowpane.fidelity.evidence import MINIMUM_COMMON, SUPPORT, UNSUPPORTED_WEIGHT
from windowpane.fidelity.statements import STEMS, STOPWORDS

CONTEXT: Final = 4
"""Words and numbers on each side of a number of which the words are its context."""
MARGIN: Final = 0.15
"""Counts and sums are as close to other numbers by chance."""
SHARPNESS: Final = 2.0
"""Doubt by how much closer another number is, beyond the margin."""
MAXIMUM_VALUES: Final = 10
"""Numbers beside a word from which they support no doubt."""
MAXIMUM_CHARACTERS: Final = 2_000
"""The numbers of a longer sentence are not read: it is pasted data."""
MAXIMUM_OCCURRENCES: Final = 10_000
"""Occurrences of a number in tool output that are looked at."""
LINE_CHARACTERS: Final = 50
"""Characters of a line on each side of a number in which its context is looked for."""

_DIGIT: Final = re.compile(r"\d")
_WORD: Final = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d]\w*")
"""Words and numbers; `10-minute`, `26-32` and `parser.py:12` are several."""
_LIST_NUMBER: Final = re.compile(r"\s*(?:[-*>#]+\s*)?(?:\*\*)?\d{1,3}[.)]\s")
_UNNAMED: Final = STOPWORDS | frozenset(
    re.findall(
        r"\w+",
        "a i is be been being am does do could should must might shall an to its any yet by of in on at as we so"
        " now it if or",
    )
)
"""Words that name nothing a number could count or measure."""


class _Number(NamedTuple):
    """A number in a sentence."""

    value: str
    before: str
    """The word or number before it; empty at the start."""
    after: str
    context: frozenset[str]
    sentence: int
    """The sentence of the replacement that has it; -1 for the removed text."""

    def closeness(self, common: int) -> float:
        """Return how close a context is that has so many words of this one's."""
        return common / (len(self.context) + 0.5)


class _Occurrences:
    """Numbers, looked up by their value and by the words beside them."""

    def __init__(self, numbers: Iterable[_Number]) -> None:
        self.of_value: dict[str, list[_Number]] = defaultdict(list)
        self.after_word: dict[str, list[_Number]] = defaultdict(list)
        self.before_word: dict[str, list[_Number]] = defaultdict(list)
        for number in numbers:
            self.of_value[number.value].append(number)
            self.after_word[number.before].append(number)
            self.before_word[number.after].append(number)


@dataclass(slots=True)
class _Evidence:
    """The evidence for and against a number of a claim."""

    number: _Number
    other: float
    """Closeness of the context of another number beside the same word."""
    support: float
    """Closeness of the context of the number itself where it is closest."""

    @property
    def enough(self) -> float:
        """The support from which there is no doubt."""
        return max(SUPPORT, self.other - MARGIN)

    @property
    def doubt(self) -> float:
        """The doubt about the number."""
        contradicted = max(0.0, self.other - self.support - MARGIN)
        return SHARPNESS * contradicted + UNSUPPORTED_WEIGHT * max(0.0, SUPPORT - self.support)


def number_doubts(
    claims: Sequence[str], *, others: Iterable[str], recorded: Iterable[str], lines: str
) -> Sequence[float]:
    """Return how much speaks against the numbers of each claim, 0 to 1.

    *recorded* are the sentences of the removed text, which support numbers and speak against them. *others* are
    sentences of the replacement that are not checked: they and the claims only support numbers, since a summary
    lists different numbers in the same words. So does *lines*, the text that is not prose, in lower case.
    """
    stated = [number for at, text in enumerate(chain(claims, others)) for number in _numbers(text, at)]
    checked = [number for number in stated if number.sentence < len(claims) and number.context]
    if not checked:
        return [0.0] * len(claims)
    own, removed = (
        _Occurrences(stated),
        _Occurrences(number for text in recorded for number in _numbers(text, -1)),
    )
    evidence = [_evidence(number, own, removed) for number in checked]
    _search(lines, [one for one in evidence if one.support < one.enough])
    doubts = [0.0] * len(claims)
    for one in evidence:
        doubts[one.number.sentence] += one.doubt
    return [min(1.0, doubt) for doubt in doubts]


def _numbers(text: str, sentence: int) -> list[_Number]:
    """Return the numbers of a sentence, without the one that numbers a list."""
    if not _DIGIT.search(text):
        return []
    words = [
        word if word[0].isdecimal() else STEMS[word]
        for word in _WORD.findall(text[:MAXIMUM_CHARACTERS])
        if word.lower() not in _UNNAMED
    ]
    numbers = []
    for at, word in enumerate(words):
        if not word[0].isdecimal() or (at == 0 and _LIST_NUMBER.match(text)):
            continue
        around = words[max(0, at - CONTEXT) : at + CONTEXT + 1]
        numbers.append(
            _Number(
                word,
                words[at - 1] if at else "",
                words[at + 1] if at + 1 < len(words) else "",
                frozenset(one for one in around if not one[0].isdecimal()),
                sentence,
            )
        )
    return numbers


def _evidence(number: _Number, own: _Occurrences, removed: _Occurrences) -> _Evidence:
    same = [
        one
        for source in (own, removed)
        for one in source.of_value.get(number.value, ())
        if one.sentence != number.sentence
    ]
    common = max((len(number.context & one.context) for one in same), default=0)
    return _Evidence(number, _other(number, same, own, removed), number.closeness(common))


def _other(number: _Number, same: Sequence[_Number], own: _Occurrences, removed: _Occurrences) -> float:
    """Return how close the context of another number beside the same word is.

    None speaks against a number that is beside both of its words elsewhere, or whose words have many numbers.
    """
    before, after = number.before, number.after
    following = removed.after_word.get(before, ()) if before else ()
    preceding = removed.before_word.get(after, ()) if after else ()
    is_new_after = all(one.before != before for one in same) and _is_telling(following, own.after_word[before])
    is_new_before = all(one.after != after for one in same) and _is_telling(preceding, own.before_word[after])
    if not ((before and is_new_after) or (after and is_new_before)):
        return 0.0
    others = (one for one in chain(following, preceding) if one.value != number.value)
    common = max((len(number.context & one.context) for one in others), default=0)
    return number.closeness(common) if common >= MINIMUM_COMMON else 0.0


def _is_telling(*numbers: Sequence[_Number]) -> bool:
    """Return whether the numbers beside a word are few; those after `line` all differ, so one more is usual."""
    return len({one.value for one in chain.from_iterable(numbers)}) <= MAXIMUM_VALUES


def _search(lowered: str, wanted: Sequence[_Evidence]) -> None:
    """Add the support of a text's lines to the evidence, as far as it needs."""
    if not wanted:
        return
    by_value: dict[str, list[_Evidence]] = defaultdict(list)
    for one in wanted:
        by_value[one.number.value].append(one)
    values = sorted(by_value, key=len, reverse=True)
    pattern = re.compile(f"(?:{'|'.join(map(re.escape, values))})(?![\\d_])")
    occurrences: Counter[str] = Counter()
    for match in pattern.finditer(lowered):
        value = match.group()
        unsupported = by_value[value]
        at, end = match.span()
        if not unsupported or lowered[at - 1 : at].isalnum():
            continue
        occurrences[value] += 1
        start = max(lowered.rfind("\n", max(0, at - LINE_CHARACTERS), at), at - LINE_CHARACTERS, 0)
        stop = lowered.find("\n", end, end + LINE_CHARACTERS)
        stop = stop if stop >= 0 else end + LINE_CHARACTERS
        for one in unsupported:
            common = sum(lowered.find(word, start, stop) >= 0 for word in one.number.context)
            one.support = max(one.support, one.number.closeness(common))
        if occurrences[value] >= MAXIMUM_OCCURRENCES:
            by_value[value] = []
        elif any(one.support >= one.enough for one in unsupported):
            by_value[value] = [one for one in unsupported if one.support < one.enough]
