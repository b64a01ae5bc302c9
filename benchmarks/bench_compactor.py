"""Facts that an agent still sees after its window was managed, by kind of fact; writes `COMPACTOR.md`.

    WINDOWPANE_SESSIONS_DIR=… python benchmarks/bench_compactor.py [--sessions N] [--setups hybrid truncation]
        [--half tuning] [--rows FILE] [--before FILE] [--workers 2]

The sessions are those of the folders `corpus` and `corpus-new` beside the one that WINDOWPANE_SESSIONS_DIR names.
A digest of its name puts a session into the tuning half or the reported half. Nothing of `windowpane.fidelity`
finds facts: they are found by the expressions below, or planted, and looked up verbatim in what a call sends.
`--half tuning` prints the tuning half and writes no report. `--rows` saves the results, and sessions in it are
not measured again. Run with PYTHONPATH at another checkout's `exporter` and `--setups hybrid`, they are the
`--before` of a later run.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from bench_policies import spread

from windowpane.core.window.blocks import Block
from windowpane.evaluation.replay import (
    PreparedRecording,
    Recording,
    ReplaySetup,
    find_recordings,
    simulate,
    truncate,
)
from windowpane.evaluation.replay.recordings import RecordingSource
from windowpane.evaluation.replay.setups import ManagerOptions, format_window, preset_names
from windowpane.manager.drivers import BlockingWindow
from windowpane.manager.settings import SAFETY_NET
from windowpane.sources.transcripts.records import Compacted, ContentAdded, Record

TARGET = Path(__file__).with_name("COMPACTOR.md")
FOLDERS = ("corpus", "corpus-new")
LIMITS = (16_384, 32_768, 65_536)
HALVES = ("tuning", "reported")
CALLS = 4
"""Calls of a session at which its facts are looked up, evenly spaced over those that need a reduction."""
OLD_SHARE = 0.5
"""Share of the content before a call, in tokens, from its beginning, that counts as old."""
FACTS = 60
"""Facts of a kind that are looked up at one call, chosen by digest."""
PLANTED_EVERY = 3
BEFORE = "before"
NOT_REGRETTED = "not regretted"
RECORDED_SHARE = 0.05
"""Size of a summary as a share of the window: about that of the largest recorded one."""
EQUAL_COST = 1.05
"""Cost, as a share of the default's, up to which a setup is compared with it."""
STAND_INS = ("newest sentences", "vague summaries")
"""Setups whose summaries no agent writes: a bound for sentences, and one that hurts."""
RESAMPLES = 2_000
MINIMUM_SESSIONS = 5
"""Fewer sessions with a kind prove no difference."""
CONFIDENCE = 95

KINDS = ("path", "identifier", "number", "error", "decision", "rule", "goal", "open work", "statement")
_PATH = re.compile(r"(?<![\w/.@-])(?:[\w@.-]+/)+[\w@.-]*[\w@-]\.[A-Za-z]{1,5}\b")
_IDENTIFIER = re.compile(
    r"\b(?:[a-z]+_[a-z0-9_]{4,}|[A-Z][a-z]+(?:[A-Z][a-z0-9]+)+|(?=[0-9a-f]*\d)[0-9a-f]{7,40})\b"
)
_NUMBER = re.compile(
    r"\b[A-Za-z][\w-]* ?[:=] ?\d[\d.,]*\d\b|\b\d[\d.,]* ?(?:ms|MB|GB|KB|%|tokens|tests|lines|files)\b"
)
_ERROR = re.compile(
    r"^(?:(?:E|npm|curl:|❌|\[\w+\]) +)*(?:[\w.]*(?:Error|Exception)|[Ee]rror(?:\[\w+\])?|ERROR|fatal|FATAL"
    r"|FAILED|--- FAIL|panic\w*|[Ff]ailed)[: ].{4,}|^=+ \d+ failed"
)
_DECISION = re.compile(r"\b(?:decided|instead of|going with|chose|opted|because|rather than)\b", re.IGNORECASE)
_RULE = re.compile(r"\b(?:never|always|must|do not|don't|only|make sure|should not)\b", re.IGNORECASE)
_OPEN = re.compile(r"\b(?:TO" + r"DO|next step|remaining|still needs?|not yet|follow-up|pending)\b|^[-*] \[ \]")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n")
PROSE_CHARACTERS = 60
ERROR_CHARACTERS = 80

