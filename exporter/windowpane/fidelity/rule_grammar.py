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

from windowpane.fidelity.languages import COMMON_WORDS, Language, pattern_of, words_of


def _pattern(*alternatives: str, start: bool = False) -> re.Pattern[str]:
    joined = "|".join(alternatives)
    return re.compile(rf"^(?:{joined})" if start else joined, re.IGNORECASE)


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


# -- English ---------------------------------------------------------------------------------------------------

_VERBS: Final = "|".join(sorted(words_of("verbs")))
_CONFIRMATION: Final = r"(?:approval|permission|consent|confirmation|sign-?off|review)"
_HEAD: Final = _pattern(
    r"(?:you )?(?:absolutely |should |must )?never (?!\w+ed\b(?<!\bneed)(?<!\bembed)(?<!\bproceed)"
    r"|\w+[^s\W]s\b|(?:in|on|at|the|an?|by|for|with|as|to|saw|was|were|had|did|got|went|came|made|took|gave"
    r"|found|knew)\b)\w",
    r"(?:you )?(?:do not|don['’]?t) (?:ever )?(?!worry|mind|know|think|see|understand|care|believe|recall|need"
    r"|have|want|forget)\w",
    r"(?:you )?always \w",
    r"(?:you )?(?:must|shall)(?: not)? \w",
    r"(?:strongly )?prefer \w|avoid \w|refrain from |limit (?:yourself|your|the|all|each)\b|stick (?:to|with) ",
    r"under no circumstances|at no point|no exceptions",
    rf"ask (?:me|first|before|the user|for (?:\w+ )?{_CONFIRMATION})\b",
    rf"wait for (?:my|me|the user|(?:\w+ )?{_CONFIRMATION})\b",
    r"check with (?:me|the user)\b|confirm (?:with me )?before\b|stop and ask\b",
    rf"(?:otherwise )?only (?:ever )?(?:{_VERBS})\b",
    rf"(?:{_VERBS}) (?:no (?!longer|one)|nothing )\w|(?:{_VERBS}) (?:(?!is\b|are\b|was\b|were\b)[\w-]+"
    rf" ){{0,2}}only(?: \w|[.!]?$)",
    r"only (?:one|two|three|a single|\d+) \w",
    r"no (?:(?:code|more|other|breaking|further|file|api|additional) )?(?:changes?|edits?|commits?|push(?:es"
    r"|ing)?|comments?|emojis?|new (?:files|features|dependencies)|refactoring)\b",
    start=True,
)
"""The start of a clause that forbids, obliges or limits."""

_AGENT: Final = r"(?:you|(?:sub-?)?agents?|the (?:assistant|agent|model|coordinator|reviewer)|claude|codex)"
_ADDRESSED: Final = _pattern(
    rf"\b(?:{_AGENT}|we) (?:(?:must|shall|should|may) (?:not|never|only|always)|can (?:not|never|only)|will"
    rf" (?:never|only|always))\b",
    rf"\b{_AGENT} (?:must|shall|cannot|can['’]t|mustn['’]t|shouldn['’]t|have to (?:always|ask))\b",
    rf"\b{_AGENT} are (?:not |only )?(?:allowed|permitted|required|expected|forbidden)\b",
    r"\b(?:if|when) you\b.*\byou (?:should|must|need to|have to)\b",
    r"\bi (?:(?:do not|don['’]t|never) want (?:you|any|us|to see)|(?:always )?want you to (?:always|never"
    r"|only))\b",
    r"\bi (?:prefer (?!to )\w+ (?:over|to|instead)|expect you to)\b",
    r"\bwe (?:never|always) (?!\w+ed\b)\w+|\bwe (?:do not|don['’]t) want (?:an?|any) ",
    rf"\bwithout (?:first )?(?:asking|(?:my|the user['’]s|explicit|prior|user) (?:\w+ )?(?:{_CONFIRMATION}"
    rf"|request))\b",
    r"\bunless (?:explicitly |specifically )?(?:i|asked|told|instructed|requested|the user|you are"
    r"|you['’]re)\b",
    r"\botherwise (?:only|never)\b|\b(?:from now on|going forward|every time|each time you|at all times)\b",
)
"""An obligation of the agent anywhere in a sentence."""

_CAPITALS: Final = re.compile(r"\b(?:[Yy]ou|YOU) (?:MUST|SHALL|SHOULD)\b|\b(?:MANDATORY|FORBIDDEN|PROHIBITED)\b")
"""Words in capitals as in RFC 2119, which oblige also where the small ones advise."""

