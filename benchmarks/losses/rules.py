"""Rules found and followed, against candidates that were read by hand and against planted reversals.

`rows()` returns the tables of `benchmarks/LOSSES.md` about rules. The candidates are in `rules.jsonl` beside this
file (`README.md` describes their reading); without WINDOWPANE_SESSIONS_DIR the tables of recordings are omitted.
"""

from __future__ import annotations

import json
import operator
import random
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import combinations
from pathlib import Path
from typing import Any, Final, NamedTuple

from truth.recordings import Session, recorded_sessions

from windowpane.core.choices import MAXIMUM_QUESTIONS
from windowpane.core.digests import keyed_digester
from windowpane.core.events import BlockAdded, RulesFollowed
from windowpane.core.tracking.marks import CORRECTION
from windowpane.core.window.blocks import Block
from windowpane.fidelity import probe
from windowpane.fidelity.judge.questions import read_questions
from windowpane.fidelity.languages import pattern_of
from windowpane.fidelity.rule_record import ObservedCompaction, RuleRecord
from windowpane.fidelity.rules import SOURCE_OF, Rule, find_rules
from windowpane.sources.imports.pipeline import playback_settings
from windowpane.sources.transcripts.playback import session_events

HELD_OUT: Final = ("reporting", "fresh", "users", "chat", "chat-fresh", "public")
"""Halves that no label of was seen before the product was first run on them."""
CANDIDATES: Final = Path(__file__).with_name("rules.jsonl")
REPLIES: Final = Path(__file__).with_name("judge_replies.jsonl")
"""Replies of a model to the prompt `WRITE` about each file of the half `public`."""
_FIRST_DRAW: Final = {
    "user/cue": 2681, "user/prose": 4026, "user/other": 1174,
    "system/cue": 1804, "system/prose": 1842, "system/other": 377,
    "memory/cue": 2977, "memory/prose": 4059, "memory/other": 2069,
}  # fmt: skip
_SECOND_DRAW: Final = {
    "user/cue": 2695, "user/prose": 4362, "user/other": 1617,
    "system/cue": 2049, "system/prose": 1619, "system/other": 307,
    "memory/cue": 3644, "memory/prose": 5517, "memory/other": 1989,
}  # fmt: skip
_USERS_DRAW: Final = {"user/strong": 896, "user/cue": 1758, "user/prose": 4344, "user/other": 1622}
POPULATION: Final = {
    "tuning": _FIRST_DRAW, "reporting": _FIRST_DRAW, "fresh": _SECOND_DRAW, "users": _USERS_DRAW
}  # fmt: skip
"""Distinct sentences of each stratum in the recordings that a half was drawn from, where not all were read."""
_CONTENT_TYPE: Final = {source: content_type for content_type, source in SOURCE_OF.items()}
IMPERATIVE: Final = pattern_of("imperative", "English")
"""The start of a text that `do not` in front of it reverses."""
MINIMUM_SHARE: Final = 0.4
"""Share of a found rule that a candidate has at least to be it, where lines were joined."""
QUOTED_SHARE: Final = 0.7
"""Share of the words of a judge's answer that a sentence has at least to be quoted by it."""
MAXIMUM_PLANTED: Final = 250
"""Reversals of each kind at most."""
LATER_TURNS: Final = 40
"""Turns after a compaction in which corrections by the user are looked for."""


@dataclass(frozen=True)
class Candidate:
    """A sentence that was read by hand."""

    half: str
    source: str
    stratum: str
    origin: str
    file: str
    procedure: bool
    """From a skill or command, which the product does not read for rules."""
    rule: bool
    """By most of its readers."""
    votes: Sequence[bool]
    """The label of each reader."""
    doubts: int
    """Readers who called it a close case."""
    sentence: str
    text: str
    """The sentence with the start of its document and some lines around it."""

    @property
    def is_undoubted(self) -> bool:
        """True if its readers agree, and at most one of them called it a close case."""
        return len(set(self.votes)) == 1 and self.doubts <= 1

    @property
    def rules(self) -> list[str]:
        """The rules that the product finds in it."""
        sentence = _plain(self.sentence)
        block = replace(_block("read", self.text), content_type=_CONTENT_TYPE[self.source])
        return [
            rule
            for rule in (one.text for one in find_rules([block]))
            if (plain := _plain(rule)) in sentence
            or (sentence in plain and len(sentence) >= MINIMUM_SHARE * len(plain))
        ]

    @cached_property
    def is_found(self) -> bool:
        """True if the product finds a rule in it."""
        return bool(self.rules)