PREFACE = f"""# What our compactor keeps

Written by `WINDOWPANE_SESSIONS_DIR=… python benchmarks/bench_compactor.py`; the same sessions and options give
the same text.

Long sessions of real coding agents, managed again under the default, every preset, truncation (drop the oldest
groups until the call fits) and the default with other summarizers. At up to {CALLS} calls of each session,
evenly spaced over those whose whole conversation exceeds the window, the facts of its older half are looked up
verbatim in what the call sends.

- *Extracted* facts are found by one expression a kind: paths, identifiers and numbers that the user or the
  model wrote (also in tool calls), lines of tool results that start as an error does, sentences with words of
  decisions, rules (of the user) and open work, and the first line of the first user message as the goal. This is
  rough: not every sentence with such a word is a rule or a decision. A *statement* is any sentence of the model.
- *Planted* facts have a number that nothing else has: an error on some line of every {PLANTED_EVERY}rd tool
  result, a line at the end of every reply with text (in turn a path, an identifier, a number, a decision, open
  work), and a rule in every user message.
- *Not regretted* is the share of all content that was not needed again after it was removed.
- No language model writes anything here: summaries are extractive under every setup that summarizes. The setup
  *compaction only* is what providers do: nothing is evicted, and at 90% a summary replaces all but the newest
  tenth and the user's messages; in place of a model's text it repeats the newest sentences of the messages, in
  at most {RECORDED_SHARE:.0%} of the window, as recorded agents do. What a model writes in other words is not
  measured. *Newest sentences* is the same with the room of the default's summaries, which no recorded agent uses.
  *Vague summaries* is the default with a summarizer that hurts: the same sentences without names and numbers.
- *Cost* is the mean of the session's cost as a share of the default's: tokens at the price of fresh input, what
  the call before sent as a prefix at 0.10, all else at 1.25. *Overflows* are calls without room for their output.
  A provider refuses them, so they show no fact, under every setup.
- Shares are means over sessions. Noise is the {CONFIDENCE}% interval of the mean difference to the default over
  {RESAMPLES:,} resamples of the sessions, where at least {MINIMUM_SESSIONS} have the kind. **Bold**: above the
  default beyond noise.
- A digest of its name puts each session into one of two halves. The default was changed on the tuning half only.
"""


class Fact(NamedTuple):
    kind: str
    text: str


class Result(NamedTuple):
    """One session under one setup; shares by kind, planted ones with a prefix."""

    session: str
    limit: int
    setup: str
    shares: dict[str, float]
    cost: float
    calls: int
    overflows: int


# -- facts ------------------------------------------------------------------------------------------------------


def facts_of(blocks: Iterable[Block]) -> Iterator[Fact]:
    """Yield the facts in the blocks, some several times."""
    goal_seen = False
    for block in blocks:
        kind, text = block.content_type, block.text or ""
        if kind == "tool_result":
            lines = (line.strip() for line in text.replace("\\n", "\n").split("\n"))
            yield from (Fact("error", line[:ERROR_CHARACTERS]) for line in lines if _ERROR.match(line))
            continue
        if kind not in ("user_message", "assistant_response", "tool_call"):
            continue
        for name, expression in (("path", _PATH), ("identifier", _IDENTIFIER), ("number", _NUMBER)):
            yield from (Fact(name, match) for match in expression.findall(text))
        if kind == "tool_call":
            continue
        if kind == "user_message" and not goal_seen and text.strip():
            goal_seen = True
            yield Fact("goal", text.strip().split("\n", 1)[0][:ERROR_CHARACTERS])
        for part in _SENTENCE.split(text):
            sentence = part.strip(" \t*#>-").rstrip("*:")
            if len(sentence) < 20:
                continue
            start = sentence[:PROSE_CHARACTERS]
            if kind == "assistant_response":
                yield Fact("statement", start)
            if kind == "user_message" and _RULE.search(sentence):
                yield Fact("rule", start)
            if kind == "assistant_response" and _DECISION.search(sentence):
                yield Fact("decision", start)
            if _OPEN.search(sentence):
                yield Fact("open work", start)


def sampled(facts: Iterable[Fact]) -> list[Fact]:
    """Return at most so many distinct facts a kind, chosen by digest."""
    by_kind: dict[str, set[str]] = {}
    for fact in facts:
        by_kind.setdefault(fact.kind, set()).add(fact.text)
    return [Fact(kind, text) for kind, texts in by_kind.items() for text in sorted(texts, key=_order)[:FACTS]]


