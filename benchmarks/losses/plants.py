"""Damage to real summaries: values changed, rules reversed, text cut, and words exchanged.

Made with no code of the product. A value is planted where a summary has the same number or name as the removed
text, between similar characters on at least one side: there it repeats what was asked for.
"""

from __future__ import annotations

import random
import re
import textwrap
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from typing import Final, Literal, NamedTuple

Value = Literal["number", "name"]

AROUND: Final = 45
"""Characters on each side of a value that are compared."""
SIMILAR: Final = 0.75
"""Similarity of one side from which a value is the same; both together have 0.15 more."""
MINIMUM_WORDS: Final = 3
"""Different words of four letters that a statement has next to its value."""

_VALUES: Final[dict[Value, re.Pattern[str]]] = {
    "number": re.compile(r"(?<![\w./:-])(?<!lines )(?<!line )(?<!~)\d+(?:\.\d+)?(?![\w/:-]|\.\d|[.)] )"),
    "name": re.compile(
        r"(?<![\w./-])[A-Za-z][\w-]*(?:[/_.][\w-]+)+(?![\w/])|(?<![\w/.-])[a-z]+[A-Z]\w{3,}(?![\w.\/-])"
    ),
}
_WORD: Final = re.compile(r"[^\W\d_]{4,}")
_CODE: Final = re.compile(r"[{}();=#|]")
_REVERSALS: Final = (
    (r"\b[Nn]ever\b", "Always"), (r"\b[Aa]lways\b", "Never"), (r"\b[Dd]o not\b|\b[Dd]on't\b", "Do"),
    (r"\bmust (?:NOT|not|never)\b", "must"), (r"\bmust\b(?! N)", "must not"), (r"\bshould not\b", "should"),
    (r"\bshould\b", "should not"), (r"\bcannot\b|\bcan't\b", "can"),
    (r"^(Use|Run|Keep|Ask|Make|Add|Write|Follow|Check|Update)\b", r"Do not \1"),
)  # fmt: skip
_SYNONYMS: Final = {
    "because": "since", "fix": "repair", "fixed": "repaired", "create": "make", "created": "made",
    "added": "introduced", "update": "change", "updated": "changed", "need": "require", "needs": "requires",
    "implement": "build", "implemented": "built", "issue": "problem", "shows": "displays", "allows": "lets",
    "large": "big", "however": "but", "completed": "finished", "changes": "modifications", "currently": "now",
}  # fmt: skip
_CODE_OR_WORD: Final = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|\S*[/_.=(]\S*|\w+", re.DOTALL)


class Plant(NamedTuple):
    """A summary with one value changed."""

    kind: Value
    statement: str
    text: str
    value: str
    planted: str


def plants(statements: Iterable[str], summary: str, chance: random.Random) -> list[Plant]:
    """Return every copy of *summary* in which one value of *statements* can be changed."""
    found: dict[int, Plant] = {}
    for statement in statements:
        for kind, pattern in _VALUES.items():
            for match in () if _CODE.search(statement) else pattern.finditer(statement):
                value = match.group()
                words = set(_WORD.findall(statement.replace(value, "")))
                if statement.count(value) > 1 or len(words) < MINIMUM_WORDS:
                    continue
                for place in re.finditer(rf"(?<![\w.]){re.escape(value)}(?!\w)", summary):
                    if _is_same(statement, match.span(), summary, place.span()):
                        planted = _other(value, kind, chance)
                        text = summary[: place.start()] + planted + summary[place.end() :]
                        found.setdefault(place.start(), Plant(kind, statement, text, value, planted))
    return list(found.values())


def _is_same(one: str, here: tuple[int, int], other: str, there: tuple[int, int]) -> bool:
    left = _similarity(_near(one[: here[0]])[-AROUND:], _near(other[: there[0]])[-AROUND:], at_end=True)
    right = _similarity(_near(one[here[1] :]), _near(other[there[1] :]), at_end=False)
    return max(left, right) >= SIMILAR and left + right >= SIMILAR + 0.15


def _near(text: str) -> str:
    return (
        " ".join(text[-2 * AROUND :].split()).lower()
        if len(text) > 2 * AROUND
        else " ".join(text.split()).lower()
    )


def _similarity(one: str, other: str, *, at_end: bool) -> float:
    length = min(len(one), len(other), AROUND)
    if length < 6:
        return 0.0
    pair = (one[-length:], other[-length:]) if at_end else (one[:length], other[:length])
    return SequenceMatcher(None, *pair, autojunk=False).ratio()


def _other(value: str, kind: Value, chance: random.Random) -> str:
    if kind == "name":
        at = chance.choice([index for index, character in enumerate(value) if character.isalpha()])
        return value[:at] + "".join(chance.choices("bcdfghjklmnpqrstvwxz", k=3)) + value[at + 1 :]
    whole, point, rest = value.partition(".")
    while True:
        digits = str(chance.randint(1, 9)) + "".join(chance.choices("0123456789", k=len(whole) - 1))
        other = digits + (f"{point}{chance.randint(0, 9)}" if rest else "")
        if other != value:
            return other


def reversed_rule(rule: str) -> str | None:
    """Return a rule with the opposite meaning; None where no word of the list can be exchanged."""
    for pattern, replacement in _REVERSALS:
        if re.search(pattern, rule):
            return re.sub(pattern, replacement, rule, count=1)
    return None


def with_line(summary: str, line: str) -> str:
    """Return a summary with one more item in its middle."""
    at = summary.find("\n", len(summary) // 2)
    return f"{summary[:at]}\n- {line}{summary[at:]}" if at >= 0 else f"{summary}\n- {line}"


def cuts(summary: str, chance: random.Random) -> Iterator[tuple[str, str]]:
    """Yield cut copies of a summary, each with the kind of the cut."""
    keep = chance.uniform(0.3, 0.95)
    lines = summary.split("\n")
    yield "cut off at a character", summary[: int(len(summary) * keep)]
    yield "cut off at a line", "\n".join(lines[: max(1, int(len(lines) * keep))])
    length = int(len(summary) * chance.uniform(0.1, 0.4))
    start = chance.randint(0, len(summary) - length)
    yield "a span missing", summary[:start] + summary[start + length :]
    count = max(1, int(len(lines) * chance.uniform(0.1, 0.4)))
    first = chance.randint(0, len(lines) - count)
    yield "lines in a row missing", "\n".join(lines[:first] + lines[first + count :])
    yield "each fourth line missing", "\n".join(line for line in lines if chance.random() > 0.25)


def harmless(summary: str, chance: random.Random) -> Iterator[tuple[str, str]]:
    """Yield harmless copies, each with what was changed."""

    def exchanged(match: re.Match[str]) -> str:
        return _SYNONYMS.get(match.group(), match.group()) if chance.random() < 0.8 else match.group()

    yield "reworded", _CODE_OR_WORD.sub(exchanged, summary)
    yield (
        "wrapped at 60",
        "\n".join(
            textwrap.fill(line, 60, break_long_words=False, break_on_hyphens=False) if len(line) > 60 else line
            for line in summary.split("\n")
        ),
    )
    yield "lines joined", " ".join(line.strip() for line in summary.split("\n"))