class Score(NamedTuple):
    """Precision and recall with their counts, and weighted by the strata."""

    name: str
    rules: int
    precision: float
    recall: float
    weighted_precision: float
    weighted_recall: float


@cache
def candidates() -> tuple[Candidate, ...]:
    """Return the sentences that were read by hand; each remembers whether a rule is found in it."""
    lines = CANDIDATES.read_text(encoding="utf-8").splitlines()
    names = Candidate.__dataclass_fields__
    return tuple(Candidate(**{key: row[key] for key in names}) for row in map(json.loads, lines))


def scores(*halves: str) -> Iterator[Score]:
    """Yield the scores of some halves by source, and of all; of several ones only the counts are meaningful."""
    read = [one for one in candidates() if one.half in halves and not one.procedure]
    sources = dict.fromkeys(one.source for one in read)
    for source in sources:
        yield _score(source, [one for one in read if one.source == source], read)
    if len(sources) > 1:
        yield _score("all", read, read)


def _score(name: str, own: Sequence[Candidate], read: Sequence[Candidate]) -> Score:
    drawn = Counter(f"{one.source}/{one.stratum}" for one in read)
    halves = {one.half for one in read}
    population = POPULATION.get(halves.pop(), drawn) if len(halves) == 1 else drawn
    sums: dict[tuple[bool, bool], list[float]] = defaultdict(lambda: [0.0, 0.0])
    for one in own:
        stratum = f"{one.source}/{one.stratum}"
        entry = sums[one.rule, one.is_found]
        entry[0] += 1
        entry[1] += population[stratum] / drawn[stratum]

    def share(weight: int, other: tuple[bool, bool]) -> float:
        right = sums[True, True][weight]
        total = right + sums[other][weight]
        return right / total if total else float("nan")

    return Score(
        name, sum(one.rule for one in own),
        share(0, (False, True)), share(0, (True, False)), share(1, (False, True)), share(1, (True, False)),
    )  # fmt: skip


# -- reversals -------------------------------------------------------------------------------------------------

Edit = Callable[[str, random.Random], str | None]


def negated(text: str, _chance: random.Random) -> str | None:
    """Add a negation or remove the one that there is."""
    for found, other in (
        (r"(?i)\bnever\b", "always"), (r"(?i)\bdo not\b", "do"), (r"(?i)\bdon['’]t\b", "do"),
        (r"(?i)\bmust not\b", "must"), (r"(?i)\bcannot\b", "can"), (r"(?i)\bshould not\b", "should"),
        (r"(?i)\balways\b", "never"), (r"(?i)\bmust\b", "must not"), (r"(?i)\bshould\b", "should not"),
        (r"(?i)\bavoid\b", "use"),
    ):  # fmt: skip
        if re.search(found, text):
            return re.sub(found, other, text, count=1)
    if re.match(r"[A-Z][a-z]+ ", text) and IMPERATIVE.match(text):
        return f"Do not {text[0].lower()}{text[1:]}"
    return None


def renumbered(text: str, chance: random.Random) -> str | None:
    """Replace a number by another."""
    numbers = re.findall(r"(?<![\w.])\d{1,6}(?![\w.])", text)
    if not numbers:
        return None
    number = chance.choice(numbers)
    return re.sub(rf"(?<![\w.]){number}(?![\w.])", str(int(number) * 2 + 3), text, count=1)


def renamed(text: str, _chance: random.Random) -> str | None:
    """Replace a quoted name by another."""
    match = re.search(r"`([a-z][\w./-]{2,30})`", text)
    return None if match is None else text.replace(match[0], f"`{match[1][::-1].strip('./-')}`", 1)


def permitted(text: str, _chance: random.Random) -> str | None:
    """Make a duty to ask unnecessary."""
    match = re.search(r"(?i)\bask (?=before|me|the user|for)", text)
    return None if match is None else text[: match.start()] + "no need to ask " + text[match.end() :]


EDITS: Final[dict[str, Edit]] = {
    "negation added or removed": negated,
    "number changed": renumbered,
    "name changed": renamed,
    "ask becomes no need to ask": permitted,
}


class Planted(NamedTuple):
    """Reversals of one kind: how many, and how many were found, in a summary and as a list of rules."""

    kind: str
    tried: int
    found: int