_IMPERSONAL: Final = _pattern(
    r"\b(?:must|mustn['’]t|shall)\b(?! have (?:been|had))",
    rf"(?:^|[,;:] (?:and |but |then |that )?|\bthat ){_AGENT} (?:should|need to|have to)\b",
    r"(?<!^)(?<!\bwe )(?<!\bi )\bshould (?!i\b|we\b|see\b|work\b|now\b|already\b|have been\b)\w|\bshouldn['’]t\b"
    r"|\b(?:at most|no more than) \w",
    r"\b(?:is|are) (?:strictly )?(?:forbidden|prohibited|not allowed|mandatory|required|blocking|never"
    r" (?:acceptable|allowed|okay|ok|permitted|to be))\b",
    r"\bmay (?:not|only|never)\b|\bneeds? to be\b|\brequires? (?:\w+ )?(?:approval|permission|confirmation)\b"
    r"|\b(?:has|have) to be\b|\b(?:can|may) (?:be \w+ )?only\b",
    r"\bcannot be \w+(?:ed|wn|en)\b|^(?:all|every|each|any) [^.;:]{1,60}(?<!\byou) (?:requires?|needs?) ",
)
"""An obligation of the work: `commits must be signed`. A user who describes the work writes that too."""

_ALL: Final = _pattern(r"(?:all|every|each|any|no) \w+", start=True)
IMPERATIVE: Final = _pattern(
    rf"(?:{_VERBS})(?:[.!]$| (?!(?:is|are|was|were|of|has|have|means)\b|& )\S)", start=True
)
_GENERAL: Final = _pattern(
    r"(?:keep|ensure|make sure|treat|honor|respect|preserve|limit|cite|favor|stay|stick|maintain|reserve"
    r"|adhere|minimize|be) ",
    start=True,
)
"""Imperatives that are not steps."""
_ORDERS: Final = _pattern(r"\bbefore \w+ing\b")
"""Says what comes first, also where it is one of the steps."""
_NEITHER: Final = _pattern(r"no (?!one\b|need\b|longer\b|problem|worr|idea\b)[\w/'’ -]{4,60}[.!]?$", start=True)
_FINITE: Final = _pattern(r"\b(?:is|are|was|were|has|have|can|will|would|had|does|did|needed|found|issues)\b")
_YOU_DO: Final = _pattern(
    r"you (?!(?:and|are|have|can|could|will be|were|may|might|just|did|know|see|want|need|get|had|would|do"
    r"|think|never|struggle|tend|like|love|\w+ed)\b|['’])\w+",
    start=True,
)
_WHENEVER: Final = _pattern(
    r"(?:please )?(?:when(?:ever)?|before|each time|every time) (?:you|\w+ing|in doubt|unsure|asked)\b",
    start=True,
)
_CONDITIONAL: Final = _pattern(r"(?:please )?(?:if|when(?:ever)?|before|after|unless|until|for|in) ", start=True)

_LABEL: Final = re.compile(
    rf"^(?!(?i:{_VERBS}|never|always|do|don['’]?t|only|no|if|when|before|after|must|you|we|i)\b(?:[^:]+"
    rf" ){{3}})[A-Z][\w /&'’+-]{{1,40}}(?:[:：]| [—–-]) +"
    r"|^[^\W\d_]{2,12}[：:] *(?=[\u3040-\u9fff])"
)
"""A label before a sentence: `Tests: run them first`."""
_CONDITION: Final = _pattern(
    r"(?:(?:and|or|but|so) )?(?:when(?:ever)?|if|before|after|for|in|on|unless|while|during|as|once|until"
    r"|without|by|at|to"
    r"|because|since|with|under|given|where(?:ver)?|even|except|outside|otherwise|wenn|falls|bevor|vor|nach"
    r"|bei|für|si"
    r"|avant|après|pour|quand|lorsque|antes|después|para|cuando)\b[^,:;]{0,140}[,:;] *",
    start=True,
)
_ADVERBS: Final = _pattern(
    r"(?:(?:please|also|then|instead|and|but|so|or|however|again|just|simply|finally|first|additionally"
    r"|therefore|thus"
    r"|ok|okay|yes|no(?=,)|now|btw|actually|strictly|generally|usually|typically|briefly|explicitly|remember"
    r"|important|note"
    r"|bitte|und|aber|also|auch|s['’]il (?:te|vous) pla[iî]t|et|mais|por favor|y|pero)(?:[,:!]|\b) *)+",
    start=True,
)
_CLAUSES: Final = re.compile(
    r"[;:—–] +| - |, +(?:and |but |so |or |then )?| (?:and|but) (?=(?:never|always|do not|don['’]t)\b)|[()]",
    re.IGNORECASE,
)
_NOT_RULE: Final = _pattern(
    r"\?[\s\"'”’)\]*_`]*$",
    r"^\W*(?:never ?mind|no (?:problem|worries|need|idea|longer)\b|never (?:been|seen|heard|had|before"
    r"|again\b))",
    r"^\W*(?:don['’]?t|do not) (?:worry|mind|know|think|see|understand|get it|care|believe|recall|remember"
    r"|like|have)\b",
    r"\buse (?:when|with .* when:|this (?:skill|agent)|for:)|\b(?:skill|agent) should be used\b|^\W*triggers?"
    r" (?:when|on|with)\b",
    r"^\W*(?:for (?:example|instance)|optionally|let(?:['’]s| me| us))\b",
    r"^\W*(?:theme|goal|objective|task|title|summary|purpose)\s*[:：]",
    r"^[a-z]\w*[-:][\w:.-]*: ",
    r"^\W*(?:example|e\.g\.|bad|good|wrong|right|correct|incorrect|❌|✅|✗|✓)\s*[:：(]",
)
"""Questions, reassurances, examples, statements of the task, and descriptions of skills and their use."""

