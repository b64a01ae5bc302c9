"""Passages: a text as a sequence of terms, so that wrapping and joining of lines change nothing.

A term is a number, a name (path, identifier, option) or the stem of a significant word; of Chinese and Japanese,
which write no spaces, each pair of characters. A passage is looked up as the span of another text with most of
its terms, wherever lines and sentences end there.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final, Literal, NamedTuple

from windowpane.core.remembered import Remembered
from windowpane.core.vocabulary import ContentType
from windowpane.fidelity.languages import CJK_FUNCTION, NEGATIONS, NUMBER_WORDS, STOPWORDS, stem, vocabulary_of

Kind = Literal["word", "number", "name", "negation", "other"]

MESSAGE_TYPES: Final[frozenset[ContentType]] = frozenset({"user_message", "assistant_response"})
PROSE_TYPES: Final[frozenset[ContentType]] = MESSAGE_TYPES | {"thinking", "summary", "memory_injection"}
"""Content that a person or the model wrote as prose."""
WRITTEN_TYPES: Final = PROSE_TYPES | {"tool_call"}
MAXIMUM_CHARACTERS: Final = 400
"""A longer sentence is cut here: minified code and pasted data are not sentences."""
MAXIMUM_POSITIONS: Final = 64
"""Positions at which one term is looked up; a term in more places is not distinctive."""
EXACT_WEIGHT: Final = 2
"""Weight of a name or number; a word or a single digit has 1."""
SLACK: Final = 6
"""Terms that a span may have beyond those of the passage: words that a rewording adds."""
_CJK: Final = "\u3005\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_W: Final = f"[^\\W{_CJK}]"
TOKEN: Final = re.compile(
    rf"[{_CJK}]{{1,40}}|(?:[-./~$@+]{{0,3}}){_W}++(?:(?:[-./@~+:'’]{{1,2}}|(?<=\d),(?=\d)){_W}++)*+%?"
)
NUMBER: Final = re.compile(r"[-+~$€£]?(\d[\d.,'’]*)(?:%|[A-Za-zµ]{0,3})")
_GROUPED: Final = re.compile(r"\d{1,3}(?:[,.'’]\d{3})+")
MAXIMUM_NAME: Final = 200
_CJK_RUN: Final = re.compile(f"[{_CJK}]")
_CJK_NEGATION: Final = re.compile(
    f"({'|'.join(sorted(filter(_CJK_RUN.match, NEGATIONS), key=len, reverse=True))})"
)
_ELISION: Final = re.compile(r"^(?:qu|[cdjlmnst])['’](?=\w{2})", re.IGNORECASE)
"""Of French, as in `l'option` and `n'utilise`."""
_DOTTED: Final = re.compile(r"\w\.[A-Za-z]|\d[.:-]\d")
_ALTERNATIVES: Final = vocabulary_of("alternatives")
_ITEM: Final = re.compile(r"\s*(?:[-*+>#|•]\s?|\d{1,3}[.)]\s|```|$)")
_SENTENCE_END: Final = re.compile(
    r"(?<=[.!?])[\"')\]*`]*\s+(?=[\"'(\[*`¿¡]*[^\W\d_a-z]|[\"'(\[*`]*\d)|(?<=[。！？])"
)
WRAPPED_CHARACTERS: Final = 30
"""A shorter line was not wrapped."""
_CLAUSE_END: Final = re.compile(
    r"[.;:!?](?=\s|$)|[。；！？，、：—]|,(?=\s)|\n\s*(?:[-*+>#|•]\s|\d{1,3}[.)]\s|\n)|\s[–—-]\s"
)
_BREAK: Final = re.compile(r"\n|[.;] |[。；]")
AROUND: Final = 160
"""Characters around a span in which its sentence is looked for."""
MAXIMUM_SPANS: Final = 10
"""Spans of a text that a passage is compared with."""


class Span(NamedTuple):
    """Positions of terms, from and to, and the share of a passage's terms that are there."""

    start: int
    end: int
    share: float


