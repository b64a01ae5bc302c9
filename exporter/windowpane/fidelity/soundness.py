"""Soundness: numbers, names and negations of a replacement that the text it replaces denies.

Requests of the user, rules and decisions are looked up in the replacement. A number or name in the place of
another is wrong unless the removed text has it in the same context, as after a change of mind. A rule or goal
with the opposite meaning is wrong unless another passage agrees.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, islice, takewhile
from typing import Final, Literal, NamedTuple

from windowpane.fidelity.languages import stem, vocabulary_of
from windowpane.fidelity.passages import Passage, Span, Term
from windowpane.fidelity.rule_comparison import ComparedText, read_clause

Kind = Literal["wrong_number", "wrong_name", "reversed"]

RESTATED: Final = 0.5
"""Share of a statement's other terms from which a span repeats it."""
REPEATED: Final = 0.75
"""Share of a statement's terms from which a span repeats or reverses it."""
VERBATIM: Final = 0.85
"""Share from which a span quotes a statement: only the same statement with the other value supports that."""
CLOSE_CHARACTERS: Final = 16
"""Characters around another value in which the term next to it is looked for."""
MAXIMUM_VALUES: Final = 8
"""Numbers and names of one statement."""
CONTEXT: Final = 4
"""Terms on each side of a value by which a value is recognized."""
MINIMUM_CLAUSE: Final = 3
LOCATIONS: Final = frozenset(map(stem, vocabulary_of("places")))
"""Numbers next to these move with every edit."""
ALTERED: Final = re.compile(r"-{0,2}[A-Za-z_/][\w./-]{4,120}")
"""Names whose spelling is checked: of letters, not ranges and versions."""
MINIMUM_END: Final = 3
"""Characters at the end of two names that differ by an insertion: a plural is not altered."""
NAME_EDGE: Final = 2
"""Characters at a name's start or end, fewer than the half of what altered names share."""
ALIKE: Final = 0.7
"""Share of the longer name at its start and end that an altered name has too."""
ALIKE_TO_THE_END: Final = 0.8
"""The same where the end differs: a shorter start may be that of another name."""
EDGE: Final = 2
"""Terms before and after a span that may be the value which replaces one of the statement."""
SUPPORT_CHARACTERS: Final = 60
"""Characters around another value in which its context is looked for."""
MAXIMUM_OCCURRENCES: Final = 40
MAXIMUM_STATEMENTS: Final = 200
_NAME_PART: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
MINIMUM_CONTEXT: Final = 2
"""Words, not names or numbers, of a statement whose values are compared."""
MAXIMUM_BETWEEN: Final = 24
"""Characters between a word and the number that it is set to."""
_SET: Final = re.compile(
    r"[=:为是はを]|\b(?:at|to|of|is|are|be|auf|bei|ist|sind|à|est|sont|en|es|son)\b", re.IGNORECASE
)
WEB: Final = "//"
"""Start of a web address without its scheme."""
_COMPONENT: Final = re.compile(r"[.:/–-]")


class Contradiction(NamedTuple):
    """A statement of the removed text, and the text of the replacement."""

    kind: Kind
    statement: str
    claim: str
    value: str = ""
    """The value of the statement; empty for a reversal."""
    replaced_by: str = ""


def contradictions(
    statements: Iterable[str], binding: Iterable[str], replacement: Passage, sources: Sequence[str]
) -> Iterator[Contradiction]:
    """Yield what in *replacement* contradicts *statements*; *sources* are all texts that may support it.

    Only *binding* statements can be reversed: rules and goals. What the agent or the user reported may have
    changed later.
    """
    if not replacement.terms:
        return
    support = _Support(sources)
    passages = {text: Passage(text) for text in islice(dict.fromkeys(statements), MAXIMUM_STATEMENTS)}
    seen: set[tuple[str, str]] = set()
    wrong = (
        _wrong_values(unit, replacement, support, own.text)
        for own in passages.values()
        for unit in (own, *_clauses(own), *_settings(own))
    )
    for one in chain(_altered_names(passages.values(), replacement, support), *wrong):
        if (one.value, one.replaced_by) not in seen:
            seen.add((one.value, one.replaced_by))
            yield one
    yield from _reversals(binding, replacement.text, passages)


