"""Reads a judge's words strictly: what is not plainly a yes is no yes, and a shrug is no answer."""

from __future__ import annotations

import re
from typing import Final, Literal

Verdict = Literal["yes", "no"]

_FRAME: Final = re.compile(r"^[\s\"'`*_#>(\[]+|[\s\"'`*_)\]]+$")
_VERDICT: Final = re.compile(r"(yes|no)(?![\w'’/-])", re.IGNORECASE)
_OTHER: Final[dict[str, re.Pattern[str]]] = {
    "yes": re.compile(r"\bno\b", re.IGNORECASE),
    "no": re.compile(r"\byes\b", re.IGNORECASE),
}
_UNKNOWN: Final = re.compile(
    r"(?:unknown|unclear|n/?a|none given|no answer"
    r"|not (?:stated|mentioned|given|specified|known|available|found))"
    r"(?=\s*(?:$|[.,:;!?()–—-]))"
    r"|i(?: do not| don['’]?t| cannot| can['’]?t) (?:know|tell|say|determine|find|answer)"
    r"|(?:it|this|that) (?:is|was) (?:not|n['’]t) (?:stated|mentioned|given|specified|known|clear)"
    r"|(?:the|this) (?:\w+ ){0,2}(?:text|context|summary|passage|content|material)s?"
    r" (?:does not|doesn['’]?t|do not|says nothing)"
    r"|there is no (?:information|mention)",
    re.IGNORECASE,
)


def read_verdict(said: str) -> Verdict | None:
    """`yes` or `no` where the first word is one of them and the sentence does not take it back; else None.

    "No, yesterday" is no; "yesterday", "yes and no" and "the answer might be yes" are nothing.
    """
    text = _FRAME.sub("", said)
    found = _VERDICT.match(text)
    if found is None:
        return None
    verdict: Verdict = "yes" if found[1].lower() == "yes" else "no"
    sentence = re.split(r"[.\n;]", text[found.end() :], maxsplit=1)[0]
    return None if _OTHER[verdict].search(sentence) else verdict


def read_answer(said: str) -> str | None:
    """The answer, or None where it says that it does not know; an error called `unknown host` is an answer."""
    text = _FRAME.sub("", said).strip()
    return None if not text or _UNKNOWN.match(text) else text