def _order(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "replace"), digest_size=8).digest()


def planted(recording: Recording) -> tuple[Recording, dict[str, Fact]]:
    """Return the recording with facts planted in it, and the facts by the line that holds each."""
    facts: dict[str, Fact] = {}
    records: list[Record] = []
    counts: Counter[str] = Counter()
    for number, record in enumerate(recording.records):
        changed = record
        if isinstance(record, ContentAdded) and record.text:
            code = _code(f"{recording.name}{number}")
            count = counts[record.content_type]
            counts[record.content_type] += 1
            line = _planted_line(record.content_type, code, count)
            if line is not None:
                text, kind = line
                facts[text] = Fact(f"planted {kind}", str(code))
                lines = record.text.split("\n")
                lines.insert(code % (len(lines) + 1) if kind == "error" else len(lines), text)
                changed = replace(record, text="\n".join(lines))
        records.append(changed)
    return replace(recording, records=records), facts


def _code(name: str) -> int:
    return int.from_bytes(blake2b(name.encode(), digest_size=4).digest()) % 9_000_000 + 1_000_000


def _planted_line(content_type: str, code: int, count: int) -> tuple[str, str] | None:
    """Return the line to plant in the content of a type, of which *count* came before, and its kind."""
    if content_type == "tool_result" and count % PLANTED_EVERY == PLANTED_EVERY - 1:
        return f"ERROR ERR-{code} upload of the batch was refused by the gateway", "error"
    if content_type == "user_message":
        return f"Never push to branch-{code} without asking.", "rule"
    if content_type == "assistant_response":
        kind, line = _PLANTED[count % len(_PLANTED)]
        return line.format(code, _MEASURES[(count + 1) % len(_MEASURES)]), kind
    return None


_PLANTED = (
    ("path", "The schema is in src/tables/table_{0}.py."),
    ("identifier", "The flag is called use_cache_{0}."),
    ("number", "The {1} is {0}."),
    ("decision", "We decided to use plan-{0} instead of the queue because it keeps the order."),
    ("open work", "TO" + "DO: migrate the tenant {0}, which is not yet done."),
)
_MEASURES = (
    "batch size", "port", "timeout", "row count", "page size", "retry limit", "queue length", "cache size",
    "quota", "memory limit", "shard count", "interval", "worker count", "buffer size", "offset", "depth",
    "version", "rate",
)  # fmt: skip


# -- replays ----------------------------------------------------------------------------------------------------