def _clauses(statement: Passage) -> list[Passage]:
    """Return the clauses of a statement that has several."""
    parts = [statement.terms[start:end] for start, end in statement.clauses() if end - start >= MINIMUM_CLAUSE]
    return [Passage(statement.text[part[0].start : part[-1].end]) for part in parts] if len(parts) > 1 else []


def _settings(statement: Passage) -> Iterator[Passage]:
    """Yield each word with the number that it is set to: `retries at 17`, `timeout = 30`."""
    for position, term in enumerate(statement.terms):
        if position and term.kind == "number" and len(statement.terms) > 2 and _is_setting(statement, position):
            yield Passage(statement.text[statement.terms[position - 1].start : term.end])


def _is_setting(passage: Passage, position: int) -> bool:
    """Return whether the number at *position* is the value of the word before it, not its label (`phase 1`)."""
    if not 0 < position < len(passage.terms) or passage.terms[position].kind != "number":
        return False
    before = passage.terms[position - 1]
    between = passage.text[before.end : passage.terms[position].start]
    return before.kind == "word" and len(between) <= MAXIMUM_BETWEEN and _SET.search(between) is not None


def _wrong_values(
    statement: Passage, replacement: Passage, support: _Support, whole: str
) -> Iterator[Contradiction]:
    """Yield the values that *replacement* has in place of those of a statement, or of a part of the *whole*."""
    if sum(term.kind == "word" for term in statement.terms) < MINIMUM_CONTEXT and not _is_setting(statement, 1):
        return
    for position in statement.exact[:MAXIMUM_VALUES]:
        value = statement.terms[position]
        if value.kind == "name" and len(statement.terms) <= CONTEXT:
            continue
        least = RESTATED if value.kind == "number" else REPEATED
        for span in replacement.spans(statement, least=least, without=value.text):
            other = _other_value(statement, position, replacement, span)
            if other is not None and not support.has(other):
                kind: Kind = "wrong_number" if other.value.kind == "number" else "wrong_name"
                claim = replacement.excerpt(span.start, span.end)
                yield Contradiction(kind, whole, claim, value.text, other.value.text)


class _Other(NamedTuple):
    """Another value in the place of a statement's."""

    value: Term
    shared: frozenset[str]
    """Terms around it that are also around the statement's."""
    touched: frozenset[tuple[int, str]]
    """Those of them right next to both values, before (-1) or after (1)."""
    quoted_characters: int = 0
    """Length of the statement where the replacement quotes it, else 0."""


def _other_value(statement: Passage, position: int, replacement: Passage, span: Span) -> _Other | None:
    """Return the value that *span* has in the place of one of *statement*; None if it has none, or that one."""
    term = statement.terms[position]
    context = _context(statement, position)
    expected = _touching(statement, position)
    is_setting = len(statement.terms) == 2
    needed = 1 if term.kind == "number" else 2
    best: _Other | None = None
    for at in range(max(0, span.start - EDGE), min(len(replacement.terms), span.end + EDGE)):
        one = replacement.terms[at]
        if one.kind != term.kind:
            continue
        touched = expected & _touching(replacement, at)
        if is_setting and not _is_setting(replacement, at):
            continue
        if len(touched) < needed or term.text in _COMPONENT.split(one.text):
            if touched and one.text == term.text:
                return None
            continue
        if one.text == term.text:
            return None
        shared = context & _context(replacement, at)
        if (
            one.text not in statement
            and len(shared) >= min(2, len(context))
            and (best is None or len(shared) > len(best.shared))
        ):
            best = _Other(one, shared, touched)
    if best is None or span.share < VERBATIM:
        return best
    whole = {one.text for one in replacement.terms[span.start : span.end]} & statement.distinct
    return best._replace(shared=frozenset(whole), quoted_characters=len(statement.text))


def _touching(passage: Passage, position: int) -> frozenset[tuple[int, str]]:
    """Return the terms right before and after a value; none of a place in a file."""
    beside = [(step, position + step) for step in (-1, 1) if 0 <= position + step < len(passage.terms)]
    sides = frozenset((step, passage.terms[at].text) for step, at in beside)
    return frozenset() if any(term in LOCATIONS for _, term in sides) else sides


