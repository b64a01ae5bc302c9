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

from windowpane.fidelity.languages import pattern_of, stem, vocabulary_of
from windowpane.fidelity.passages import Passage, Span, Term, terms_of
from windowpane.fidelity.quantities import Quantity, is_number, quantity_of
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
CONTEXT: Final = 4
"""Terms on each side of a value by which a value is recognized."""
MINIMUM_CLAUSE: Final = 3
LOCATIONS: Final = frozenset(map(stem, vocabulary_of("places")))
"""Numbers next to these move with every edit."""
ALTERED: Final = re.compile(r"-{0,2}[A-Za-z_/][\w./-]{4,120}")
"""Names whose spelling is checked: of letters, not ranges and versions."""
MINIMUM_END: Final = 3
"""Characters at the end of two names that differ by an insertion: a plural is not altered."""
MINIMUM_REST: Final = 2
"""A longer rest makes a name another one that only starts alike."""
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
_SET: Final = pattern_of("set")
_INSTEAD: Final = re.compile(pattern_of("instead").pattern)
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
    wrong: dict[tuple[str, str], Contradiction] = {}
    values = (_wrong_values(unit, replacement, support) for own in passages.values() for unit in _units(own))
    for one in chain(_altered_names(passages.values(), replacement, support), *values):
        wrong.setdefault((one.value, one.replaced_by), one)
    yield from wrong.values()
    yield from _exchanges(passages.values(), replacement, sources)
    yield from _reversals(binding, replacement.text, passages)


def _choices(passage: Passage) -> Iterator[tuple[dict[str, str], dict[str, str], str]]:
    """Yield the terms, as written, on both sides of `instead of`, what is chosen first, with the text around."""
    for match in _INSTEAD.finditer(passage.text):
        at = match.end() if match["changed"] else match.start()
        before, after = passage.text[:at][-SUPPORT_CHARACTERS:], passage.text[match.end() :][:SUPPORT_CHARACTERS]
        first = {one.text: before[one.start : one.end] for one in [*terms_of(before)][-CONTEXT:]}
        second = {one.text: after[one.start : one.end] for one in islice(terms_of(after), CONTEXT)}
        if match.lastgroup:
            first, second = second, first
        if first and second:
            yield first, second, passage.around(match.start(), match.end())


def _exchanges(
    statements: Iterable[Passage], replacement: Passage, sources: Sequence[str]
) -> Iterator[Contradiction]:
    """Yield the statements whose alternatives are exchanged: `A instead of B`, `from A to B`."""
    stated = [(statement.text, *choice) for statement in statements for choice in _choices(statement)]
    claims = list(_choices(replacement)) if stated else []
    for statement, first, second, _ in stated:
        for other_first, other_second, claim in claims:
            shared = first.keys() & second.keys() | other_first.keys() & other_second.keys()
            chosen = {term: text for term, text in first.items() if term in other_second and term not in shared}
            rejected = {term: text for term, text in second.items() if term in other_first and term not in shared}
            if chosen and rejected and not _has_choice(sources, rejected, chosen):
                values = " ".join(chosen.values()), " ".join(rejected.values())
                yield Contradiction("reversed", statement, claim, *values)


def _has_choice(sources: Iterable[str], chosen: Iterable[str], rejected: Iterable[str]) -> bool:
    first, second = ("|".join(map(re.escape, side)) for side in (chosen, rejected))
    pattern = re.compile(rf"(?i:{first})[^.\n]{{0,40}}(?:{_INSTEAD.pattern})[^.\n]{{0,40}}(?i:{second})")
    return any(pattern.search(source) for source in sources)


def _units(statement: Passage) -> Iterator[Passage]:
    """Yield a statement, its clauses if it has several, and each word with its number: `retries at 17`."""
    yield statement
    clauses = [part for part in statement.clauses() if len(part.terms) >= MINIMUM_CLAUSE]
    yield from clauses if len(clauses) > 1 else ()
    for position in statement.exact if len(statement.terms) > 2 else ():
        if _is_setting(statement, position):
            yield Passage(statement.text, statement.terms[position - 1 : position + 1])


def _is_setting(passage: Passage, position: int) -> bool:
    """Return whether the number at *position* is the value of the word before it, not its label (`phase 1`)."""
    pair = passage.terms[max(0, position - 1) : position + 1]
    if [term.kind for term in pair] != ["word", "number"]:
        return False
    between = passage.text[pair[0].end : pair[1].start]
    return len(between) <= MAXIMUM_BETWEEN and _SET.search(between) is not None


