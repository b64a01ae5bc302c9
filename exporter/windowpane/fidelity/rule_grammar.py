"""The grammar by which a sentence states a rule, in English, German, French, Spanish, Chinese and Japanese.

A sentence states a rule if one of its clauses forbids, obliges, limits or prefers, and is addressed to the agent:
`never push`, `you must not …`, `commits must be signed`. In system prompts and memory files a plain imperative
does too: what is written there holds for every request. In a message of the user it is a request, and so is a
numbered step of a procedure.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, Literal, NamedTuple, get_args

from windowpane.fidelity.languages import (
    HAN,
    KANA,
    Language,
    closest_language,
    pattern_of,
    terms_in,
    vocabulary_of,
)

Register = Literal["prompt", "instructions", "request"]
"""Kind of a text: a system prompt; a memory file, or a prompt in a message; or any other message of the user."""


class Passage(NamedTuple):
    """A sentence and its place in a list."""

    text: str
    heading: str = ""
    """Heading of the list; empty outside of lists."""
    is_heading: bool = False
    is_item: bool = False
    is_step: bool = False
    """True for a numbered item, a task, and items inside one."""


_OPENING: Final = pattern_of("opening", "English")
"""The start of a clause that forbids, obliges or limits."""
_ADDRESSED: Final = pattern_of("addressed", "English")
"""An obligation of the agent anywhere in a sentence."""
_IMPERSONAL: Final = pattern_of("impersonal", "English")
"""An obligation of the work: `commits must be signed`. A user who describes the work writes that too."""
IMPERATIVE: Final = pattern_of("imperative", "English")
_GENERAL: Final = pattern_of("general", "English")
"""Imperatives that are not steps."""
_ORDER: Final = pattern_of("order", "English")
"""Order of two steps, also where it is one of the steps."""
_HABIT: Final = pattern_of("habit", "English")
_ALL: Final = re.compile(r"(?:all|every|each|any|no) \w", re.IGNORECASE)
_WHENEVER: Final = pattern_of("whenever", "English")
_CONDITIONAL: Final = pattern_of("conditional", "English")
_CONDITION: Final = pattern_of("condition", "English")
_ADVERBS: Final = pattern_of("adverb", "English")
_EXCLUDED: Final = pattern_of("excluded", "English")
"""Questions, reassurances, examples, statements of the task, and descriptions of skills and their use."""
_FORBIDDING: Final = pattern_of("forbidding_heading", "English")
_OBLIGING: Final = pattern_of("obliging_heading", "English")
_PERMITTING: Final = pattern_of("permitting_heading", "English")
_STEPS: Final = pattern_of("steps_heading", "English")
_CAPITALS: Final = re.compile(r"\b(?:[Yy]ou|YOU) (?:MUST|SHALL|SHOULD)\b|\b(?:MANDATORY|FORBIDDEN|PROHIBITED)\b")
"""Words in capitals as in RFC 2119, which oblige also where the small ones advise."""
_LABEL: Final = re.compile(
    rf"^(?!(?i:do not|don['’]?t) |(?i:{'|'.join(sorted(vocabulary_of('verbs')))}|never|always|do|only|no|if|when"
    rf"|before|after|must|you|we|i)\b(?:[^:]+ ){{3}})[A-Z][\w /&'’+-]{{1,40}}(?:[:：]| [—–-]) +"
    r"|^[^\W\d_]{2,12}[：:] *(?=[\u3040-\u9fff])"
)
"""A label before a sentence: `Tests: run them first`."""
_CLAUSES: Final = re.compile(
    r"[;:—–] +| - |, +(?:and |but |so |or |then )?| (?:and|but) (?=(?:never|always|do not|don['’]t)\b)|[()]",
    re.IGNORECASE,
)
_OTHER: Final = {
    language: pattern_of("rule", language) for language in get_args(Language) if language != "English"
}


@lru_cache(maxsize=4_096)  # prompts and memory files are read again after every compaction
def rule_of(passage: Passage, register: Register) -> str | None:
    """Return the wording of the rule that *passage* states; None if it states none.

    An item of a list that is headed `Never:` or `Do not:` is worded with the heading.
    """
    sentence = passage.text
    heading = sentence if passage.is_heading else passage.heading
    if _EXCLUDED.search(sentence) or _PERMITTING.search(heading):
        return None
    if passage.is_item and _FORBIDDING.search(passage.heading):
        return worded(passage)
    pattern = _other_language(sentence)
    if pattern is not None:
        return sentence if pattern.search(opening(sentence)) else None
    return sentence if _obliges(sentence) or _instructs(passage, register) else None


def worded(passage: Passage) -> str:
    """Return a sentence as it is understood alone: an item of a list that forbids with its heading."""
    if passage.is_item and _FORBIDDING.search(passage.heading):
        return f"{passage.heading.rstrip(':： ')}: {passage.text}"
    return passage.text


def opening(sentence: str) -> str:
    """Return *sentence* from its main clause on, without labels, conditions and adverbs."""
    for _ in range(3):
        shorter = _CONDITION.sub("", _ADVERBS.sub("", _LABEL.sub("", sentence, count=1), count=1), count=1)
        if shorter == sentence:
            break
        sentence = shorter
    return sentence


def _obliges(sentence: str) -> bool:
    """Return whether *sentence* forbids, obliges or limits, in any register."""
    is_addressed = _ADDRESSED.search(sentence) or _CAPITALS.search(sentence)
    return bool(is_addressed or _OPENING.match(opening(sentence))) or _continues(sentence, _OPENING)


def _continues(sentence: str, pattern: re.Pattern[str]) -> bool:
    """Return whether a later clause of a sentence starts so."""
    return any(pattern.match(opening(clause)) for clause in _CLAUSES.split(sentence)[1:] if clause)


def _instructs(passage: Passage, register: Register) -> bool:
    """Return whether *passage* is a rule by its place: an instruction that is not a request for one step."""
    sentence, clause = _LABEL.sub("", passage.text, count=1), opening(passage.text)
    in_rule_list = passage.is_item and _OBLIGING.search(passage.heading) is not None
    is_imperative = bool(IMPERATIVE.match(clause)) and not _STATES.search(sentence)
    if register == "request" and not in_rule_list:
        return bool(
            _WHENEVER.match(sentence) if is_imperative else _ALL.match(clause) and _IMPERSONAL.search(clause)
        )
    is_conditional = _CONDITIONAL.match(sentence) and (is_imperative or _continues(sentence, IMPERATIVE))
    if is_conditional or passage.is_heading:
        return bool(is_conditional)
    if _continues(sentence, _GENERAL) or _IMPERSONAL.search(sentence):  # `…, so make sure that …`
        return True
    if register == "prompt" and _HABIT.match(clause):
        return True
    if in_rule_list:
        return is_imperative
    is_step = (passage.is_step and not _LABEL.match(passage.text)) or (
        passage.is_item and _STEPS.search(passage.heading) is not None
    )
    return is_imperative and (not is_step or bool(_GENERAL.match(clause) or _ORDER.search(clause)))


_STATES: Final = re.compile(r"[:：]$|\w = | (?:→|->) |(?<![\w-])now[.!]?$")
"""The marks of a line that introduces, equates, maps, or asks for one step at once."""


def plain(line: str) -> str:
    """Return a line of Markdown without its list mark, tags and emphasis."""
    return " ".join(_EMPHASIS.sub(r"\2", LIST_MARK.sub("", line, count=1)).split())


LIST_MARK: Final = re.compile(
    r"[\s>#(]*(?P<item>[-*+•–]\s+|(?P<number>\(?\d{1,3}[.)]|[a-z][.)]|[-*] \[[ xX]\])\s+)?"
    r"(?:[\u2190-\u2bff\ufe0f\U0001f000-\U0001faff]\s*|</?\w+>\s*)*"
)
"""The start of a line of Markdown; `item` of a list, `number` of a step."""
_EMPHASIS: Final = re.compile(r"\*\*|(?<![\w`*_])([*_])(?=[^\s*_])([^*_`]+)\1(?![\w`])")


def _other_language(sentence: str) -> re.Pattern[str] | None:
    """Return the pattern of a rule in the language of *sentence*; None for English."""
    if KANA.search(sentence):
        return _OTHER["Japanese"]
    if HAN.search(sentence):
        return _OTHER["Chinese"]
    language, count = closest_language(terms_in(sentence))
    return _OTHER.get(language) if count >= 2 else None