def _context(passage: Passage, position: int) -> frozenset[str]:
    own = passage.terms[position].text
    near = passage.terms[max(0, position - CONTEXT) : position + CONTEXT + 1]
    return frozenset(term.text for term in near if term.text != own)


def _reversals(binding: Iterable[str], replacement: str, stated: Iterable[str]) -> Iterator[Contradiction]:
    """Yield the *binding* statements that *replacement* has with the opposite meaning, unless *stated* agrees."""
    text, agreeing = ComparedText([replacement]), ComparedText(stated)
    for statement in dict.fromkeys(binding):
        claim = text.match(statement).contradicting
        if claim is not None and claim.values >= read_clause(statement).values and not agreeing.states(claim):
            yield Contradiction("reversed", statement, claim.text)


def _altered_names(
    statements: Iterable[Passage], replacement: Passage, support: _Support
) -> Iterator[Contradiction]:
    """Yield the names that no source has, where a statement has almost the same name."""
    real = {one.text: statement for statement in statements for one in statement.terms if one.kind == "name"}
    names: dict[str, int] = {}
    for position, term in enumerate(replacement.terms):
        if term.kind == "name" and term.text not in real and ALTERED.fullmatch(term.text):
            names.setdefault(term.text, position)
    by_edge: dict[str, dict[str, None]] = {}
    for other in real:
        for edge in _edges(other):
            by_edge.setdefault(edge, {})[other] = None
    for name, position in names.items():
        near = chain.from_iterable(by_edge.get(edge, ()) for edge in _edges(name))
        alike = next((other for other in near if _is_altered(name, other)), None)
        if alike is not None and not support.mentions(name):
            claim = replacement.excerpt(position, position + 1)
            yield Contradiction("wrong_name", real[alike].text, claim, alike, name)


def _edges(name: str) -> tuple[str, str]:
    """Return the start and end of a name: an altered one has one of them too."""
    return f"{name[:NAME_EDGE]}*", f"*{name[-NAME_EDGE:]}"


def _is_altered(name: str, real: str) -> bool:
    """Return whether two names differ in one place, where neither has what the other has added."""
    longest = max(len(name), len(real))
    if abs(len(name) - len(real)) > (1 - ALIKE) * longest:
        return False
    start = _shared_start(name, real)
    end = _shared_start(name[start:][::-1], real[start:][::-1])
    if min(len(name), len(real)) == start + end:
        is_inside = start >= 2 and end >= MINIMUM_END
    else:
        is_inside = end > 0 or len(name) == len(real) or len(real) - start < MINIMUM_END
    return is_inside and start + end >= (ALIKE if end else ALIKE_TO_THE_END) * longest


def _shared_start(one: str, other: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


class _Support:
    """The texts that may have a value for another reason, as after a change of mind."""

    def __init__(self, sources: Sequence[str]) -> None:
        self._sources = sources

    def has(self, other: _Other) -> bool:
        """Return whether a source has the value next to the same term, or near all the terms that it shares.

        Of a quoted statement both are needed: only the same statement with that value supports it.
        """
        text = re.escape(other.value.text)
        pattern = re.compile(rf"(?<![\w.]){text}(?!\d)" if other.value.kind == "number" else text)
        words = [word.casefold() for word in other.shared]
        touching = [term.casefold() for _, term in other.touched]
        around = other.quoted_characters or SUPPORT_CHARACTERS
        decide = all if other.quoted_characters else any
        for source in self._sources:
            for match in islice(pattern.finditer(source), MAXIMUM_OCCURRENCES):
                near, close = (
                    source[max(0, match.start() - room) : match.end() + room].casefold()
                    for room in (around, CLOSE_CHARACTERS)
                )
                if decide((any(word in close for word in touching), all(word in near for word in words))):
                    return True
        return False

    def mentions(self, name: str) -> bool:
        """Return whether a source has a name, in whatever case, or sources have all its parts.

        The parts of a web address support nothing: many are common words.
        """
        if any(name in source for source in self._sources):
            return True
        if name.startswith(WEB):
            return False
        parts = [part.casefold() for part in _NAME_PART.findall(name)]
        return all(any(part in source for source in self._lowered) for part in parts)

    @cached_property
    def _lowered(self) -> list[str]:
        return [source.casefold() for source in self._sources]
