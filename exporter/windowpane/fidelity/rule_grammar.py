"""The grammar by which a sentence states a rule, in English, German, French, Spanish, Chinese and Japanese.

A sentence states a rule if one of its clauses forbids, obliges, limits or prefers, and is addressed to the agent:
`never push`, `you must not …`, `commits must be signed`. In system prompts and memory files a plain imperative
does too: what is written there holds for every request. In a message of the user, and in a prompt in one, it is a
request, and so is a numbered step of a procedure.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from windowpane.fidelity.languages import language_of_sentence, pattern_of, vocabulary_of

Register = Literal["prompt", "instructions", "pasted", "request"]
"""Kind of a text: a system prompt; a memory file; a prompt in a message; or any other message of the user."""


class Passage(NamedTuple):
    """A sentence and its place in a list."""

    text: str
    heading: str = ""
    """Heading of the list; empty outside of lists."""
    is_heading: bool = False
    is_step: bool = False
    """True for a numbered item, a task, and items inside one."""


_LABEL: Final = re.compile(
    rf"^(?!(?i:do not|don['’]?t) |(?i:{'|'.join(sorted(vocabulary_of('verbs')))}|never|always|do|only|no|if|when"
    rf"|before|after|must|you|we|i)\b(?:[^:]+ ){{3}})[A-Z][\w /&'’+-]{{1,40}}(?:[:：]| [—–-]) +"
    r"|^[^\W\d_]{2,12}[：:] *(?=[\u3040-\u9fff])"
)
"""A label before a sentence: `Tests: run them first`."""
_CLAUSES: Final = re.compile(
    r"[;:—–] +| - |, +(?:and |but |so |or |then )?|[()]"
    r"| (?:and|but|so) (?=(?:pls |please )?(?:never|always|do not|don['’]?t)\b)",
    re.IGNORECASE,
)
_STATES: Final = re.compile(r"[:：]$|\w = | (?:→|->) |(?<![\w-])now[.!]?$")
"""The marks of a line that introduces, equates, maps, or asks for one step at once."""
LIST_MARK: Final = re.compile(
    r"[\s>#(]*(?P<item>[-*+•–]\s+|(?P<number>\(?\d{1,3}[.)]|[a-z][.)]|[-*] \[[ xX]\])\s+)?"
    r"(?:[\u2190-\u2bff\ufe0f\U0001f000-\U0001faff]\s*|</?\w+>\s*)*"
)
"""The start of a line of Markdown; `item` of a list, `number` of a step."""
_EMPHASIS: Final = re.compile(r"\*\*|(?<![\w`*_])([*_])(?=[^\s*_])([^*_`]+)\1(?![\w`])")


@lru_cache(maxsize=4_096)  # prompts and memory files are read again after every compaction
def rule_of(passage: Passage, register: Register) -> str | None:
    """Return the wording of the rule that *passage* states; None if it states none.

    An item of a list that is headed `Never:` or `Do not:` is worded with the heading.
    """
    sentence = passage.text
    heading = sentence if passage.is_heading else passage.heading
    if _has("excluded", sentence) or _has("permitting_heading", heading):
        return None
    if _has("forbidding_heading", passage.heading):
        return worded(passage)
    language = language_of_sentence(sentence)
    if language != "English":
        stated = pattern_of("described", language).sub("", sentence) if register == "request" else sentence
        return sentence if pattern_of("rule", language).search(opening(stated)) else None
    is_opened = _starts("opening", opening(sentence)) or _continues("opening", sentence)
    return sentence if is_opened or _has("addressed", sentence) or _instructs(passage, register) else None


def worded(passage: Passage) -> str:
    """Return a sentence as it is understood alone: an item of a list that forbids with its heading."""
    if _has("forbidding_heading", passage.heading):
        return f"{passage.heading.rstrip(':： ')}: {passage.text}"
    return passage.text


def opening(sentence: str) -> str:
    """Return *sentence* from its main clause on, without labels, conditions and adverbs."""
    for _ in range(3):
        shorter = sentence
        for start in (_LABEL, pattern_of("adverb", "English"), pattern_of("condition", "English")):
            shorter = start.sub("", shorter, count=1)
        if shorter == sentence:
            break
        sentence = shorter
    return sentence


def _has(kind: str, text: str) -> bool:
    return pattern_of(kind, "English").search(text) is not None


def _starts(kind: str, text: str) -> bool:
    return pattern_of(kind, "English").match(text) is not None


def _continues(kind: str, sentence: str) -> bool:
    """Return whether a later clause of a sentence starts so."""
    return any(_starts(kind, opening(clause)) for clause in _CLAUSES.split(sentence)[1:] if clause)


def _instructs(passage: Passage, register: Register) -> bool:
    """Return whether *passage* is a rule by its place: an instruction that is not a request for one step."""
    sentence, clause = _LABEL.sub("", passage.text, count=1), opening(passage.text)
    in_rule_list = _has("obliging_heading", passage.heading)
    is_imperative = _starts("imperative", clause) and not _STATES.search(sentence)
    if register == "request" and not in_rule_list:
        if is_imperative:
            return _starts("whenever", sentence) or _has("recurring", sentence)
        return _starts("all", clause) and _has("impersonal", clause)
    is_conditional = _starts("conditional", sentence) and (is_imperative or _continues("imperative", sentence))
    if is_conditional or passage.is_heading:
        return is_conditional
    is_habit = register == "prompt" and _starts("habit", clause)
    if is_habit or _continues("general", sentence) or _has("impersonal", sentence):  # `…, so make sure that …`
        return True
    if in_rule_list or not is_imperative:
        return is_imperative or _has("rules_heading", passage.heading)
    in_steps = passage.is_step and not _LABEL.match(passage.text)
    is_step = register == "pasted" or in_steps or _has("steps_heading", passage.heading)
    return not is_step or _starts("general", clause) or _has("order", clause)


def plain(line: str) -> str:
    """Return a line of Markdown without its list mark, tags and emphasis."""
    return " ".join(_EMPHASIS.sub(r"\2", LIST_MARK.sub("", line, count=1)).split())
