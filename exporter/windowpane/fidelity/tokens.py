"""Tokens of a text: words, names, paths and numbers, each distinct one classified once.

A token lies within a run of letters, digits and the punctuation of names. So the names of a text are found by
splitting it into runs and reading each distinct run once; the regular expression reads tokens in order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from string import ascii_letters, digits
from typing import Final, Literal, NamedTuple

from windowpane.core.remembered import MAXIMUM_LENGTH, Remembered

NameKind = Literal["identifier", "number", "path"]
CueKind = Literal["error", "decision", "constraint", "open_work"]
TokenKind = NameKind | CueKind

_PUNCTUATION: Final = ".-/@~$+"
_P: Final = f"[{re.escape(_PUNCTUATION)}]"
_W: Final = r"[A-Za-z0-9_%\w]"
"""A character of a word; most are in ASCII, where a set is faster than a category."""
_RUNS: Final = rf"{_W}++(?:{_P}++{_W}++)*+"
TOKEN: Final = re.compile(rf"(?=[{re.escape(_PUNCTUATION)}=:A-Za-z0-9_%\w])(?:{_RUNS}|{_P}{{1,32}}{_RUNS}|[=:])")
"""Words, names, paths and numbers whole, without the punctuation that ends them; `=` and `:` for keys.

No more than so many signs before a word are read as its beginning: a line of a million dots costs no more than
any other.
"""

_NUMBER: Final = re.compile(r"[-+$]?\d[\d.,]*(?:%|[A-Za-z]{0,3})")
_PATH: Final = re.compile(r"(?:~|\.{1,2})?/?(?:[\w.@+-]+/)+[\w.@+-]+|/[\w.@+-]{2,}")
_FILE: Final = re.compile(
    r"[\w-]+\.(?:py|ts|tsx|js|jsx|go|rs|c|h|cpp|java|rb|php|sh|sql|md|txt|json|jsonl|ya?ml|toml|cfg|ini|lock"
    r"|html|css|csv|xml|log|db|proto|ipynb)"
)
_DOTTED: Final = re.compile(r"(?:[A-Za-z_]\w+\.)+[A-Za-z_]\w+")
_IDENTIFIER: Final = re.compile(
    r"[A-Za-z$_][\w$]*(?:_[\w$]+|(?<=[a-z0-9])[A-Z][\w$]*)"
    r"|[A-Z]{2,}-\d+|(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}"
)
_ERROR_ENDINGS: Final = ("Error", "Exception", "Failure")
_ERRORS: Final = frozenset(
    {"error", "ERROR", "failed", "FAILED", "Traceback", "panic", "fatal", "FATAL", *_ERROR_ENDINGS}
)
_WORD: Final = re.compile(r"\w+")
ALTERNATIVES: Final = re.compile(r"[A-Za-z]+(?:/[A-Za-z]+)+")
"""Words with slashes between them: in prose `and/or`, in a call or an output a path."""

CUES: Final[dict[str, CueKind]] = {
    **dict.fromkeys(
        (
            "decided",
            "decision",
            "chose",
            "choose",
            "chosen",
            "opted",
            "instead",
            "because",
            "rationale",
            "agreed",
        ),
        "decision",
    ),
    **dict.fromkeys(
        ("must", "never", "always", "cannot", "forbidden", "required", "constraint", "mustn", "shall", "avoid"),
        "constraint",
    ),
    **dict.fromkeys(
        ("todo", "fixme", "remaining", "pending", "next", "unresolved", "blocked", "blocker", "outstanding"),
        "open_work",
    ),
}
"""Words in lower case that make a sentence a decision, a constraint or open work."""

STOPWORDS: Final = frozenset(
    re.findall(
        r"\w+",
        "about after also been before both does each else from have here into just like make more most need only"
        " other over same should some such than that their them then there these they this those through under"
        " very want were what when where which while will with would your",
    )
)


def significant_words(tokens: Iterable[str]) -> tuple[str, ...]:
    """Return the significant words of a sentence: at least four letters or a digit, no function words."""
    words: dict[str, None] = {}
    for token in tokens:
        word = token.lower()
        if (len(word) > 3 and word not in STOPWORDS) or any(char.isdigit() for char in word):
            words[word] = None
    return tuple(words)


def _classify(token: str) -> TokenKind | None:
    """Return the kind of a name, a number or a cue for its sentence; None for other words."""
    if len(token) > MAXIMUM_LENGTH:
        return None
    cue = CUES.get(token.lower())
    if cue is not None:
        return cue
    if token in _ERRORS or (token.endswith(_ERROR_ENDINGS) and _WORD.fullmatch(token)):
        return "error"
    if token.isalpha() and token[1:].islower():
        return None  # most words: no name is like them
    return _kind_of_name(token)


def _kind_of_name(token: str) -> NameKind | None:
    if _NUMBER.fullmatch(token):
        return "number"
    is_path = _PATH.fullmatch(token) if "/" in token else "." in token and _FILE.fullmatch(token)
    if is_path:
        return "path"
    is_identifier = len(token) > 3 and (_DOTTED if "." in token else _IDENTIFIER).fullmatch(token)
    return "identifier" if is_identifier else None


TOKEN_KINDS: Final = Remembered(_classify)
"""Shared by all passes: what a token is does not depend on the text around it."""


Marked = tuple[str, TokenKind]
"""A token that is a name without a key, or a cue for its sentence, with its kind.

