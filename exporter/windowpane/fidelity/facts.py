"""Decision-critical facts of a conversation, which a summary has to retain and fidelity is measured by.

Extracted without a model, in one pass of one regular expression: identifiers, numbers with their key, paths,
errors, decisions, constraints, open work and the goal. Every distinct token is classified once. Tool output
is full of names that are never needed again, so a name counts as critical only if the user or the model wrote it,
or if it occurs in more than one block.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import compress
from typing import Final, Literal, cast

from windowpane.core.vocabulary import ContentType
from windowpane.core.window.blocks import Block

FactKind = Literal[
    "identifier", "number", "path", "error", "decision", "constraint", "open_work", "goal", "statement"
]  # fmt: skip
TokenKind = FactKind | Literal["line_end"]

MAXIMUM_NAMES: Final = 120
"""Identifiers, numbers, paths and errors considered at most; the most critical first."""
MAXIMUM_SENTENCES: Final = 40
"""Decisions at most; likewise constraints, open work and the goal together."""
SENTENCE_CHARS: Final = 240
"""A sentence is cut here: a fact is a line, not a page."""
NEED_TURNS: Final = 4.0
"""Turns after which the need of a name has halved."""
UNWRITTEN_NEED: Final = 0.02
MAXIMUM_CLASSIFIED: Final = 50_000
"""Distinct tokens whose kind is remembered."""
MAXIMUM_REMEMBERED_CHARACTERS: Final = 200

_PUNCTUATION: Final = r"[.\-/@~$+]"
_RUNS: Final = rf"[\w%]++(?:{_PUNCTUATION}++[\w%]++)*"
_TOKEN: Final = rf"{_RUNS}|{_PUNCTUATION}{{1,32}}{_RUNS}|[=:]"
TOKEN: Final = re.compile(_TOKEN)
"""Words, names, paths and numbers whole, without the punctuation that ends them; `=` and `:` for keys.