# -- headings of lists -----------------------------------------------------------------------------------------

_FORBIDDING: Final = _pattern(
    r"^\W*(?:never|do not|don['’]?t|avoid|forbidden|prohibited|must not|not allowed)\b(?!.{50})|^.{0,30}\bto"
    r" avoid\W*$"
)
_OBLIGING: Final = _pattern(
    r"^\W*(?:[\w-]+ ){0,4}(?:rules?|constraints?|requirements?|guardrails?|guidelines?|conventions?|principles"
    r"|always|must"
    r"|boundaries|instructions)\b(?!.{40})"
)
_STEPS: Final = _pattern(
    r"^\W*(?:to \w|how to|[^.:]{0,60}\bsteps?|process|procedure|workflow|usage|examples?|commands?"
    r"|(?:\w+ )?scenario|tasks?|goals|output"
    r"|confirm|verify|checklist|phase|red flags)\b|\b(?:can|options?|choices?)\b"
)

_PERMITTING: Final = _pattern(
    r"^\W*(?:ok(?:ay)?|fine|safe|allowed|permitted|free) to\b",
    r"^(?!.*(?:never|not|n['’]t|\bno)\b).{0,60}\bwithout (?:\w+ ){0,2}(?:consent|approval|permission|asking)\b",
)

# -- other languages -------------------------------------------------------------------------------------------

_HAN: Final = re.compile(r"[\u3400-\u9fff]")
_KANA: Final = re.compile(r"[\u3040-\u30ff]")
_LETTERS: Final = re.compile(r"[^\W\d_]+")
_OTHER: Final = {
    language: pattern_of("rule", language) for language in get_args(Language) if language != "English"
}
MINIMUM_WORDS: Final = 2


@lru_cache(maxsize=4_096)  # prompts and memory files are read again after every compaction
def rule_of(passage: Passage, register: Register) -> str | None:
    """Return the wording of the rule that *passage* states; None if it states none.

    An item of a list that is headed `Never:` or `Do not:` is worded with the heading.
    """
    sentence = passage.text
    heading = sentence if passage.is_heading else passage.heading
    if _NOT_RULE.search(sentence) or _PERMITTING.search(heading):
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
    if _HEAD.match(opening(sentence)) or _ADDRESSED.search(sentence) or _CAPITALS.search(sentence):
        return True
    return any(_HEAD.match(opening(clause)) for clause in _CLAUSES.split(sentence)[1:] if clause)


def _instructs(passage: Passage, register: Register) -> bool:
    """Return whether *passage* is a rule by its place: an instruction that is not a request for one step."""
    sentence, clause = _LABEL.sub("", passage.text, count=1), opening(passage.text)
    in_rule_list = passage.is_item and _OBLIGING.search(passage.heading) is not None
    is_imperative = bool(IMPERATIVE.match(clause) or _excludes(clause)) and not _STATES.search(sentence)
    if register == "request" and not in_rule_list:
        is_conditional = bool(_WHENEVER.match(sentence) and is_imperative)
        return is_conditional or bool(_ALL.match(clause) and _IMPERSONAL.search(clause))
    if _CONDITIONAL.match(sentence) and (is_imperative or _has_imperative(sentence)):
        return True
    if passage.is_heading:
        return False
    if _reminds(sentence) or _IMPERSONAL.search(sentence) or (register == "prompt" and _YOU_DO.match(clause)):
        return True
    if in_rule_list:
        return is_imperative
    is_step = (passage.is_step and not _LABEL.match(passage.text)) or (
        passage.is_item and _STEPS.search(passage.heading) is not None
    )
    return is_imperative and (not is_step or bool(_GENERAL.match(clause) or _ORDERS.search(clause)))


_STATES: Final = re.compile(r"[:：]$|\w = | (?:→|->) |(?<![\w-])now[.!]?$")
"""The marks of a line that introduces, equates, maps, or asks for one step at once."""


def _excludes(clause: str) -> bool:
    """Return whether *clause* is `no` and what there should not be, without a verb."""
    return _NEITHER.match(clause) is not None and _FINITE.search(clause) is None


def _has_imperative(sentence: str) -> bool:
    return any(IMPERATIVE.match(opening(clause)) for clause in _CLAUSES.split(sentence)[1:] if clause)


def _reminds(sentence: str) -> bool:
    """Return whether a later clause is a general imperative: `…, so make sure that …`."""
    return any(_GENERAL.match(opening(clause)) for clause in _CLAUSES.split(sentence)[1:] if clause)


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
    if _KANA.search(sentence):
        return _OTHER["Japanese"]
    if _HAN.search(sentence):
        return _OTHER["Chinese"]
    words = _LETTERS.findall(sentence.casefold())
    counts = {language: sum(map(own.__contains__, words)) for language, own in COMMON_WORDS.items()}
    language = max(counts, key=lambda one: counts[one])
    return _OTHER.get(language) if counts[language] >= MINIMUM_WORDS else None