Plain, since tens of thousands are remembered: Python's search for cycles passes over plain tuples of strings.
"""


class KeyedNumber(NamedTuple):
    """A number with the key that names it in its line: `timeout = 30s`."""

    key: str
    value: str


class Runs:
    """A text in runs of characters that tokens can have."""

    def __init__(self, text: str) -> None:
        self._data = text.replace(_LINE_NUMBER_END, " ").encode("utf-8", "surrogatepass").translate(_TABLE)

    def marked(self) -> Iterator[Marked]:
        """Yield the distinct names and cues in order of first appearance; numbers mean nothing without a key."""
        runs = dict.fromkeys(self._data.replace(b"=", b" ").split())
        return chain.from_iterable(filter(None, map(_MARKED.__getitem__, runs)))

    def keyed_numbers(self) -> Iterator[KeyedNumber]:
        """Yield the numbers with a key, in order; a key has at least three letters."""
        data, start = self._data, 0
        for match in _KEYED.finditer(data):
            key_end = match.start()
            before = data[max(start, data.rfind(b"\n", start, key_end) + 1) : key_end].rpartition(b"=")[2]
            start = key_end + 1
            key = next((tokens[-1] for tokens in map(_tokens, reversed(before.split())) if tokens), "")
            value = next(iter(_tokens(match[1])), "")
            if len(key) > 2 and not key[0].isdigit() and TOKEN_KINDS[value] == "number":
                yield KeyedNumber(key, value)


def _tokens(run: bytes) -> list[str]:
    return TOKEN.findall(run.decode("utf-8", "surrogatepass"))


def _read_run(run: bytes) -> tuple[Marked, ...]:
    if run.isdigit():
        return ()
    kinds = [(token, _classify(token)) for token in ([run.decode()] if run.isalpha() else _tokens(run))]
    return tuple((token, kind) for token, kind in kinds if kind is not None and kind != "number")


_LINE_NUMBER_END: Final = "→"
"""Ends the line number where an agent reads a file."""
_KEPT: Final = frozenset(f"{ascii_letters}{digits}_%{_PUNCTUATION}=\n".encode()) | frozenset(range(128, 256))
_TABLE: Final = bytes(
    ord("=") if code == ord(":") else code if code in _KEPT else ord(" ") for code in range(256)
)
"""Makes spaces of ASCII characters that no token has, and `=` of `:`, which ends keys as well."""
_KEYED: Final = re.compile(rb"=([ .\-/@~$+\x80-\xff]*[0-9\x80-\xff][^ =\n]*)")
"""Possible numbers after a key."""
_MARKED: Final = Remembered(_read_run)