class Lookups:
    """The facts to look up before some calls of a session."""

    def __init__(self, prepared: PreparedRecording, limit: int, planted_facts: dict[str, Fact]) -> None:
        calls = prepared.history.calls
        needing = [at for at, call in enumerate(calls) if sum(block.tokens for block in call.history) > limit]
        self.facts: dict[int, list[Fact]] = {}
        for part in range(CALLS if len(needing) >= CALLS else 0):
            at = needing[(part + 1) * len(needing) // CALLS - 1]
            blocks = list(_older(calls[at].history))
            text = "\n".join(block.text or "" for block in blocks)
            own = {fact for line, fact in planted_facts.items() if line in text}
            natural = (fact for fact in facts_of(blocks) if not any(one.text in fact.text for one in own))
            self.facts[at] = [*sampled(natural), *own]

    def look_up(self, at: int, blocks: Sequence[Block]) -> list[bool]:
        """Return which facts of a call are in what it sends."""
        text = "\n".join(block.text or "" for block in blocks)
        return [fact.text in text for fact in self.facts[at]]

    def shares(self, found: dict[int, list[bool]]) -> dict[str, float]:
        """Return the share of the facts found, by kind."""
        by_kind: dict[str, list[bool]] = {}
        for at, facts in self.facts.items():
            for fact, is_found in zip(facts, found[at], strict=True):
                by_kind.setdefault(fact.kind, []).append(is_found)
        return {kind: sum(one) / len(one) for kind, one in by_kind.items()}


def _older(history: Sequence[Block]) -> Iterator[Block]:
    room = OLD_SHARE * sum(block.tokens for block in history)
    for block in history:
        room -= block.tokens
        if room < 0:
            return
        yield block


@dataclass(frozen=True, slots=True)
class ChangedDefault(ReplaySetup):
    """The default with another summarizer, or without eviction."""

    label_text: str = ""
    changes: Callable[[], dict[str, Any]] = dict
    """Settings of the engine that differ."""

    @property
    def name(self) -> str:
        """The label."""
        return self.label_text

    def management(self) -> ManagerOptions:
        """Return the default settings with the changes."""
        usual = ReplaySetup(self.limit_tokens).management()
        return replace(usual, settings=replace(usual.settings, **self.changes()))


def newest_sentences(facts: object, *, vague: bool = False, most_tokens: int | None = None, **given: Any) -> str:
    """Return the newest sentences of the removed messages and earlier summaries, in place of a model's text."""
    del facts
    said = given["statements"]
    earlier = [line for text in given["previous"] for line in text.split("\n")]
    lines = [*earlier, *said.decisions, *said.open_work, *said.other]
    if vague:
        lines = [_VALUE.sub("it", line) for line in lines]
    room = min(given["max_tokens"], most_tokens or given["max_tokens"])
    kept: list[str] = []
    for line in reversed(list(dict.fromkeys(lines))):
        room -= given["counter"].count(line) + 1
        if room < 0:
            break
        kept.append(line)
    return "\n".join(kept[::-1])


_VALUE = re.compile(r"\S*(?:[\d_/]|[a-z][A-Z]|\w\.\w)\S*")
"""A word with a digit, or a name."""


def compaction_only(most_tokens: int | None = None) -> dict[str, Any]:
    """Return the settings of an agent that only compacts, into a summary of at most so many tokens."""
    summarizer = partial(newest_sentences, most_tokens=most_tokens)
    return {"cascade": ("compaction", *SAFETY_NET), "compact_ratio": 0.9, "summarizer": summarizer}


def vague_summaries() -> dict[str, Any]:
    """Return the settings with a summarizer that hurts."""
    return {"summarizer": partial(newest_sentences, vague=True)}


def setups_of(limit: int) -> list[ReplaySetup]:
    """Return the default, every preset, the changed defaults, and truncation of the full window and of a part."""
    return [
        ReplaySetup(limit),
        *(ReplaySetup(limit, preset=name) for name in preset_names()),
        ChangedDefault(
            limit, label_text="compaction only", changes=partial(compaction_only, int(RECORDED_SHARE * limit))
        ),
        ChangedDefault(limit, label_text="newest sentences", changes=compaction_only),
        ChangedDefault(limit, label_text="vague summaries", changes=vague_summaries),
        ReplaySetup(limit, "truncate"),
        ReplaySetup(limit, "truncate", truncate_ratio=0.4),
    ]


class Task(NamedTuple):
    source: RecordingSource
    setups: Sequence[str]
    """Names of the setups; empty for all."""


def study(task: Task) -> list[Result]:
    """Replay one session under every setup in every window that it exceeds."""
    recording, facts = planted(task.source.load())
    prepared = PreparedRecording(recording)
    results = []
    for limit in LIMITS:
        if prepared.static_tokens > ReplaySetup(limit).limits.usable_tokens:
            continue
        lookups = Lookups(prepared, limit, facts)
        if lookups.facts:
            setups = [setup for setup in setups_of(limit) if not task.setups or setup.name in task.setups]
            results += [replayed(prepared, setup, lookups) for setup in setups]
    return results


def replayed(prepared: PreparedRecording, setup: ReplaySetup, lookups: Lookups) -> Result:
    """Replay a session under one setup and look up its facts."""
    found: dict[int, list[bool]] = {}
    call = 0

    def watch(manager: BlockingWindow) -> None:
        nonlocal call
        if call in lookups.facts:
            found[call] = lookups.look_up(call, manager.blocks())
        call += 1

    run = simulate(prepared, setup, watch=watch, probe=False)
    for at, facts in lookups.facts.items():
        if setup.kind == "truncate":
            tokens = int(setup.limits.overflow_tokens * setup.truncate_ratio)
            found[at] = lookups.look_up(at, truncate(prepared.history.calls[at].history, tokens))
        if run.timeline[at] > setup.fitting_tokens:
            found[at] = [False] * len(facts)
    shares = lookups.shares(found)
    measured = run.measures
    if measured.regret_ratio is not None:
        shares[NOT_REGRETTED] = 1 - measured.regret_ratio
    return Result(
        prepared.recording.name, setup.limit_tokens, setup.name, shares, measured.cost_tokens,
        measured.turns, measured.overflows,
    )  # fmt: skip


def summary_shares(source: RecordingSource) -> list[float]:
    """Return the sizes of a session's recorded summaries as shares of the tokens before each compaction.

    Only of compactions that the agent started by itself.
    """
    recording = source.load()
    counter = recording.counter()
    return [
        counter.count(record.summary) / record.tokens_before
        for record in recording.records
        if isinstance(record, Compacted) and record.trigger == "auto" and record.summary and record.tokens_before
    ]


# -- report -----------------------------------------------------------------------------------------------------


def half_of(name: str) -> str:
    """Return the half of a session."""
    return HALVES[blake2b(name.encode(), digest_size=2).digest()[0] % 2]


class Comparison(NamedTuple):
    """The difference of a setup to the default, over the sessions that both have, with its noise."""

    sessions: int
    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, default: dict[str, float], other: dict[str, float]) -> Comparison:
        """Compare shares by session."""
        differences = np.array([other[name] - share for name, share in default.items() if name in other])
        if len(differences) < MINIMUM_SESSIONS:
            return cls(len(differences), 0.0, -1.0, 1.0)
        chance = np.random.default_rng(0)
        means = chance.choice(differences, (RESAMPLES, len(differences))).mean(axis=1)
        low, high = np.percentile(means, [(100 - CONFIDENCE) / 2, (100 + CONFIDENCE) / 2])
        return cls(len(differences), float(differences.mean()), float(low), float(high))

    @property
    def is_above(self) -> bool:
        """Return whether the setup is above the default beyond noise."""
        return self.low > 0


