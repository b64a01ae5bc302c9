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

from windowpane.core.runs import RunReader

NameKind = Literal["identifier", "number", "path"]
CueKind = Literal["error", "decision", "constraint", "open_work"]
TokenKind = NameKind | CueKind

MAXIMUM_CLASSIFIED: Final = 50_000
"""Distinct tokens whose kind is remembered."""
MAXIMUM_REMEMBERED_CHARACTERS: Final = 200

_PUNCTUATION: Final = ".-/@~$+"
_P: Final = f"[{re.escape(_PUNCTUATION)}]"
_RUNS: Final = rf"[\w%]++(?:{_P}++[\w%]++)*"
TOKEN: Final = re.compile(rf"{_RUNS}|{_P}{{1,32}}{_RUNS}|[=:]")
"""Words, names, paths and numbers whole, without the punctuation that ends them; `=` and `:` for keys.

No more than so many signs before a word are read as its beginning: a line of a million dots costs no more than
any other.
"""

_CLASS: Final = re.compile(
    r"(?P<number>[-+$]?\d[\d.,]*(?:%|[A-Za-z]{0,3}))"
    r"|(?P<error>\w*(?:Error|Exception|Failure)|error|ERROR|failed|FAILED|Traceback|panic|fatal|FATAL)"
    r"|(?P<path>(?:~|\.{1,2})?/?(?:[\w.@+-]+/)+[\w.@+-]+|/[\w.@+-]{2,}"
    r"|[\w-]+\.(?:py|ts|tsx|js|jsx|go|rs|c|h|cpp|java|rb|php|sh|sql|md|txt|json|jsonl|ya?ml|toml|cfg|ini|lock"
    r"|html|css|csv|xml|log|db|proto|ipynb))"
    r"|(?P<identifier>[A-Za-z$_][\w$]*(?:_[\w$]+|(?<=[a-z0-9])[A-Z][\w$]*)|(?:[A-Za-z_]\w+\.)+[A-Za-z_]\w+"
    r"|[A-Z]{2,}-\d+|(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40})"
)
_ERRORS: Final = frozenset({"error", "failed", "panic", "fatal", "Traceback", "Error", "Exception", "Failure"})
_KINDS: Final[dict[str | None, TokenKind]] = {
    "number": "number",
    "error": "error",
    "path": "path",
    "identifier": "identifier",
}
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


class _TokenKinds(dict[str, TokenKind | None]):
    """The kinds of tokens: of a name, a number or a cue for its sentence; None for other words."""

    def __missing__(self, token: str) -> TokenKind | None:
        kind = _classify(token)
        if len(token) <= MAXIMUM_REMEMBERED_CHARACTERS:
            if len(self) >= MAXIMUM_CLASSIFIED:
                self.clear()
            self[token] = kind
        return kind


def _classify(token: str) -> TokenKind | None:
    if len(token) > MAXIMUM_REMEMBERED_CHARACTERS:
        return None
    cue = CUES.get(token.lower())
    if cue is not None:
        return cue
    if token.isalpha() and token[1:].islower() and token not in _ERRORS:
        return None  # most words: no name is like them
    match = _CLASS.fullmatch(token)
    if match is None:
        return None
    kind = _KINDS[match.lastgroup]
    return kind if kind != "identifier" or len(token) > 3 else None


TOKEN_KINDS: Final = _TokenKinds()
"""Shared by all passes: what a token is does not depend on the text around it."""


class Marked(NamedTuple):
    """A token that is a name without a key, or a cue for its sentence."""

    token: str
    kind: TokenKind


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
        return chain.from_iterable(_MARKED.read(self._data.replace(b"=", b" ").split()))

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


def _read_run(run: str) -> tuple[Marked, ...]:
    if run.isdigit():
        return ()
    kinds = {token: _classify(token) for token in TOKEN.findall(run)}
    return tuple(Marked(token, kind) for token, kind in kinds.items() if kind is not None and kind != "number")


_LINE_NUMBER_END: Final = "→"
"""Ends the line number where an agent reads a file."""
_KEPT: Final = frozenset(f"{ascii_letters}{digits}_%{_PUNCTUATION}=\n".encode()) | frozenset(range(128, 256))
_TABLE: Final = bytes(
    ord("=") if code == ord(":") else code if code in _KEPT else ord(" ") for code in range(256)
)
"""Makes spaces of ASCII characters that no token has, and `=` of `:`, which ends keys as well."""
_KEYED: Final = re.compile(rb"=([ .\-/@~$+\x80-\xff]*[0-9\x80-\xff][^ =\n]*)")
"""Possible numbers after a key."""
_MARKED: Final = RunReader(_read_run)
