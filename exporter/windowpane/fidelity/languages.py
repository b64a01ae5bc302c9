"""Words of the languages in which decisions, negations and reasons are recognized.

Names, numbers, paths and code are recognized in any language; what depends on words is measured only in these.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from itertools import chain
from operator import itemgetter
from typing import Final, Literal

import msgspec

from windowpane.core.decoders import convert

Language = Literal["English", "German", "French", "Spanish", "Chinese", "Japanese"]

SAMPLED_CHARACTERS: Final = 4_000
"""Characters of each text by which its language is recognized."""
MINIMUM_SHARE: Final = 0.12
"""Share of function words from which a text is in a language; other languages share few of them."""
SHORTEST_SAMPLE: Final = 20
"""Shorter texts are of any language."""
STEM_CHARACTERS: Final = 7
MINIMUM_STEM: Final = 3
_PLACEHOLDER: Final = re.compile(r"\{([a-z]+)\}")
_SUFFIX: Final = re.compile(rf"(?<=.{{{MINIMUM_STEM}}})(?:ations?|ments?|ings?|ers|ied|ies|ed|es|er|en|s|e|y)$")
_PARTICIPLE: Final = re.compile(r"^ge([^\W\d_]{3,})t$")
"""Of German, as `gelöscht`."""
_ACCENTS: Final = str.maketrans("éèê", "eee")
_WORD: Final = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_KANA: Final = re.compile(r"[\u3040-\u30ff]")
_HAN: Final = re.compile(r"[\u3400-\u9fff]")
_OTHER_SCRIPT: Final = re.compile(r"[\u0370-\u1fff\ua000-\ud7af]")
"""Letters of scripts of which no words are known."""
_DATA: Final = convert(
    msgspec.toml.decode(files("windowpane.fidelity").joinpath("languages.toml").read_bytes()),
    dict[Language, dict[str, str]],
)


def vocabulary_of(kind: str) -> frozenset[str]:
    """Return the words of a kind in all languages."""
    return frozenset(word for language in _DATA.values() for word in language.get(kind, "").split())


def lines_of(kind: str) -> list[list[str]]:
    """Return the lines of a kind, by language."""
    return [_phrases(kind, language) for language in _DATA]


@cache
def pattern_of(kind: str, *languages: Language) -> re.Pattern[str]:
    """Return the pattern of the phrases of a kind, in all languages if none is named; `\\b` is tested once.

    `{verbs}` in a phrase is any English word or phrase of that kind.
    """
    phrases = [*chain.from_iterable(_phrases(kind, language) for language in languages or _DATA)]
    words, others = ([one for one in phrases if one.startswith(r"\b") is bounded] for bounded in (True, False))
    text = "|".join([*others, rf"\b(?:{'|'.join(one[2:] for one in words)})"] if words else others)
    return re.compile(_PLACEHOLDER.sub(lambda match: f"(?:{'|'.join(_phrases(match[1]))})", text), re.IGNORECASE)


def _phrases(kind: str, language: Language = "English") -> list[str]:
    text = _DATA[language].get(kind, "")
    return text.split() if kind == "verbs" else text.strip("\n").splitlines()


_COMMON_WORDS: Final = {
    language: frozenset(
        word for kind in ("function", "negations", "stance") for word in data.get(kind, "").split()
    )
    for language, data in _DATA.items()
}
"""Words by which a language is recognized."""
NUMBER_WORDS: Final = {
    word: number
    for words in lines_of("numbers")
    for word, number in zip(" ".join(words).split(), (*range(2, 21), *range(30, 101, 10)), strict=False)
    if word != "-"
}
"""Words for 2 to 20, 30, 40 … 100, without those that mean something else in another language."""
STOPWORDS: Final = vocabulary_of("function") | vocabulary_of("fillers")
NEGATIONS: Final = vocabulary_of("negations")
DECISION: Final = pattern_of("decision")
REASON: Final = pattern_of("reason")
CJK_FUNCTION: Final = frozenset("的了为是在和与把被将はをがのにでもとへや")
"""Characters of Chinese and Japanese that stand between words."""


def stem(word: str) -> str:
    """Return the start of a word without the endings that inflection changes."""
    word = _PARTICIPLE.sub(r"\1", word.translate(_ACCENTS))
    for _ in range(2):
        word = _SUFFIX.sub("", word)
    if len(word) > MINIMUM_STEM and word[-1] == word[-2]:
        word = word[:-1]
    return word[:STEM_CHARACTERS]


def language_of(text: str) -> Language | Literal["unknown"] | None:
    """Return the language of *text*: `unknown` for another, None where it is too short."""
    text = text[:SAMPLED_CHARACTERS]
    words = _WORD.findall(text.casefold())
    han, kana, other = (len(script.findall(text)) for script in (_HAN, _KANA, _OTHER_SCRIPT))
    if han + kana > max(SHORTEST_SAMPLE, 2 * len(words)):
        return "Japanese" if 10 * kana > han else "Chinese"
    if other > max(4 * SHORTEST_SAMPLE, len(words)):
        return "unknown"
    if len(words) < SHORTEST_SAMPLE:
        return None
    language, count = _closest(words)
    return language if count >= MINIMUM_SHARE * len(words) else "unknown"


def language_of_sentence(sentence: str) -> Language:
    """Return the language of a sentence: English unless it has words of another."""
    if _KANA.search(sentence):
        return "Japanese"
    if _HAN.search(sentence):
        return "Chinese"
    language, count = _closest(_WORD.findall(sentence.casefold()))
    return language if count >= 2 else "English"


def _closest(words: Sequence[str]) -> tuple[Language, int]:
    """Return the language that has most of *words* among its function words, and how many."""
    counts = [(language, sum(map(own.__contains__, words))) for language, own in _COMMON_WORDS.items()]
    return max(counts, key=itemgetter(1))


def unknown_share(texts: Iterable[str]) -> float:
    """Return the share of the characters of *texts* that is in a language without known words."""
    lengths = [(len(text), language_of(text)) for text in texts]
    total = sum(length for length, language in lengths if language is not None)
    return sum(length for length, language in lengths if language == "unknown") / total if total else 0.0
