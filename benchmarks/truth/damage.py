"""Damage to a text for the measurement of fidelity: sentences deleted, names and numbers changed, or negated.

Made without the product's own notion of a fact, so that it measures it.
"""

from __future__ import annotations

import random
import re
import textwrap
from typing import Final, Literal

from truth.other_damage import has_number, negations, with_another_number

Kind = Literal["delete", "corrupt", "negate", "negate otherwise", "number"]
"""The last two are of the second generator."""

MINIMUM_SENTENCES: Final = 10
"""Texts with fewer sentences to damage are not used: a tenth of them would be none."""

_BREAK: Final = re.compile(r"(?<=[.!?])\s+(?=[A-Z`\"'(])|\n+")
_NAME: Final = re.compile(r"[A-Za-z_][\w./-]*(?:[_/.]|(?<=[a-z])[A-Z])[\w./-]*\w|\b\d[\d.,]*\b")
_CODE_OR_WORD: Final = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`|[^\s,;:!?]*[\w)][-./_=(@#\\\[]+[\w][^\s,;:!?]*|\w+", re.DOTALL
)
"""A block of code, a name in quotes of code, a name or path, or a word of prose."""
_AFFIRM: Final = [
    (r"\bmust not\b", "must"), (r"\bshould not\b", "should"), (r"\bis not\b", "is"), (r"\bare not\b", "are"),
    (r"\bcannot\b|\bcan't\b", "can"), (r"\bdon't\b|\bdo not\b", "do"), (r"\bdoesn't\b", "does"),
    (r"\bnot\b ", ""),
]  # fmt: skip
_NEGATE: Final = [
    (r"\bmust\b", "must not"), (r"\bshould\b", "should not"), (r"\bis\b", "is not"), (r"\bare\b", "are not"),
    (r"\bwas\b", "was not"), (r"\bwill\b", "will not"), (r"\bcan\b", "cannot"), (r"\bhas\b", "has not"),
    (r"\bdoes\b", "does not"), (r"\balways\b", "never"), (r"\bnever\b", "always"), (r"\bwere\b", "were not"),
    (r"\bhave\b", "have not"), (r"\bfixed\b", "did not fix"), (r"\badded\b", "did not add"),
]  # fmt: skip
_SYNONYMS: Final = {
    "because": "since", "decided": "chose", "use": "employ", "uses": "employs", "fix": "repair",
    "fixed": "repaired",
    "create": "make", "created": "made", "added": "introduced", "update": "change", "updated": "changed",
    "need": "require", "needs": "requires", "implement": "build", "implemented": "built", "several": "some",
    "issue": "problem", "issues": "problems", "shows": "displays", "currently": "now", "allows": "lets",
    "large": "big", "finally": "lastly", "however": "but", "completed": "finished", "changes": "modifications",
}  # fmt: skip


def damaged(text: str, kind: Kind, share: float, chance: random.Random) -> str | None:
    """Return *text* with that share of its sentences damaged; None if it has too few to damage."""
    pieces = _sentences(text)
    choices = [index for index, (sentence, _) in enumerate(pieces) if _can_be(sentence, kind)]
    if len(choices) < MINIMUM_SENTENCES:
        return None
    for index in chance.sample(choices, max(1, round(share * len(choices)))):
        sentence, end = pieces[index]
        if kind == "delete":
            pieces[index] = ("", "")
        elif kind == "negate":
            pieces[index] = (_negated(sentence) or sentence, end)
        elif kind == "negate otherwise":
            pieces[index] = (chance.choice(negations(sentence)), end)
        elif kind == "number":
            pieces[index] = (with_another_number(sentence, chance), end)
        else:
            match = chance.choice(list(_NAME.finditer(sentence)))
            changed = _mutated(match.group(), chance)
            pieces[index] = (sentence[: match.start()] + changed + sentence[match.end() :], end)
    return "".join(sentence + end for sentence, end in pieces)


def reworded(text: str, chance: random.Random) -> str:
    """Return *text* with common words replaced by synonyms and other bullets; code and names stay as they are."""

    def changed(match: re.Match[str]) -> str:
        synonym = _SYNONYMS.get(match.group())
        return synonym if synonym is not None and chance.random() < 0.8 else match.group()

    return re.sub(r"(?m)^- ", "* ", _CODE_OR_WORD.sub(changed, text))


def wrapped(text: str, width: int = 60) -> str:
    """Return *text* with its long lines broken."""
    lines = (
        textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False) if len(line) > width else line
        for line in text.split("\n")
    )
    return "\n".join(lines)


def _sentences(text: str) -> list[tuple[str, str]]:
    parts: list[tuple[str, str]] = []
    position = 0
    for match in _BREAK.finditer(text):
        parts.append((text[position : match.start()], match.group()))
        position = match.end()
    return [*parts, (text[position:], "")]


def _can_be(sentence: str, kind: Kind) -> bool:
    if len(re.findall(r"\w+", sentence)) < 4:
        return False
    if kind == "negate":
        return _negated(sentence) is not None
    if kind == "negate otherwise":
        return bool(negations(sentence))
    if kind == "number":
        return has_number(sentence)
    return kind == "delete" or _NAME.search(sentence) is not None


def _negated(sentence: str) -> str | None:
    for pattern, replacement in (*_AFFIRM, *_NEGATE):
        if re.search(pattern, sentence):
            return re.sub(pattern, replacement, sentence, count=1)
    return None


def _mutated(name: str, chance: random.Random) -> str:
    digits = [index for index, character in enumerate(name) if character.isdigit()]
    if re.fullmatch(r"[\d.,]+", name):
        index = chance.choice(digits)
        other = chance.choice([digit for digit in "123456789" if digit != name[index]])
        return name[:index] + other + name[index + 1 :]
    index = chance.choice([index for index, character in enumerate(name) if character.isalpha()] or [0])
    return name[:index] + "".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=4)) + name[index + 1 :]