class Table:
    """The results of some sessions in one window."""

    def __init__(self, results: Sequence[Result], limit: int) -> None:
        self.limit = limit
        self.results = [one for one in results if one.limit == limit]
        self.setups = list(dict.fromkeys(one.setup for one in self.results))
        self.default = ReplaySetup(limit).name
        self.sessions = len({one.session for one in self.results})
        found = {kind for one in self.results for kind in one.shares}
        kinds = (*KINDS, *(f"planted {kind}" for kind in KINDS), NOT_REGRETTED)
        self.kinds = [kind for kind in kinds if kind in found]

    def shares(self, setup: str, kind: str) -> dict[str, float]:
        """Return the shares of a kind by session."""
        return {one.session: one.shares[kind] for one in self._runs(setup) if kind in one.shares}

    def cost(self, setup: str) -> float:
        """Return the mean cost as a share of the default's."""
        default = {one.session: one.cost for one in self._runs(self.default)}
        shares = [one.cost / default[one.session] for one in self._runs(setup) if one.session in default]
        return sum(shares) / len(shares)

    def compared(self, setup: str, kind: str) -> Comparison:
        """Return the difference of a setup to the default."""
        return Comparison.of(self.shares(self.default, kind), self.shares(setup, kind))

    def lines(self) -> Iterator[str]:
        """Yield the table: a row a kind, a column a setup."""
        labels = [f"{name} (default)" if name == self.default else name for name in self.setups]
        yield f"\n### {format_window(self.limit)} window: {self.sessions} sessions\n"
        yield f"| kind | sessions | {' | '.join(labels)} |"
        yield "|---|--:|" + "--:|" * len(labels)
        for kind in self.kinds:
            cells = [self._cell(setup, kind) for setup in self.setups]
            yield f"| {kind} | {len(self.shares(self.default, kind))} | {' | '.join(cells)} |"
        yield f"| cost | | {' | '.join(f'{self.cost(setup):.2f}' for setup in self.setups)} |"
        yield f"| overflows | | {' | '.join(map(self._overflows, self.setups))} |"

    def _runs(self, setup: str) -> list[Result]:
        return [one for one in self.results if one.setup == setup]

    def _cell(self, setup: str, kind: str) -> str:
        shares = list(self.shares(setup, kind).values())
        text = f"{sum(shares) / len(shares):.1%}" if shares else ""
        return f"**{text}**" if setup != self.default and self.compared(setup, kind).is_above else text

    def _overflows(self, setup: str) -> str:
        runs = self._runs(setup)
        return f"{sum(one.overflows for one in runs) / sum(one.calls for one in runs):.1%}"