def _wrong_values(statement: Passage, replacement: Passage, support: _Support) -> Iterator[Contradiction]:
    """Yield the values that *replacement* has in place of those of a statement or a part of one."""
    if sum(term.kind == "word" for term in statement.terms) < MINIMUM_CONTEXT and not _is_setting(statement, 1):
        return
    for position in statement.exact[:MAXIMUM_VALUES]:
        value = statement.terms[position]
        kind: Kind = "wrong_number" if is_number(value) else "wrong_name"
        least = RESTATED if is_number(value) else REPEATED
        for span in replacement.spans(statement, least=least, without=value.text):
            other = _other_value(statement, position, replacement, span)
            if other is not None and not support.has(other):
                texts = value.text, other.value.text
                if unit := other.quantity.unit:
                    texts = f"{value.text} {quantity_of(statement, position).unit}", f"{other.value.text} {unit}"
                first, last = replacement.terms[span.start], replacement.terms[span.end - 1]
                yield Contradiction(kind, statement.text, replacement.around(first.start, last.end), *texts)


class _Other(NamedTuple):
    """Another value in the place of a statement's."""

    value: Term
    quantity: Quantity
    """With its unit where that is what differs."""
    shared: frozenset[str]
    """Terms around it that are also around the statement's."""
    touched: frozenset[tuple[int, str]]
    """Those of them right next to both values, before (-1) or after (1)."""
    is_exchanged: bool
    """True for another value of the statement, next to the terms of this one."""
    quoted_characters: int = 0
    """Length of the statement where the replacement quotes it, else 0."""


def _other_value(statement: Passage, position: int, replacement: Passage, span: Span) -> _Other | None:
    """Return the value that *span* has in the place of one of *statement*; None if it has none, or that one."""
    term, own = statement.terms[position], quantity_of(statement, position)
    expected = _touching(statement, position)
    near = range(max(0, span.start - EDGE), min(len(replacement.terms), span.end + EDGE))
    quantities = {
        at: quantity_of(replacement, at)
        for at in near
        if (one := replacement.terms[at]).kind in ("number", "name")
        and is_number(one) == is_number(term)
        and (len(statement.terms) > 2 or _is_setting(replacement, at))
    }
    same = [at for at, quantity in quantities.items() if own.is_same(quantity)]
    if not expected or any(expected & _touching(replacement, at) for at in same):
        return None
    others = (_replacing(statement, position, replacement, at) for at in quantities if at not in same)
    best = max(filter(None, others), key=lambda other: len(other.shared), default=None)
    if best is None or (same and len(best.touched) < 2) or (best.is_exchanged and not same):
        return None
    if span.share < VERBATIM or best.is_exchanged or term.kind == "name":
        return best
    whole = {one.text for one in replacement.terms[span.start : span.end]} & statement.positions.keys()
    return best._replace(shared=frozenset(whole), quoted_characters=len(statement.text))


def _replacing(statement: Passage, position: int, replacement: Passage, at: int) -> _Other | None:
    """Return the value at a place of the replacement if it stands where the statement has its own."""
    value, other = statement.terms[position].text, replacement.terms[at]
    touched = _touching(statement, position) & _touching(replacement, at)
    context = _context(statement, position)
    shared = context & _context(replacement, at)
    is_exchanged = other.text in statement.positions and other.text != value
    is_part = other.text != value and value in _COMPONENT.split(other.text)
    if is_part or (is_exchanged and len(touched) < 2) or len(shared) < min(2, len(context)):
        return None
    is_alone = not is_number(other) or sum(one.kind == "number" for one in statement.terms) == 1
    is_between = len(touched) == 2 and len(statement.terms) > CONTEXT
    if not (is_number(other) or is_between or _is_alike(other.text, value)):
        return None
    if not (touched or (is_alone and _restates(replacement, at, statement))):
        return None
    quantity = quantity_of(replacement, at)
    if other.text != value:
        quantity = quantity._replace(unit="")
    return _Other(other, quantity, shared, touched, is_exchanged)


def _is_alike(one: str, other: str) -> bool:
    """Return whether two names have most of their start and end in common, and neither is a part of the other."""
    start, end = _shared_ends(one, other)
    shorter, longer = sorted((one, other), key=len)
    rests = (longer.removeprefix(shorter), longer.removesuffix(shorter))
    is_part = any(rest != longer and (len(rest) > MINIMUM_REST or not rest.isalnum()) for rest in rests)
    return not is_part and 2 * (start + end) >= max(len(one), len(other))


def _restates(replacement: Passage, position: int, statement: Passage) -> bool:
    """Return whether the clause around a value has only this value, and words that the statement has too."""
    own = replacement.terms[position]
    around = [one for one in replacement.sentence_at(position) if one is not own]
    shared = sum(one.text in statement.positions for one in around)
    is_only = all(one.kind != own.kind for one in around)
    return is_only and shared >= MINIMUM_CONTEXT and shared >= REPEATED * len(around)