class Taken(NamedTuple):
    """A recorded compaction and the content of the first call after it."""

    session: Session
    compaction: ObservedCompaction
    window: tuple[Block, ...]


def planted(taken: Sequence[Taken]) -> Iterator[Planted]:
    """Yield the reversals planted in recorded summaries: of hand-read and of recorded rules, each once."""
    chance = random.Random(29)
    with_summary = [one for one in taken if _summary(one) is not None]
    texts = dict.fromkeys(rule for one in candidates() if one.rule for rule in one.rules)
    for one in with_summary:
        texts.update(dict.fromkeys(rule.text for rule in find_rules(one.compaction.removed)))
    for kind, edit in EDITS.items():
        edited = [(text, changed) for text in texts if (changed := edit(text, chance)) not in (None, text)]
        chosen = chance.sample(edited, min(MAXIMUM_PLANTED, len(edited)))
        found = sum(_fate(text, changed, with_summary, chance) == "contradicted" for text, changed in chosen)
        yield Planted(kind, len(chosen), found)


def _fate(text: str, changed: str | None, taken: Sequence[Taken], chance: random.Random) -> str | None:
    """Return what the product concludes of a rule whose reversal stands in a recorded summary."""
    one = chance.choice(taken) if taken else None
    summary = (_summary(one) if one is not None else None) or replace(
        _block("summary", "Summary"), content_type="summary"
    )
    lines = (summary.text or "").split("\n")
    prose = [at for at in range(len(lines) + 1) if "\n".join(lines[:at]).count("```") % 2 == 0]
    lines.insert(chance.choice(prose), f"- {changed}")
    damaged = replace(summary, text="\n".join(lines))
    said = tuple(block for block in one.compaction.removed if block.content_type == "user_message") if one else ()
    compaction = ObservedCompaction(
        "planted", 1, 1, (*said, _block("rule", f"- {text}")), (), frozenset({damaged.id})
    )
    record = RuleRecord(str)
    record.follow([Rule(text, "user", "rule")])
    measured = record.measure(compaction, [damaged])
    return next((rule.fate for rule in measured.outcomes if rule.text == text), None)


def _summary(taken: Taken) -> Block | None:
    return next((block for block in taken.window if block.id in taken.compaction.results and block.text), None)


