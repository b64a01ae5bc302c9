"""A second generator of damage: negations in other forms and words than the first one's, and numbers alone."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import Final

_NOT_IN_CODE: Final = r"(?<![\w`./-])"
_AUXILIARIES: Final = re.findall(
    r"\w+", "is are was were has have had does do did can could will would should must may might"
)
_AUXILIARY: Final = re.compile(rf"{_NOT_IN_CODE}({'|'.join(_AUXILIARIES)})\b(?![\w/(`-])")
_WITHOUT_SHORT_FORM: Final = frozenset({"can", "will", "may", "might"})
_SHORT_FORMS: Final = {"can": "can't", "will": "won't"}
_AFFIRMATIONS: Final = [
    (r"\b(is|are|was|were|has|have|had|does|do|did|could|would|should|must)n['’]t\b", r"\1"),
    (r"\bcan(?:no|['’])t\b", "can"), (r"\bwon['’]t\b", "will"),
    (rf"\b({'|'.join(_AUXILIARIES)}) not\b", r"\1"), (r"\bnot ", ""), (r"\bno longer\b", "still"),
    (r"\bNo\b (?=\w)", "Some "), (r"\bno\b (?=\w)", "some "), (r"\bwithout\b", "with"), (r"\bnever\b", "always"),
    (r"\bnone\b", "all"), (r"\bnothing\b", "everything"),
]  # fmt: skip
_OPPOSITES: Final = dict(
    re.findall(
        r"(\w+)/(\w+)",
        "enabled/disabled enable/disable passes/fails passing/failing passed/failed pass/fail"
        " added/removed add/remove adds/removes Added/Removed Add/Remove before/after always/never"
        " success/failure true/false allow/forbid allows/forbids include/exclude includes/excludes"
        " with/without increase/decrease valid/invalid required/optional used/unused complete/incomplete"
        " completed/abandoned correct/incorrect correctly/incorrectly existing/missing new/old keep/drop"
        " kept/dropped start/stop starts/stops open/closed first/last more/less",
    )
)
_EITHER_WAY: Final = {**_OPPOSITES, **{opposite: word for word, opposite in _OPPOSITES.items()}}
_BASE_FORMS: Final = dict(
    re.findall(
        r"(\w+)/(\w+)",
        "fixed/fix added/add updated/update removed/remove created/create moved/move changed/change"
        " implemented/implement replaced/replace renamed/rename committed/commit pushed/push ran/run"
        " verified/verify introduced/introduce refactored/refactor wrote/write reverted/revert kept/keep"
        " extracted/extract merged/merge",
    )
)
_WORD: Final = re.compile(rf"{_NOT_IN_CODE}[A-Za-z]+(?![\w/(`-])")
_NUMBER: Final = re.compile(
    r"(?<![\w.#/-])\d+(?:\.\d+)?(?![\w/])(?!\.\s|\))|(?<![\w.])\d+(?:ms|s|k|K|MB|KB|GB|%|min|h)\b"
)


def negations(sentence: str) -> list[str]:
    """Return *sentence* with the opposite meaning, in every form that this generator has."""
    affirmed = [
        sentence[: match.start()] + match.expand(replacement) + sentence[match.end() :]
        for pattern, replacement in _AFFIRMATIONS
        if (match := re.search(pattern, sentence))
    ]
    if affirmed:
        return affirmed
    changed = []
    auxiliary = _AUXILIARY.search(sentence)
    if auxiliary:
        word = auxiliary.group(1)
        changed.append(f"{sentence[: auxiliary.end()]} not{sentence[auxiliary.end() :]}")
        short = _SHORT_FORMS.get(word) or (f"{word}n't" if word not in _WITHOUT_SHORT_FORM else None)
        if short:
            changed.append(sentence[: auxiliary.start()] + short + sentence[auxiliary.end() :])
    for rule in (_opposite, _not_done):
        words = ((match, rule(match.group())) for match in _WORD.finditer(sentence))
        match, other = next(((match, other) for match, other in words if other), (None, None))
        if match is not None and other is not None:
            changed.append(sentence[: match.start()] + other + sentence[match.end() :])
    return changed


def _opposite(word: str) -> str | None:
    return _EITHER_WAY.get(word)


def _not_done(word: str) -> str | None:
    base = _BASE_FORMS.get(word.lower())
    return None if base is None else f"{'Did' if word[0].isupper() else 'did'} not {base}"


def has_number(sentence: str) -> bool:
    """Return whether *sentence* has a number outside names."""
    return _NUMBER.search(sentence) is not None


def with_another_number(sentence: str, chance: random.Random) -> str:
    """Return *sentence* with one of its numbers multiplied, raised, lowered, or with another digit."""
    match = chance.choice(list(_NUMBER.finditer(sentence)))
    digits = re.match(r"[\d.]+", match.group())
    assert digits is not None
    old = digits.group()
    changed = chance.choice(_CHANGES)(old, chance)
    if changed == old:
        changed = str(int(float(old)) + 7)
    return sentence[: match.start()] + changed + sentence[match.start() + len(old) :]


def _written(value: float, old: str) -> str:
    return f"{value:.{len(old.split('.')[1])}f}" if "." in old else str(int(value))


def _another_digit(old: str, chance: random.Random) -> str:
    at = chance.choice([at for at, character in enumerate(old) if character.isdigit()])
    return old[:at] + chance.choice([digit for digit in "123456789" if digit != old[at]]) + old[at + 1 :]


_CHANGES: Final[Sequence[Callable[[str, random.Random], str]]] = (
    lambda old, chance: _written(float(old) * chance.choice([2, 10]), old),
    lambda old, chance: _written(float(old) + chance.choice([1, 2, 3, 5, 10]), old),
    lambda old, chance: _written(max(0.0, float(old) - chance.choice([1, 2])), old),
    _another_digit,
)