def verdict(found: Sequence[Table], *, stand_ins: bool) -> Iterator[str]:
    """Yield how the default compares with the setups of at most its cost, and where it is below one."""
    above = within = unknown = 0
    below: list[str] = []
    for table in found:
        for setup in table.setups:
            if setup in (table.default, BEFORE) or (setup in STAND_INS) != stand_ins:
                continue
            if table.cost(setup) > EQUAL_COST:
                continue
            for kind in table.kinds:
                one = table.compared(setup, kind)
                if one.sessions < MINIMUM_SESSIONS:
                    unknown += 1
                    continue
                above += one.high < 0
                within += one.low <= 0 <= one.high
                if one.is_above:
                    below.append(
                        f"- {format_window(table.limit)}, {kind}: `{setup}` {one.mean * 100:+.1f} points "
                        f"({one.low * 100:+.1f} to {one.high * 100:+.1f}) at {table.cost(setup):.2f} of the cost"
                    )
    setups = "summaries that no agent writes" if stand_ins else "presets, truncation and compaction only"
    few = f"{unknown} more are of fewer than {MINIMUM_SESSIONS} sessions"
    yield (
        f"\nAgainst {setups}, as far as they cost at most {EQUAL_COST} times as much, the default\nis above "
        f"beyond noise in {above} comparisons of a kind in a window, within noise in {within}, and below in "
        f"{len(below)}.\n{few}{'. Below:' if below else '.'}\n"
    )
    yield from below


def section(results: Sequence[Result], title: str) -> Iterator[str]:
    """Yield the verdict and the tables of a half."""
    found = [table for limit in LIMITS if (table := Table(results, limit)).results]
    yield f"## {title}"
    yield from verdict(found, stand_ins=False)
    yield from verdict(found, stand_ins=True)
    for table in found:
        yield from table.lines()
    yield ""


def recorded_sizes(shares: Sequence[float]) -> str:
    """Return the sentence about the sizes of recorded summaries."""
    if not shares:
        return ""
    middle, most, largest = np.percentile(shares, [50, 90, 100])
    return (
        f"The {len(shares)} summaries that agents wrote by themselves in all sessions have {middle:.1%} of the "
        f"tokens before them\nin the median, {most:.1%} at the 90th percentile and {largest:.1%} at most.\n"
    )


def saved(rows: Path, *, name: str | None = None) -> list[Result]:
    """Return saved results; those of the default under another *name*."""
    found = [Result(**row) for row in json.loads(rows.read_text(encoding="utf-8"))]
    return found if name is None else [one._replace(setup=name) for one in found if one.setup == "hybrid"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=HALVES, default="reported")
    parser.add_argument("--sessions", type=int)
    parser.add_argument("--setups", nargs="*", default=())
    parser.add_argument("--rows", type=Path)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    folder = os.environ.get("WINDOWPANE_SESSIONS_DIR")
    if not folder:
        print("WINDOWPANE_SESSIONS_DIR is not set: no recorded sessions to replay; nothing done")
        return
    folders = [Path(folder).with_name(name) for name in FOLDERS]
    sources = list(find_recordings([one for one in folders if one.is_dir()]))
    if options.half == "tuning":
        sources = [source for source in sources if half_of(source.name) == "tuning"]
    total = len(sources)
    chosen = sorted(spread(sources, options.sessions), key=lambda source: _order(source.name))
    results = saved(options.rows) if options.rows and options.rows.exists() else []
    measured = {one.session for one in results}
    with ProcessPoolExecutor(options.workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        tasks = [Task(source, options.setups) for source in chosen if source.name not in measured]
        for number, found in enumerate(pool.map(study, tasks), 1):
            print(f"\r{number} of {len(tasks)}", end="", file=sys.stderr, flush=True)
            results += found
            if options.rows:
                options.rows.write_text(json.dumps([one._asdict() for one in results]), encoding="utf-8")
        read = sources if options.half == "reported" else ()
        recorded = [share for shares in pool.map(summary_shares, read) for share in shares]
    print(file=sys.stderr)
    if options.before:
        names = {one.session for one in results}
        results += [one for one in saved(options.before, name=BEFORE) if one.session in names]
    parts = {half: [one for one in results if half_of(one.session) == half] for half in HALVES}
    if options.half == "tuning":
        print("\n".join(section(parts["tuning"], "Tuning half")))
        return
    setups = f", {', '.join(options.setups)} only" if options.setups else ""
    share = f"This run: {len(chosen)} of {total} sessions, evenly spaced{setups}.\n{recorded_sizes(recorded)}"
    halves = (*section(parts["reported"], "Reported half"), *section(parts["tuning"], "Tuning half"))
    text = "\n".join([PREFACE, share, *halves])
    TARGET.write_text(text.rstrip() + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