def _touching(passage: Passage, position: int) -> frozenset[tuple[int, str]]:
    """Return the terms right before and after a value; none of a place in a file."""
    beside = [(step, position + step) for step in (-1, 1) if 0 <= position + step < len(passage.terms)]
    sides = frozenset((step, passage.terms[at].text) for step, at in beside)
    return frozenset() if any(term in LOCATIONS for _, term in sides) else sides


def _context(passage: Passage, position: int) -> frozenset[str]:
    near = passage.terms[max(0, position - CONTEXT) : position + CONTEXT + 1]
    return frozenset(term.text for term in near) - {passage.terms[position].text}


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
    names: dict[str, Term] = {}
    for term in replacement.terms:
        if term.kind == "name" and term.text not in real and ALTERED.fullmatch(term.text):
            names.setdefault(term.text, term)
    by_edge: dict[str, list[str]] = {}
    for other in real:
        for edge in _edges(other):
            by_edge.setdefault(edge, []).append(other)
    for name, term in names.items():
        near = chain.from_iterable(by_edge.get(edge, ()) for edge in _edges(name))
        alike = next((other for other in near if _is_altered(name, other)), None)
        if alike is not None and not support.mentions(name):
            claim = replacement.around(term.start, term.end)
            yield Contradiction("wrong_name", real[alike].text, claim, alike, name)


def _edges(name: str) -> tuple[str, str]:
    """Return the start and end of a name: an altered one has one of them too."""
    return f"{name[:NAME_EDGE]}*", f"*{name[-NAME_EDGE:]}"


def _is_altered(name: str, real: str) -> bool:
    """Return whether two names differ in one place, where neither has what the other has added."""
    longest = max(len(name), len(real))
    start, end = _shared_ends(name, real)
    if min(len(name), len(real)) == start + end:
        is_inside = start >= 2 and end >= MINIMUM_END
    else:
        is_inside = end > 0 or len(name) == len(real) or len(real) - start < MINIMUM_END
    return is_inside and start + end >= (ALIKE if end else ALIKE_TO_THE_END) * longest


def _shared_ends(one: str, other: str) -> tuple[int, int]:
    """Return how many characters two names have in common at the start, and at the end of the rest."""
    start = _shared_start(one, other)
    return start, _shared_start(one[start:][::-1], other[start:][::-1])


def _shared_start(one: str, other: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


class _Support:
    """The texts that may have a value for another reason, as after a change of mind."""

    def __init__(self, sources: Sequence[str]) -> None:
        self._sources = sources

    def has(self, other: _Other) -> bool:
        """Return whether a source has the value next to the same term, or near the terms that it shares.

        A quoted statement needs both, and so does an exchanged value, with all the terms next to it.
        """
        text = "|".join(map(re.escape, other.quantity.spellings))
        is_count = is_number(other.value)
        start, end = (r"[A-Za-z0-9_.]", r"\d") if is_count else (r"\w", r"\w")
        unit = rf"[ -]?{re.escape(other.quantity.unit)}" if other.quantity.unit else ""
        pattern = re.compile(rf"(?<!{start})(?:{text}){unit}(?!{end})", re.IGNORECASE)
        words = [word.casefold() for word in other.shared]
        touching = [term.casefold() for _, term in other.touched]
        around = other.quoted_characters or SUPPORT_CHARACTERS
        decide = all if other.quoted_characters or other.is_exchanged else any
        needed = (len(words) if touching else 1) if is_count else MINIMUM_CONTEXT
        least = len(touching) if other.is_exchanged else 1
        for source in self._sources:
            for match in islice(pattern.finditer(source), MAXIMUM_OCCURRENCES):
                near, close = (
                    source[max(0, match.start() - room) : match.end() + room].casefold()
                    for room in (around, CLOSE_CHARACTERS)
                )
                is_near = sum(word in near for word in words) >= min(needed, len(words))
                is_close = sum(word in close for word in touching) >= least if touching else is_near
                if decide((is_close, is_near)):
                    return True
        return False

    def mentions(self, name: str) -> bool:
        """Return whether a source has a name, in whatever case, or sources have all its parts.

        The parts of a web address and numbers support nothing: many are common.
        """
        if any(name in source for source in self._sources):
            return True
        parts = [part.casefold() for part in _NAME_PART.findall(name)]
        if name.startswith("//") or not all(map(str.isalpha, parts)):
            return False
        return all(any(part in source for source in self._lowered) for part in parts)

    @cached_property
    def _lowered(self) -> list[str]:
        return [source.casefold() for source in self._sources]