class Term(NamedTuple):
    """A term with its place in the text."""

    text: str
    kind: Kind
    start: int
    end: int


def _read_token(token: str) -> tuple[str, Kind]:
    if len(token) > MAXIMUM_NAME:
        return token[:MAXIMUM_NAME], "other"
    number = NUMBER.fullmatch(token)
    if number is None and (count := NUMBER_WORDS.get(token.casefold())):
        return str(count), "number"
    if number is not None:
        digits = number[1].rstrip(".,'’")
        return re.sub(r"\D", "", digits) if _GROUPED.fullmatch(digits) else digits, "number"
    bare = _ELISION.sub("", token.rstrip("./:-'’")).lstrip("@~+")
    word = bare.strip("-.'’").casefold()
    if word in NEGATIONS or word.endswith(("n't", "n’t")):
        return word, "negation"
    if _is_name(bare):
        return bare, "name"
    return (word, "other") if len(word) < 3 or word in STOPWORDS else (stem(word), "word")


def _is_name(token: str) -> bool:
    """Return whether a token is a path, an identifier, an option or a version, and not a word."""
    if token.isalpha():
        return not token.isupper() and not token[1:].islower() and len(token) > 2 and token.isascii()
    has_digit = any(map(str.isdigit, token))
    return (
        token.startswith("--")
        or not {"_", "@"}.isdisjoint(token)
        or ("-" in token and (token.count("-") > 1 or not token.islower()))
        or ("/" in token and token.lower() not in _ALTERNATIVES)
        or (has_digit and len(token) > 2)
        or (len(token) > 3 and _DOTTED.search(token) is not None)
    )


_READ: Final = Remembered(_read_token)


def names_in(text: str) -> dict[str, None]:
    """Return the distinct names of *text*, in order."""
    terms = map(_READ.__getitem__, dict.fromkeys(TOKEN.findall(text)))
    return dict.fromkeys(term for term, kind in terms if kind == "name")


def kind_of(token: str) -> Kind:
    """Return the kind of the term that a token is."""
    return _READ[token][1]


def terms_of(text: str) -> Iterator[Term]:
    """Yield the terms of *text* in order, with its negations; other function words are skipped."""
    for match in TOKEN.finditer(text):
        token, start = match.group(), match.start()
        if not token[0].isascii() and _CJK_RUN.match(token):
            yield from _pairs(token, start)
            continue
        term, kind = _READ[token]
        if kind != "other" and not (kind == "number" and _is_list_mark(text, start, match.end())):
            yield Term(term, kind, start, match.end())


def _is_list_mark(text: str, start: int, end: int) -> bool:
    """Return whether a number is that of a list's item, also where lines were joined."""
    if text[end : end + 2] not in (". ", ") "):
        return False
    before = text[text.rfind("\n", 0, start) + 1 : start].rstrip("*_# \t")
    return not before or before[-1] in '.:!?)]"”`'


