"""Decision-critical facts of a conversation, which a summary has to retain and fidelity is measured by.

Extracted without a model: identifiers, numbers with their key, paths, errors, decisions, constraints, open work
and the goal. Names are collected as blocks are read; sentences are read when they are asked for, newest first.
Tool output is full of names that are never needed again, so a name counts as critical only if the user or the
model wrote it, or if it occurs in more than one block.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from hashlib import blake2b
from heapq import nsmallest
from itertools import islice
from typing import Final, Literal, NamedTuple

from windowpane.core.vocabulary import ContentType
from windowpane.core.window.blocks import Block
from windowpane.fidelity.tokens import (
    ALTERNATIVES,
    TOKEN,
    TOKEN_KINDS,
    CueKind,
    NameKind,
    Runs,
    significant_words,
)

FactKind = NameKind | CueKind | Literal["goal", "statement"]

MAXIMUM_NAMES: Final = 120
"""Identifiers, numbers, paths and errors considered at most; the most critical first."""
MAXIMUM_SENTENCES: Final = 40
"""Decisions at most; likewise constraints, open work and the goal together."""
SENTENCE_CHARS: Final = 240
"""A sentence is cut here: a fact is a line, not a page."""
NEED_TURNS: Final = 4.0
"""Turns after which the need of a name has halved."""
UNWRITTEN_NEED: Final = 0.02

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


@dataclass(frozen=True, slots=True)
class Reading:
    """The names and cues of one block, whatever the others have."""

    text: str
    names: Mapping[str, NameKind]
    cues: Mapping[str, CueKind]
    values: Mapping[str, tuple[str, ...]]
    """The distinct numbers of each key."""


def read_text(content_type: ContentType, text: str) -> Reading:
    """Read the text of one block, which is most of the work of finding facts."""
    spoken = content_type in PROSE_TYPES
    if content_type == "tool_call":
        text = text.replace("\\n", "\n")
    elif content_type == "summary":
        text = "\n".join(line for line in text.split("\n") if not line.startswith("## "))
    runs = Runs(text)
    cues: dict[str, CueKind] = {}
    names: dict[str, NameKind] = {}
    for token, kind in runs.marked():
        match kind:
            case "path" if spoken and ALTERNATIVES.fullmatch(token):
                pass
            case "path" | "identifier" | "number":
                names[token] = kind
            case _ if spoken or kind == "error":
                cues[token] = kind
    values: dict[str, set[str]] = {}
    for key, value in runs.keyed_numbers():
        values.setdefault(key, set()).add(value)
        names[f"{key}={value}"] = "number"
    return Reading(text, names, cues, {key: tuple(numbers) for key, numbers in values.items()})


ReadText = Callable[[ContentType, str], Reading]


def extract_facts(blocks: Sequence[Block], read: ReadText = read_text) -> tuple[Fact, ...]:
    """Return the critical facts of *blocks*, most critical first within each kind.

    *read* may know the readings of some texts already.
    """
    finder = FactFinder()
    for index, block in enumerate(blocks):
        if block.text:
            finder.add(index, block.content_type, read(block.content_type, block.text), turn=block.turn)
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


def need_of(*, age_turns: int, blocks: int, written: bool) -> float:
    """Return how likely a name is needed again after a cut, relative to other names.

    Measured on recorded compactions of coding agents: the share of names that the agent used again within 20
    turns falls with the turns since the last mention, grows with the number of blocks that mention it, and is a
    fiftieth for names that only tools printed.
    """
    return (1.0 if written else UNWRITTEN_NEED) * math.log2(1 + blocks) / (1.0 + age_turns / NEED_TURNS)


@dataclass(frozen=True, slots=True)
class _Passage:
    """A text with cues for facts in its sentences."""

    block: int
    text: str
    cues: Mapping[str, CueKind]
    spoken: bool

    def facts(self, cues: Sequence[str]) -> Iterator[Fact]:
        """Yield the facts in the lines that have one of *cues*."""
        for line in self.text.split("\n"):
            if any(cue in line for cue in cues):
                yield from self._facts_of(line)

    def _facts_of(self, line: str) -> Iterator[Fact]:
        cues = self.cues
        kinds = dict.fromkeys(cues[token] for token in TOKEN.findall(line) if token in cues)
        if "error" in kinds and (not self.spoken or ":" in line):
            yield from _sentence("error", line.strip(), self.block)
        for sentence in line.split(". ") if self.spoken else ():
            own = set(map(TOKEN_KINDS.__getitem__, TOKEN.findall(sentence)))
            for kind in kinds:
                if kind in own and kind != "error":
                    yield from _sentence(kind, sentence.strip(" \t-*#>."), self.block)


def _sentence(kind: FactKind, text: str, block: int) -> Iterator[Fact]:
    """Yield the fact that a sentence states; none if it has too few significant words."""
    if len(text) > SENTENCE_CHARS:
        text = text[:SENTENCE_CHARS].rsplit(None, 1)[0]
    words = significant_words(TOKEN.findall(text))
    if len(words) >= 2:
        yield Fact(kind, text, words, block)


class _ReadBlock(NamedTuple):
    position: int
    content_type: ContentType
    reading: Reading
    turn: int
    """The turn of the block, or a later one that was read before it."""


class _Mentions:
    """The blocks that have each of some names."""

    def __init__(self, blocks: Iterable[_ReadBlock], names: Set[str]) -> None:
        self.blocks: Counter[str] = Counter()
        """Number of blocks."""
        self.salience: Counter[str] = Counter()
        """Weight of the blocks beyond 1 each."""
        self.last: dict[str, _ReadBlock] = {}
        self.written: set[str] = set()
        """Names that the model or a person wrote; tools alone printed the others."""
        for block in blocks:
            own = block.reading.names.keys() & names
            self.blocks.update(own)
            self.last.update(dict.fromkeys(own, block))
            for _ in range(_WEIGHT.get(block.content_type, 1) - 1):
                self.salience.update(own)
            if block.content_type in PROSE_TYPES or block.content_type == "tool_call":
                self.written |= own

    def fact(self, name: str, weight: float = 1.0) -> Fact:
        """Return the fact that a name is, as its last block has it."""
        last = self.last[name]
        return Fact(last.reading.names[name], name, block=last.position, weight=weight)


class FactFinder:
    """Collects facts block by block.

    A full window has tens of thousands of names, most of which a tool printed once: what they amount to is
    computed for the others alone.
    """

    def __init__(self) -> None:
        self._blocks: list[_ReadBlock] = []
        self._names: set[str] = set()
        self._recurring: set[str] = set()
        """Names that more than one block has."""
        self._passages: list[_Passage | Fact] = []
        """Texts with cues, and the goal itself, in the order of reading."""
        self._goal_seen = False
        self._turn = 0

    def read(self, index: int, content_type: ContentType, text: str, *, turn: int = 0) -> None:
        """Read one block; *turn* is that of the block."""
        self.add(index, content_type, read_text(content_type, text), turn=turn)

    def add(self, index: int, content_type: ContentType, reading: Reading, *, turn: int = 0) -> None:
        """Add what one block has; *turn* is that of the block."""
        self._turn = max(self._turn, turn)
        self._blocks.append(_ReadBlock(index, content_type, reading, self._turn))
        if content_type == "user_message" and not self._goal_seen:
            self._goal_seen = True
            self._passages += _sentence("goal", reading.text.strip().split("\n", 1)[0], index)
        if reading.cues:
            self._passages.append(_Passage(index, reading.text, reading.cues, content_type in PROSE_TYPES))
        self._recurring |= reading.names.keys() & self._names
        self._names.update(reading.names)

    def has(self, name: str) -> bool:
        """Return whether a text that was read has a name."""
        return name in self._names

    def names(self, most: int) -> list[Fact]:
        """Return the names that are most likely needed again, with their weights."""
        mentions = _Mentions(self._blocks, self._names)
        needs = ((-self._need(name, mentions), name) for name in self._stating_facts(self._names))
        return [mentions.fact(name, -need) for need, name in nsmallest(most, needs)]

    def sentences(self, most: int) -> Iterator[Fact]:
        """Yield the goal, decisions, constraints, open work and errors, newest first, *most* of each kind."""
        counts: Counter[FactKind] = Counter()
        seen: set[tuple[FactKind, str]] = set()
        for passage in reversed(self._passages):
            if isinstance(passage, Fact):
                yield passage
                continue
            cues = [cue for cue, kind in passage.cues.items() if counts[kind] < most]
            for fact in reversed(list(passage.facts(cues))) if cues else ():
                if (fact.kind, fact.text) not in seen and counts[fact.kind] < most:
                    seen.add((fact.kind, fact.text))
                    counts[fact.kind] += 1
                    yield fact

    def facts(self) -> tuple[Fact, ...]:
        """Return the critical facts, most critical first within each kind."""
        names = self._critical_names() or self._first_names()
        newest = list(self.sentences(MAXIMUM_SENTENCES))
        errors = [fact for fact in newest if fact.kind == "error"][: MAXIMUM_NAMES // 4]
        decisions = [fact for fact in newest if fact.kind == "decision"]
        goal = [fact for fact in newest if fact.kind == "goal"]
        state = goal + [fact for fact in newest if fact.kind in ("constraint", "open_work")]
        return (*errors, *names[: MAXIMUM_NAMES - len(errors)], *decisions, *state[:MAXIMUM_SENTENCES])

    def _critical_names(self) -> list[Fact]:
        """Return the names that more than one block has, or that were written as prose, most critical first."""
        prose = (block.reading.names for block in self._blocks if block.content_type in _WEIGHT)
        candidates = self._recurring.union(*prose)
        mentions = _Mentions(self._blocks, candidates)
        ranked = (
            (-mentions.blocks[name] - mentions.salience[name], -mentions.last[name].position, name)
            for name in self._stating_facts(candidates)
        )
        return [mentions.fact(name) for _, _, name in nsmallest(MAXIMUM_NAMES, ranked)]

    def _first_names(self) -> list[Fact]:
        """Return the first names where none is critical."""
        own = (
            Fact(block.reading.names[name], name, block=block.position)
            for block in self._blocks
            for name in self._stating_facts(block.reading.names)
        )
        return list(islice(own, MAXIMUM_NAMES))

    def _need(self, name: str, mentions: _Mentions) -> float:
        age_turns = self._turn - mentions.last[name].turn
        return need_of(age_turns=age_turns, blocks=mentions.blocks[name], written=name in mentions.written)

    def _stating_facts(self, names: Iterable[str]) -> Iterator[str]:
        """Yield those of *names* that state a fact: a number with several values is a counter or timestamp."""
        keys = {name: name.split("=", 1)[0] for name in names if "=" in name}
        values: dict[str, set[str]] = {key: set() for key in keys.values()}
        for block in self._blocks if values else ():
            for key in block.reading.values.keys() & values.keys():
                values[key].update(block.reading.values[key])
        return (name for name in names if name not in keys or len(values[keys[name]]) == 1)


MAXIMUM_NAMES_KEPT: Final = 160
"""Names that are looked up by `names_kept`."""


def names_kept(removed: Sequence[Block], visible: Sequence[Block]) -> float | None:
    """Return the share of the names in *removed* that *visible* has, 0 to 1; None without names.

    Each name counts by how likely it is needed again, see `need_of`. It measures what is not a summary, such as
    an eviction, and whether a text is a summary of another at all.
    """
    finder = FactFinder()
    for index, block in enumerate(removed):
        if block.text:
            finder.read(index, block.content_type, block.text, turn=block.turn)
    names = finder.names(MAXIMUM_NAMES_KEPT)
    total = math.fsum(name.weight for name in names)
    if not total:
        return None
    tokens = {token for block in visible for token in TOKEN.findall((block.text or "").replace("\\n", "\n"))}
    tokens |= {token.rsplit("/", 1)[-1] for token in tokens if "/" in token}
    return math.fsum(name.weight for name in names if _parts(name) <= tokens) / total


def _parts(name: Fact) -> set[str]:
    """Return the tokens by which a name is recognized: key and value of a number, the last part of a path."""
    return set(name.text.split("=", 1)) if name.kind == "number" else {name.text.rsplit("/", 1)[-1]}
