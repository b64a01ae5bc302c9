"""Words of the languages in which decisions, negations and reasons are recognized.

Names, numbers, paths and code are recognized in any language; what depends on words is measured only in these.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, Literal

Language = Literal["English", "German", "French", "Spanish", "Chinese", "Japanese"]

SAMPLED_CHARACTERS: Final = 4_000
"""Characters of each text by which its language is recognized."""
MINIMUM_SHARE: Final = 0.12
"""Share of function words from which a text is in a language; other languages share few of them."""
SHORTEST_SAMPLE: Final = 20
"""Shorter texts are of any language."""
STEM_CHARACTERS: Final = 7


def _terms(text: str) -> frozenset[str]:
    return frozenset(text.split())


_FUNCTION_TERMS: Final[dict[Language, frozenset[str]]] = {
    "English": _terms(
        "a about after all also an and any are as at be because been before both but by can could did do"
        " does each else for from had has have he her here him his how i if in into is it its just let like"
        " make may more most my need of on only or other our out over same she should so some such than that"
        " the their them then there these they this those through to under up use used uses using very want"
        " was we were what when where which while who why will with would you your"
    ),
    "German": _terms(
        "aber als am an auch auf aus bei bin bis bitte da damit das dass dem den der des die dies diese"
        " dieser du durch ein eine einem einen einer eines er es für haben hat ich im in ist ja jede jeder"
        " kann man mit nach noch nur oder schon sein sich sie sind so soll über um und uns unter von vor war"
        " weil wenn wie wir wird wurde zu zum zur"
    ),
    "French": _terms(
        "au aux avec ce cela ces cette c'est comme d dans de des du elle en est et être fait ici il ils j"
        " je l la le les leur lui mais même mon ne nous on ont ou où par parce plus pour qu que qui s sa"
        " sans se ses si son sont sur tous tout un une vous y été"
    ),
    "Spanish": _terms(
        "a al algo como con cuando de del desde donde el ella en entre era es esta está este esto fue ha"
        " hay la las le lo los más me mi muy o para pero por porque que qué se ser si sí sobre su sus"
        " también tan tiene todo todos un una uno y ya yo"
    ),
    "Chinese": frozenset(),
    "Japanese": frozenset(),
}
_FILLERS: Final = _terms(
    "keep keeps kept stay stays remain remains remained set sets number count value currently still now"
    " bleiben bleibt halte lass setze anzahl wert garde gardez reste restent nombre valeur"
    " mantén mantener queda quedan número valor"
)
"""Words between a value and what it is the value of."""
STOPWORDS: Final = _FILLERS.union(*_FUNCTION_TERMS.values())
CJK_FUNCTION: Final = frozenset("的了为是在和与把被将は を が の に で も と へ や".replace(" ", ""))
"""Characters of Chinese and Japanese that stand between words."""

NEGATIONS: Final = _terms(
    "not no never cannot without neither nor none dont don't can't won't unable avoid forbidden prohibited refuse"
    " nicht kein keine keinen keinem keiner keines nie niemals ohne weder verboten vermeide vermeiden"
    " pas jamais aucun aucune sans rien interdit évite éviter évitez"
    " nunca jamás sin ningún ninguna ninguno prohibido evita evitar evite"
    " 不 没 未 勿 别 禁止 避免 无需 無 ない ません ありません なく なし しないで ず 禁 避け"
)
"""Words that negate; of Spanish `no` is that of English."""

_SUFFIXES: Final = (
    "ations", "ation", "ments", "ment", "ings", "ing", "ers", "ied", "ies", "ed", "es", "er", "en", "s", "e", "y",
)  # fmt: skip
MINIMUM_STEM: Final = 3


def stem(word: str) -> str:
    """Return the start of a word without the endings that inflection changes."""
    for _ in range(2):
        for suffix in _SUFFIXES:
            if word.endswith(suffix) and len(word) - len(suffix) >= MINIMUM_STEM:
                word = word[: -len(suffix)]
                break
    if len(word) > MINIMUM_STEM and word[-1] == word[-2]:
        word = word[:-1]
    return word[:STEM_CHARACTERS]


STANCE_STEMS: Final = frozenset(
    stem(word)
    for word in _terms(
        "always must should shall permitted okay fine required require requires need needs necessary optional"
        " please allowed forbidden prohibited avoid ensure sure prefer rule rules constraint constraints user"
        " users asked want wants explicit explicitly instruction instructions every ever strictly"
        " immer muss müssen darf dürfen sollen darfst dürft kannst toujours doit dois devez faut peux peut"
        " pouvez siempre debe debes deben hay puedes puede pueden usted any doing"
    )
)
"""Words that do not show what a rule is about."""

_DECIDED: Final = (
    r"\b(?:decided|chose|chosen|opted|agreed|settled on|(?:went|going|go) with"
    r"|use\b.{1,60}\b(?:instead of|rather than)"
    r"|entschieden|beschlossen|gewählt|nehmen wir|décidé|choisi|opté|retenu"
    r"|decidido|decidí|decidimos|elegido|elegí|elegimos|optado)\b"
    r"|决定|選んだ|選びました|选择了|选用|采用|改用|に決め|採用し|ことにし"
)
_BECAUSE: Final = (
    r"\b(?:because|since|so that|due to|in order to|as it|otherwise"
    r"|weil|denn|damit|wegen|da (?:es|sie|der|die|das)"
    r"|parce qu|car|afin|puisque|pour que|à cause"
    r"|porque|ya que|puesto que|para que|debido)"
    r"|因为|由于|以便|以免|ため|ので|から"
)
DECISION: Final = re.compile(_DECIDED, re.IGNORECASE)
REASON: Final = re.compile(_BECAUSE, re.IGNORECASE)

_WORD: Final = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_KANA: Final = re.compile(r"[\u3040-\u30ff]")
_HAN: Final = re.compile(r"[\u4e00-\u9fff]")
_OTHER_SCRIPT: Final = re.compile(r"[\u0370-\u1fff\ua000-\ud7af]")
"""Letters of scripts of which no words are known."""


def language_of(text: str) -> Language | Literal["unknown"] | None:
    """Return the language of *text*: `unknown` for another, None where it is too short."""
    text = text[:SAMPLED_CHARACTERS]
    letters = len(_WORD.findall(text))
    han, kana, other = (len(script.findall(text)) for script in (_HAN, _KANA, _OTHER_SCRIPT))
    if han + kana > max(SHORTEST_SAMPLE, 2 * letters):
        return "Japanese" if 10 * kana > han else "Chinese"
    words = [word.casefold() for word in _WORD.findall(text)]
    if other > max(4 * SHORTEST_SAMPLE, len(words)):
        return "unknown"
    if len(words) < SHORTEST_SAMPLE:
        return None
    counts = {language: sum(map(own.__contains__, words)) for language, own in _FUNCTION_TERMS.items()}
    best = max(counts, key=lambda language: counts[language])
    return best if counts[best] >= MINIMUM_SHARE * len(words) else "unknown"


def unknown_share(texts: Iterable[str]) -> float:
    """Return the share of the characters of *texts* that is in a language without known words."""
    lengths = [(len(text), language_of(text)) for text in texts]
    total = sum(length for length, language in lengths if language is not None)
    return sum(length for length, language in lengths if language == "unknown") / total if total else 0.0