def _pairs(run: str, start: int) -> Iterator[Term]:
    """Yield the pairs of characters of a run without spaces, and its negations."""
    for number, part in enumerate(_CJK_NEGATION.split(run)):
        if number % 2:
            yield Term(part, "negation", start, start + len(part))
        else:
            pairs = (part[index : index + 2] for index in range(len(part) - 1)) if len(part) > 1 else part
            for index, pair in enumerate(pairs):
                if CJK_FUNCTION.isdisjoint(pair):
                    yield Term(pair, "word", start + index, start + index + len(pair))
        start += len(part)


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of *text*, and its lines where they are not sentences; wrapped lines are joined."""
    for line in unwrapped(text):
        yield from (part.strip() for part in _SENTENCE_END.split(line) if part and not part.isspace())


def unwrapped(text: str) -> Iterator[str]:
    """Yield the lines of *text* with those joined that a formatter has wrapped."""
    first, *lines = text.split("\n")
    current = [first.rstrip()]
    for line in lines:
        if _is_open(current[-1], line):
            current.append(line.strip())
        else:
            yield " ".join(current)
            current = [line.rstrip()]
    yield " ".join(current)


def _is_open(line: str, following: str) -> bool:
    """Return whether *line* does not end a sentence, so that *following* continues it."""
    if len(line) < WRAPPED_CHARACTERS or _ITEM.match(following):
        return False
    if line[-1:] in ".!?:;{}。！？" or line.lstrip().startswith(("#", "|")):
        return False
    return following.lstrip()[:1].islower() or line[-1:] == "," or line.rsplit(" ", 1)[-1].lower() in STOPWORDS


class Passage:
    """A text by its terms."""

    def __init__(self, text: str, terms: Sequence[Term] | None = None) -> None:
        self.text = text
        self.terms = [term for term in terms_of(text) if term.kind != "negation"] if terms is None else terms
        self.positions: dict[str, list[int]] = {}
        """Those of each distinct term."""
        for position, term in enumerate(self.terms):
            self.positions.setdefault(term.text, []).append(position)

    @property
    def exact(self) -> list[int]:
        """Positions of its numbers and names."""
        return [position for position, term in enumerate(self.terms) if term.kind in ("number", "name")]

    @cached_property
    def weights(self) -> dict[str, int]:
        """Its distinct terms, each with its weight."""
        return {
            term: 1 if len(term) == 1 or self.terms[positions[0]].kind == "word" else EXACT_WEIGHT
            for term, positions in self.positions.items()
        }

    def spans(self, wanted: Passage, *, least: float, without: str = "") -> list[Span]:
        """Return the spans that have at least the share *least* of the terms of *wanted*, the best first.

        The term *without* does not count. Spans do not overlap. The work is bounded by the number of terms in
        *wanted*.
        """
        weights = {term: weight for term, weight in wanted.weights.items() if term != without}
        whole = sum(weights.values())
        width = len(wanted.terms) + max(SLACK, len(wanted.terms) // 2)
        occurrences = ((term, self.positions.get(term, ())[:MAXIMUM_POSITIONS]) for term in weights)
        spans: list[Span] = []
        last: dict[str, int] = {}
        """The last position of each term within the width, the smallest first."""
        share = 0
        for position, term in sorted(
            (position, term) for term, positions in occurrences for position in positions
        ):
            if last.pop(term, None) is None:
                share += weights[term]
            last[term] = position
            while (start := next(iter(last.values()))) < position - width:
                dropped = next(iter(last))
                share -= weights[dropped]
                del last[dropped]
            if share >= least * whole:
                spans.append(Span(start, position + 1, share / whole))
        best: list[Span] = []
        for span in sorted(spans, key=lambda one: (-one.share, one.end - one.start)):
            if len(best) < MAXIMUM_SPANS and all(span.end <= own.start or span.start >= own.end for own in best):
                best.append(span)
        return best

    def clauses(self) -> Iterator[Passage]:
        """Yield the clauses that have terms."""
        starts = [term.start for term in self.terms]
        position = 0
        for offset in (*(match.start() for match in _CLAUSE_END.finditer(self.text)), len(self.text)):
            end = bisect_left(starts, offset)
            if end > position:
                yield Passage(self.text, self.terms[position:end])
                position = end

    def sentence_at(self, position: int) -> list[Term]:
        """Return the terms of the sentence that has the one at *position*."""
        start, end = self._sentence(self.terms[position].start, self.terms[position].end)
        near = self.terms[max(0, position - AROUND // 2) : position + AROUND // 2]
        return [one for one in near if start <= one.start and one.end <= end]

    def around(self, start: int, end: int) -> str:
        """Return the text from one character to another with the sentence around it."""
        start, end = self._sentence(start, end)
        return " ".join(self.text[start:end].split()).removeprefix("- ")[:MAXIMUM_CHARACTERS]

    def _sentence(self, first: int, last: int) -> tuple[int, int]:
        before, after = max(0, first - AROUND), last + AROUND
        *_, start = (before, *(match.end() for match in _BREAK.finditer(self.text, before, first)))
        return start, match.start() if (match := _BREAK.search(self.text, last, after)) else after