No more than so many signs before a word are read as its beginning: a line of a million dots costs no more than
any other.
"""

_TOKEN_OR_LINE_END: Final = re.compile(rf"{_TOKEN}|\n")

_CLASS: Final = re.compile(
    r"(?P<number>[-+$]?\d[\d.,]*(?:%|[A-Za-z]{0,3}))"
    r"|(?P<error>\w*(?:Error|Exception|Failure)|error|ERROR|failed|FAILED|Traceback|panic|fatal|FATAL)"
    r"|(?P<path>(?:~|\.{1,2})?/?(?:[\w.@+-]+/)+[\w.@+-]+|/[\w.@+-]{2,}"
    r"|[\w-]+\.(?:py|ts|tsx|js|jsx|go|rs|c|h|cpp|java|rb|php|sh|sql|md|txt|json|jsonl|ya?ml|toml|cfg|ini|lock"
    r"|html|css|csv|xml|log|db|proto|ipynb))"
    r"|(?P<identifier>[A-Za-z$_][\w$]*(?:_[\w$]+|(?<=[a-z0-9])[A-Z][\w$]*)|(?:[A-Za-z_]\w+\.)+[A-Za-z_]\w+"
    r"|[A-Z]{2,}-\d+|(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40})"
)
ALTERNATIVES: Final = re.compile(r"[A-Za-z]+(?:/[A-Za-z]+)+")
"""Words with slashes between them: in prose `and/or`, in a call or an output a path."""
_KINDS: Final[dict[str | None, FactKind]] = {
    "number": "number",
    "error": "error",
    "path": "path",
    "identifier": "identifier",
}

_CUES: Final[dict[str, FactKind]] = {
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

PROSE_TYPES: Final[frozenset[ContentType]] = frozenset(
    {"user_message", "assistant_response", "thinking", "summary", "memory_injection"}
)
"""Content that a person or the model wrote as prose."""
_WEIGHT: Final[dict[ContentType, int]] = {"user_message": 4, "summary": 3, "assistant_response": 2, "thinking": 2}


@dataclass(frozen=True, slots=True)
class Fact:
    """A statement that a later decision may depend on."""

    kind: FactKind
    text: str
    """The original wording; for a number `key=value`."""
    words: tuple[str, ...] = ()
    """Significant words of a sentence, in lower case."""
    block: int = 0
    """Index of the last block that states it."""
    weight: float = 1.0
    """For a name, how likely it is needed again, relative to others; see `need_of`."""

    @property
    def is_sentence(self) -> bool:
        """True for a line of prose, False for a name."""
        return bool(self.words)


@dataclass(slots=True)
class _Name:
    kind: FactKind
    salience: int = 0
    blocks: int = 0
    last: int = -1
    turn: int = 0
    """Turn of the last block that has it."""
    written: bool = False
    """True if the model or a person wrote it, false if only tools printed it."""


def extract_facts(blocks: Sequence[Block]) -> tuple[Fact, ...]:
    """Return the critical facts of *blocks*, most critical first within each kind."""
    finder = FactFinder()
    for index, block in enumerate(blocks):
        if block.text:
            finder.read(index, block.content_type, block.text, turn=block.turn)
    return finder.facts()


def blocks_of(text: str) -> tuple[Block, ...]:
    """Return an unstructured text as blocks, one per paragraph."""
    return tuple(_block(index, part) for index, part in enumerate(re.split(r"\n\s*\n", text)) if part.strip())


def _block(index: int, text: str) -> Block:
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    tokens = max(1, len(text) // 4)
    return Block(
        f"b{index}", "assistant_response", tokens, 1, f"b{index}", 1, digest, len(text), "estimate", text
    )


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
    if token.isspace():
        return "line_end"
    if len(token) > MAXIMUM_REMEMBERED_CHARACTERS:
        return None
    cue = _CUES.get(token.lower())
    if cue is not None:
        return cue
    match = _CLASS.fullmatch(token)
    if match is None:
        return None
    kind = _KINDS[match.lastgroup]
    return kind if kind != "identifier" or len(token) > 3 else None


TOKEN_KINDS: Final = _TokenKinds()
"""Shared by all passes: what a token is does not depend on the text around it."""


def need_of(*, age_turns: int, blocks: int, written: bool) -> float:
    """Return how likely a name is needed again after a cut, relative to other names.

    Measured on recorded compactions of coding agents: the share of names that the agent used again within 20
    turns falls with the turns since the last mention, grows with the number of blocks that mention it, and is a
    fiftieth for names that only tools printed.
    """
    return (1.0 if written else UNWRITTEN_NEED) * math.log2(1 + blocks) / (1.0 + age_turns / NEED_TURNS)


class FactFinder:
    """Collects facts block by block."""

    def __init__(self) -> None:
        self._names: dict[str, _Name] = {}
        self._numbers: dict[str, dict[str, int]] = {}
        self._sentences: dict[tuple[FactKind, str], Fact] = {}
        self._goal_seen = False
        self._turn = 0
        self._written = False
        self._spoken = False

    def read(self, index: int, content_type: ContentType, text: str, *, turn: int = 0) -> None:
        """Read one block; *turn* is that of the block."""
        self._turn = max(self._turn, turn)
        self._written = content_type in PROSE_TYPES or content_type == "tool_call"
        spoken = self._spoken = content_type in PROSE_TYPES
        weight = _WEIGHT.get(content_type, 1)
        if content_type == "tool_call":
            text = text.replace("\\n", "\n")
        if content_type == "user_message" and not self._goal_seen:
            self._goal_seen = True
            self._keep_sentence("goal", text.strip().split("\n", 1)[0], index)
        lines = text.split("\n")
        if content_type == "summary":
            lines = [line for line in lines if not line.startswith("## ")]
            text = "\n".join(lines)
        tokens = _TOKEN_OR_LINE_END.findall(f"{text}\n")
        recorded: set[str] = set()
        cues: dict[FactKind, None] = {}
        number = start = 0
        kinds = list(map(TOKEN_KINDS.__getitem__, tokens))
        for position in compress(range(len(kinds)), kinds):  # most tokens are plain words, without a kind
            kind = cast("TokenKind", kinds[position])
            if kind == "line_end":
                if cues:
                    self._cued(lines[number], cues, index, spoken=spoken)
                    cues = {}
                number, start = number + 1, position + 1
            elif kind == "number":
                self._number(tokens, position, start, index, weight)
            elif kind in ("path", "identifier"):
                token = tokens[position]
                if token not in recorded:
                    recorded.add(token)
                    self._name(token, kind, index, weight)
            elif spoken or kind == "error":
                cues[kind] = None

    def _name(self, name: str, kind: FactKind, index: int, weight: int) -> None:
        if kind == "path" and self._spoken and ALTERNATIVES.fullmatch(name):
            return
        seen = self._names.get(name)
        if seen is None:
            seen = self._names[name] = _Name(kind)
        if seen.last != index:
            seen.last = index
            seen.blocks += 1
            seen.salience += weight
            seen.turn = self._turn
            seen.written = seen.written or self._written

    def _number(self, tokens: list[str], position: int, start: int, index: int, weight: int) -> None:
        """Record a number under the key that names it in its line, which starts at *start*: `timeout = 30s`."""
        if position - start < 2 or tokens[position - 1] not in "=:":
            return
        key, value = tokens[position - 2], tokens[position]
        if len(key) < 3 or key[0].isdigit():
            return
        values = self._numbers.setdefault(key, {})
        values[value] = index
        self._name(f"{key}={value}", "number", index, weight)

    def _cued(self, line: str, cues: Iterable[FactKind], index: int, *, spoken: bool) -> None:
        if "error" in cues and (not spoken or ":" in line):
            self._keep_sentence("error", line.strip(), index)
        if not spoken:
            return
        for sentence in line.split(". "):
            kinds = {_CUES.get(token.lower()) for token in TOKEN.findall(sentence)}
            for kind in cues:
                if kind in kinds:
                    self._keep_sentence(kind, sentence.strip(" \t-*#>."), index)

    def _keep_sentence(self, kind: FactKind, sentence: str, index: int) -> None:
        if len(sentence) > SENTENCE_CHARS:
            sentence = sentence[:SENTENCE_CHARS].rsplit(None, 1)[0]
        words = significant_words(TOKEN.findall(sentence))
        if len(words) >= 2:
            self._sentences.pop((kind, sentence), None)
            self._sentences[kind, sentence] = Fact(kind, sentence, words, index)

    def names(self, most: int) -> list[Fact]:
        """Return the names that are most likely needed again, with their weights."""
        weighted = [
            (need_of(age_turns=self._turn - name.turn, blocks=name.blocks, written=name.written), text, name)
            for text, name in self._names.items()
            if self._stands(text, name)
        ]
        weighted.sort(key=lambda item: (-item[0], item[1]))
        return [Fact(name.kind, text, block=name.last, weight=need) for need, text, name in weighted[:most]]

    def sentences(self) -> list[Fact]:
        """Return goals, decisions, constraints, open work and errors, newest first."""
        return list(self._sentences.values())[::-1]

    def facts(self) -> tuple[Fact, ...]:
        """Return the critical facts, most critical first within each kind."""
        names = [
            Fact(name.kind, text, block=name.last)
            for text, name in sorted(
                self._names.items(), key=lambda item: (-item[1].salience, -item[1].last, item[0])
            )
            if (name.salience > 1 or name.blocks > 1) and self._stands(text, name)
        ]
        if not names:
            names = [
                Fact(name.kind, text, block=name.last)
                for text, name in self._names.items()
                if self._stands(text, name)
            ]
        newest = self.sentences()
        errors = [fact for fact in newest if fact.kind == "error"][: MAXIMUM_NAMES // 4]
        decisions = [fact for fact in newest if fact.kind == "decision"][:MAXIMUM_SENTENCES]
        goal = [fact for fact in newest if fact.kind == "goal"]
        state = goal + [fact for fact in newest if fact.kind in ("constraint", "open_work")]
        return (*errors, *names[: MAXIMUM_NAMES - len(errors)], *decisions, *state[:MAXIMUM_SENTENCES])

    def _stands(self, text: str, name: _Name) -> bool:
        """Return whether a name states a fact: a number with several values is a counter or timestamp."""
        return name.kind != "number" or len(self._numbers[text.split("=", 1)[0]]) == 1


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