def _block(name: str, text: str) -> Block:
    return Block(name, "user_message", len(text) // 4, 1, name, 1, name, len(text), "estimate", text)


# -- recordings ------------------------------------------------------------------------------------------------


class Measured(NamedTuple):
    """The recorded compactions, and the turns in which the user corrected the agent."""

    taken: list[Taken]
    followed: list[tuple[Session, RulesFollowed, int]]
    """With the turn of the first call after the compaction."""
    corrections: dict[str, list[int]]
    """Turns of each session in which the user corrected the agent."""
    turns: dict[str, int]
    rule_seconds: float
    probe_seconds: float


def measured() -> Measured | None:
    """Play the recordings; None without any."""
    sessions = [one for one in recorded_sessions() if _is_compacted(one)]
    if not sessions:
        return None
    result = Measured([], [], defaultdict(list), {}, 0.0, 0.0)
    seconds = Counter[str]()
    original_measure, original_probe = RuleRecord.measure, probe.evaluate

    def measure(self: RuleRecord, compaction: ObservedCompaction, window: Sequence[Block]) -> RulesFollowed:
        result.taken.append(Taken(current[0], compaction, tuple(window)))
        start = time.process_time()
        try:
            return original_measure(self, compaction, window)
        finally:
            seconds["rules"] += time.process_time() - start

    def evaluate(*arguments: Any, **options: Any) -> Any:
        start = time.process_time()
        try:
            return original_probe(*arguments, **options)
        finally:
            seconds["probe"] += time.process_time() - start

    current: list[Session] = [sessions[0]]
    RuleRecord.measure, probe.evaluate = measure, evaluate  # type: ignore[method-assign]
    try:
        for session in sessions:
            current[0] = session
            playback = playback_settings(keyed_digester(b"losses"))
            for event in session_events(
                session.records, key=session.key, source=session.format, playback=playback
            ):
                turn = event.context.turn
                result.turns[session.key] = turn
                if isinstance(event.data, RulesFollowed):
                    result.followed.append((session, event.data, turn))
                elif isinstance(event.data, BlockAdded):
                    block = event.data.block
                    if block.content_type == "user_message" and CORRECTION.match(block.text or ""):
                        result.corrections[session.key].append(turn)
    finally:
        RuleRecord.measure, probe.evaluate = original_measure, original_probe  # type: ignore[method-assign]
    return result._replace(rule_seconds=seconds["rules"], probe_seconds=seconds["probe"])


def _is_compacted(session: Session) -> bool:
    return any(type(record).__name__ in ("Compacted", "CallSent") for record in session.records)


def _plain(text: str) -> str:
    return re.sub(r"[\W_]+", " ", text).strip().lower()


# -- tables ----------------------------------------------------------------------------------------------------


def rows() -> list[str]:
    """Return the lines about rules of the document."""
    lines = ["### Rules found", "", *_score_lines(), ""]
    result = measured()
    lines += ["### Rules reversed", "", *_planted_lines(result), ""]
    if result is not None:
        lines += ["### Rules through compactions", "", *_survival_lines(result), ""]
        lines += ["### Does a lost rule predict trouble?", "", *_trouble_lines(result), ""]
    return lines


def _score_lines() -> Iterator[str]:
    yield "| half | source | rules read | precision | recall | precision, weighted | recall, weighted |"
    yield "|---|---|--:|--:|--:|--:|--:|"
    for half in dict.fromkeys(one.half for one in candidates()):
        for one in scores(half):
            numbers = " | ".join(f"{value:.2f}" for value in one[2:])
            yield f"| {half} | {one.name} | {one.rules} | {numbers} |"
    for one in scores(*HELD_OUT):
        yield f"| **all held out** | {one.name} | {one.rules} | {one.precision:.2f} | {one.recall:.2f} | | |"
    yield ""
    yield f"*All held out*: {', '.join(HELD_OUT)}."
    yield ""
    yield from _agreement_lines()
    yield ""
    yield from _judge_lines()


def _agreement_lines() -> Iterator[str]:
    yield "| half | sentences with three readers | called a rule by one, two, all | kappa of two readers |"
    yield "|---|--:|--:|--:|"
    read = [one for one in candidates() if len(one.votes) > 1 and not one.procedure]
    for half in dict.fromkeys(one.half for one in read):
        votes = [one.votes for one in read if one.half == half]
        numbers = Counter(map(sum, votes))
        readers = list(zip(*votes, strict=True))
        kappas = [kappa(*pair) for pair in combinations(readers, 2)]
        called = ", ".join(str(numbers[most]) for most in (1, 2, 3))
        yield f"| {half} | {len(votes)} | {called} | {min(kappas):.2f} to {max(kappas):.2f} |"
    undoubted = [one for one in read if one.is_undoubted and one.half in HELD_OUT]
    yield ""
    yield "Where all three agree and at most one called it a close case:"
    yield ""
    yield "| sentences of users | rules | precision | recall |"
    yield "|---|--:|--:|--:|"
    for name, own in (
        ("recorded sessions", [one for one in undoubted if one.half != "public"]),
        ("public", [one for one in undoubted if one.half == "public"]),
    ):
        score = _score(name, own, own)
        yield f"| {name} | {score.rules} | {score.precision:.2f} | {score.recall:.2f} |"


def _judge_lines() -> Iterator[str]:
    """The questions about rules that a model wrote, and the rules that they ask about."""
    read = [one for one in candidates() if one.half == "public"]
    asked_about = 0
    outcomes = Counter[str]()
    for row in map(json.loads, REPLIES.read_text(encoding="utf-8").splitlines()):
        own = [one for one in read if (one.origin, one.file) == (row["origin"], row["file"])]
        answers = [_plain(one.expected) for one in read_questions(row["reply"]) if one.kind == "rule"]
        asked_about += sum(one.rule and any(_quotes(answer, one) for answer in answers) for one in own)
        for answer in answers:
            quoted = [one for one in own if _quotes(answer, one)]
            is_doubtful = any(any(one.votes) or one.doubts for one in quoted)
            is_rule = any(one.rule for one in quoted)
            outcomes["a rule" if is_rule else "a doubtful one" if is_doubtful else "none"] += 1
    quoted_kinds = ", ".join(f"{number} quote {kind}" for kind, number in outcomes.most_common())
    yield f"A judge that wrote at most {MAXIMUM_QUESTIONS} questions about each file of `public` asked about"
    yield f"{asked_about} of the {sum(one.rule for one in read)} rules. Of its {outcomes.total()} questions about"
    yield f"rules {quoted_kinds}."


def _quotes(answer: str, candidate: Candidate) -> bool:
    """Return whether an answer repeats a sentence, or most of its words are in it."""
    sentence = _plain(candidate.sentence)
    if not answer or not sentence:
        return False
    words = set(answer.split())
    shared = len(words & set(sentence.split())) / len(words)
    return answer in sentence or sentence in answer or shared >= QUOTED_SHARE


def kappa(first: Sequence[bool], second: Sequence[bool]) -> float:
    """Return Cohen's kappa: agreement beyond that of chance, 1 for full agreement."""
    agreed = sum(map(operator.eq, first, second)) / len(first)
    shares = sum(first) / len(first), sum(second) / len(second)
    chance = shares[0] * shares[1] + (1 - shares[0]) * (1 - shares[1])
    return (agreed - chance) / (1 - chance)


def _planted_lines(result: Measured | None) -> Iterator[str]:
    yield "| reversal | planted | found |"
    yield "|---|--:|--:|"
    for kind, tried, found in planted(() if result is None else result.taken):
        yield f"| {kind} | {tried} | {found / tried:.1%} |" if tried else f"| {kind} | 0 | |"
    if result is not None:
        undamaged = [one for _, one, _ in result.followed if one.survival is not None]
        contradicted = sum(one.count("contradicted") > 0 for one in undamaged)
        yield ""
        yield (
            f"Undamaged: {contradicted} of {len(undamaged)} recorded compactions with rules have one that is "
            f"called contradicted, of {sum(one.count() for one in undamaged)} rules."
        )


def _survival_lines(result: Measured) -> Iterator[str]:
    yield "| source | rules | word for word | in other words | put back | lost | changed |"
    yield "|---|--:|--:|--:|--:|--:|--:|"
    for source in ("user", "system", "memory"):
        counts = Counter[str]()
        for _, one, _ in result.followed:
            counts.update(getattr(one, source))
        cells = [
            sum(counts.values()),
            *(counts[fate] for fate in ("kept", "reworded", "restored", "lost", "contradicted")),
        ]
        yield f"| {source} | " + " | ".join(map(str, cells)) + " |"
    known = [one for _, one, _ in result.followed if one.survival is not None]
    unknown = Counter(one.reason for _, one, _ in result.followed if one.survival is None)
    yield ""
    yield f"{len(known)} compactions with rules; without: " + "; ".join(
        f"{number}: {reason}" for reason, number in unknown.items()
    )
    yield ""
    yield "| compactions that a rule has been through | rules | still visible |"
    yield "|--:|--:|--:|"
    followed, visible = Counter[int](), Counter[int]()
    for one in known:
        for index, total in enumerate(one.followed_by_compactions):
            followed[index + 1] += total
            visible[index + 1] += one.visible_by_compactions[index]
    for number in sorted(followed):
        if followed[number]:
            share = visible[number] / followed[number]
            yield f"| {number} | {followed[number]} | {visible[number]} ({share:.0%}) |"
    share = result.rule_seconds / result.probe_seconds if result.probe_seconds else float("nan")
    yield ""
    yield f"Time: {share:.2f} of that of the fidelity probe in the same run."


def _trouble_lines(result: Measured) -> Iterator[str]:
    groups: dict[bool, list[tuple[int, int]]] = {True: [], False: []}
    for session, one, turn in result.followed:
        if one.survival is None:
            continue
        lost = any(
            getattr(one, source).get(fate) for source in ("user", "memory") for fate in ("lost", "contradicted")
        )
        corrections = [at for at in result.corrections[session.key] if turn <= at < turn + LATER_TURNS]
        groups[lost].append((len(corrections), min(LATER_TURNS, result.turns[session.key] - turn)))
    yield f"Corrections by the user (`no`, `stop`, `why did you`, an interruption …) within {LATER_TURNS} turns"
    yield "of a compaction:"
    yield ""
    yield "| a rule of the user or a memory file was lost | compactions | turns | corrections | per 100 turns |"
    yield "|---|--:|--:|--:|--:|"
    for lost, found in groups.items():
        corrections, turns = sum(one for one, _ in found), sum(turns for _, turns in found)
        rate = f"{100 * corrections / turns:.1f}" if turns else ""
        yield f"| {'yes' if lost else 'no'} | {len(found)} | {turns} | {corrections} | {rate} |"
    yield ""
    yield "Too few to conclude anything." if min(map(len, groups.values())) < 30 else ""


if __name__ == "__main__":
    print("\n".join(rows()))
