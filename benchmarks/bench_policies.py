"""Every policy, preset and both baselines over recorded sessions; writes `POLICIES.md` beside this file.

The sessions are those of the folder that WINDOWPANE_SESSIONS_DIR names. They are split in two halves by a digest
of their names: parameters may be tuned on one, the other is reported. The default policy is held against each
baseline with tokens sent matched by sweeping the baseline's setting, and against the best preset as it is; the
intervals are 90% of a paired bootstrap by session, and inconclusive where they include zero.
`--half tuning` prints the tuning half and writes nothing; `--quick` leaves the long windows out.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import numpy as np

from windowpane.control.eviction.policies import POLICIES
from windowpane.replay import JoinedSource, Prepared, Run, Setup, simulate, sources_of
from windowpane.replay.catalogue import preset_names
from windowpane.replay.recordings import Source
from windowpane.replay.setups import window_name
from windowpane.replay.summary import summaries

TARGET = Path(__file__).with_name("POLICIES.md")
DEFAULT = "hybrid"
LIMITS = (8_192, 32_768)
LONG_LIMITS = (131_072, 200_000)
JOINED_SHARE = 1.5
"""Sessions are joined until they hold this many windows of content."""
KEEP_GROUPS = (5, 10, 20)
MATCHED = 0.02
"""Tokens sent count as matched within this share."""
RESAMPLES = 10_000
FEWEST = 6
"""Sessions below which no interval is believed: a bootstrap of so few says nothing."""
HALVES = ("tuning", "reported")
FIGURES = ("regret_ratio", "regrets", "fidelity", "cost_tokens")
"""What pairs are compared by; the first is the one that counts."""


@dataclass(frozen=True)
class Matched:
    """A baseline at the setting where it sends as many tokens as the default."""

    kind: str
    figures: dict[str, float] | None
    """None where no setting sends as many."""
    interpolated: bool = False
    """Between the two settings nearest, where none came within 2%."""
    overflows: int = 0


@dataclass(frozen=True)
class Studied:
    """One session in one window."""

    name: str
    limit_tokens: int
    runs: tuple[Run, ...]
    matched: tuple[Matched, ...]


class Task(NamedTuple):
    source: Source
    limit_tokens: int


class Difference(NamedTuple):
    """Mean of default less other, with its 90% interval; None where there are too few sessions."""

    sessions: int
    mean: float
    low: float
    high: float


def half_of(name: str) -> str:
    return HALVES[blake2b(name.encode(), digest_size=2).digest()[0] % 2]


def study(task: Task) -> Studied | None:
    """Replay one session in one window; None where the window does not bind, or cannot hold it."""
    prepared = Prepared(task.source.load())
    default = Setup(task.limit_tokens, policy=DEFAULT)
    limits = default.limits
    fullest = max((sum(b.tokens for b in call.history) for call in prepared.history.calls), default=0)
    if fullest <= limits.orange_tokens or prepared.standing_tokens > limits.usable_tokens:
        return None
    setups = [Setup(task.limit_tokens, policy=name) for name in POLICIES]
    setups += [Setup(task.limit_tokens, preset=name) for name in preset_names()]
    setups.append(Setup(task.limit_tokens, "truncate"))
    setups += [Setup(task.limit_tokens, "keep_last", keep_groups=groups) for groups in KEEP_GROUPS]
    runs = tuple(simulate(prepared, setup) for setup in setups)
    target = next(run for run in runs if run.setup == default).measures.tokens_sent
    matched = tuple(match(prepared, task.limit_tokens, target) for match in (match_truncation, match_keeping))
    return Studied(task.source.name, task.limit_tokens, runs, matched)


def match_truncation(prepared: Prepared, limit_tokens: int, target: int) -> Matched:
    """By the share of the window at which it begins to drop."""
    return _match(
        "truncate",
        lambda step: simulate(prepared, Setup(limit_tokens, "truncate", truncate_ratio=step / 1_000)),
        10,
        1_000,
        target,
    )


def match_keeping(prepared: Prepared, limit_tokens: int, target: int) -> Matched:
    """By the number of groups it keeps."""
    return _match(
        "keep_last",
        lambda step: simulate(prepared, Setup(limit_tokens, "keep_last", keep_groups=step)),
        1,
        max(2, len(prepared.history.calls) * 2),
        target,
    )


def _match(kind: str, at: Callable[[int], Run], low: int, high: int, target: int) -> Matched:
    below, above = at(low), at(high)
    if below.measures.tokens_sent > target * (1 + MATCHED):
        return Matched(kind, None)
    if above.measures.tokens_sent < target * (1 - MATCHED):
        return Matched(kind, None)
    while high - low > 1:
        middle = (low + high) // 2
        run = at(middle)
        if run.measures.tokens_sent <= target:
            low, below = middle, run
        else:
            high, above = middle, run
    nearest = min(below, above, key=lambda run: abs(run.measures.tokens_sent - target))
    overflows = nearest.measures.overflows
    if abs(nearest.measures.tokens_sent / target - 1) <= MATCHED:
        return Matched(kind, figures(nearest), overflows=overflows)
    span = above.measures.tokens_sent - below.measures.tokens_sent
    share = (target - below.measures.tokens_sent) / span
    one, other = figures(below), figures(above)
    mixed = {name: one[name] + share * (other[name] - one[name]) for name in one if name in other}
    return Matched(kind, mixed, interpolated=True, overflows=overflows)


def figures(run: Run) -> dict[str, float]:
    values = {name: getattr(run.measures, name) for name in FIGURES}
    return {name: float(value) for name, value in values.items() if value is not None}


def difference(pairs: Iterable[tuple[float, float]]) -> Difference | None:
    """Mean of first less second, with the 90% interval of a bootstrap that draws sessions."""
    deltas = np.array([one - other for one, other in pairs])
    if not len(deltas):
        return None
    drawn = np.random.default_rng(20).choice(deltas, size=(RESAMPLES, len(deltas))).mean(axis=1)
    low, high = np.quantile(drawn, [0.05, 0.95])
    return Difference(len(deltas), float(deltas.mean()), float(low), float(high))


def said(found: Difference, *, lower_is_better: bool) -> str:
    """The verdict in words."""
    if found.sessions < FEWEST:
        return f"inconclusive (only {found.sessions})"
    if found.low <= 0 <= found.high:
        return "inconclusive"
    return "better" if (found.high < 0) == lower_is_better else "worse"


def joined(sources: Sequence[tuple[Source, int]], limit_tokens: int) -> list[Source]:
    """Disjoint runs of sessions, each of at least one and a half windows of content."""
    groups: list[Source] = []
    parts: list[Source] = []
    tokens = 0
    for source, size in sources:
        parts.append(source)
        tokens += size
        if tokens >= JOINED_SHARE * limit_tokens:
            groups.append(JoinedSource(f"joined {len(groups) + 1} ({len(parts)} sessions)", tuple(parts)))
            parts, tokens = [], 0
    return groups


def measure_size(source: Source) -> int:
    return Prepared(source.load()).history.tokens


# -- the report -------------------------------------------------------------------------------------------------


def table(studied: Sequence[Studied]) -> list[str]:
    head = (
        "| under | overflows | tokens sent | cost, tokens | dollars | evicted | compressions | probe fidelity |"
        " regrets | regretted of all content | of removed |"
    )
    lines = [
        head,
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for one in summaries(run for session in studied for run in session.runs):
        name = f"**{one.setup.name}** (default)" if one.setup.name == DEFAULT else one.setup.name
        priced = [
            run.measures.cost_dollars
            for session in studied
            for run in session.runs
            if run.setup == one.setup and run.measures.cost_dollars is not None
        ]
        lines.append(
            f"| {name} | {one.overflows:,} of {one.turns:,} | {one.tokens_sent:,} | {one.cost_tokens:,.0f} "
            f"| {sum(priced):.2f} | {one.evicted_blocks:,} | {one.compressions:,} | {ratio(one.fidelity)} "
            f"| {one.regrets:,} | {percent(one.regret_ratio)} | {percent(one.regretted_share)} |"
        )
    return lines


def ratio(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"


class Compared(NamedTuple):
    """A measure that pairs are compared by."""

    name: str
    label: str
    lower_is_better: bool
    unit: float = 1.0
    suffix: str = ""


COMPARED = (
    Compared("regret_ratio", "regretted of all content", lower_is_better=True, unit=100, suffix=" pp"),
    Compared("regrets", "regrets a session", lower_is_better=True),
    Compared("fidelity", "probe fidelity", lower_is_better=False),
    Compared("cost_tokens", "cost, tokens a session", lower_is_better=True),
)
Figures = dict[str, float]


def comparison(studied: Sequence[Studied]) -> list[str]:
    """The default against each baseline at its tokens, and against every preset as it is."""
    lines = [
        "| default against | by | sessions | mean difference | 90% interval | default is |",
        "|---|---|--:|--:|--:|---|",
    ]
    for kind, title in (("truncate", "truncation, tokens matched"), ("keep_last", "keep last N, tokens matched")):
        found = {one.name: next(m for m in one.matched if m.kind == kind) for one in studied}
        every = {name: m.figures for name, m in found.items() if m.figures is not None}
        sound = {name: values for name, values in every.items() if not found[name].overflows}
        lines += rows(title, studied, every, COMPARED)
        if len(sound) < len(every):
            lines += rows(f"{title}, where it never overflows", studied, sound, COMPARED[:2])
    for preset in preset_names():
        as_is = {one.name: figures(_run_of(one, f"preset {preset}")) for one in studied}
        lines += rows(f"preset {preset}, as it is", studied, as_is, COMPARED)
    return lines


def rows(
    title: str, studied: Sequence[Studied], found: dict[str, Figures], compared: Sequence[Compared]
) -> list[str]:
    lines = []
    defaults = {one.name: figures(_run_of(one, DEFAULT)) for one in studied}
    for measure in compared:
        pairs = [
            (defaults[name][measure.name], values[measure.name])
            for name, values in found.items()
            if measure.name in values and measure.name in defaults[name]
        ]
        result = difference(pairs)
        if result is not None:
            mean, low, high = (number(value * measure.unit) for value in result[1:])
            verdict = said(result, lower_is_better=measure.lower_is_better)
            lines.append(
                f"| {title} | {measure.label} | {result.sessions} | {mean}{measure.suffix} | {low} to {high} "
                f"| {verdict} |"
            )
    return lines


def number(value: float) -> str:
    return f"{value:+,.0f}" if abs(value) >= 100 else f"{value:+.2f}"


def _run_of(one: Studied, name: str) -> Run:
    return next(run for run in one.runs if run.setup.name == name)


def matching(studied: Sequence[Studied]) -> str:
    words = []
    for kind, title in (("truncate", "truncation"), ("keep_last", "keep last N")):
        found = [next(m for m in one.matched if m.kind == kind) for one in studied]
        direct = sum(m.figures is not None and not m.interpolated for m in found)
        between = sum(m.interpolated for m in found)
        out = sum(m.figures is None for m in found)
        over = sum(m.overflows for m in found)
        words.append(
            f"{title}: {direct} within 2%, {between} interpolated between two settings, "
            f"{out} out of reach and left out, {over:,} overflowing calls at the matched settings"
        )
    return "; ".join(words) + "."


def section(title: str, studied: Sequence[Studied]) -> list[str]:
    names = ", ".join(f"`{one.name[:48]}`" for one in studied)
    if not studied:
        return [f"## {title}", "", "No session fills this window.", ""]
    return [
        f"## {title}", "", f"{len(studied)} sessions that fill it: {names}.", "", *table(studied), "",
        *comparison(studied), "", f"Matching: {matching(studied)}", "",
    ]  # fmt: skip


def sweep(folder: Path, *, half: str | None, quick: bool) -> list[Studied]:
    """Every session in every window it fills; of one half only, where one is named."""
    sources: list[Source] = [one for one in sources_of([folder]) if half in (None, half_of(one.name))]
    tasks = [Task(source, limit) for limit in LIMITS for source in sources]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), mp_context=context) as pool:
        if not quick:
            sized = list(zip(sources, pool.map(measure_size, sources), strict=True))
            tasks += [Task(source, limit) for limit in LONG_LIMITS for source in joined(sized, limit)]
        found = []
        for number, one in enumerate(pool.map(study, tasks), 1):
            print(f"\r{number} of {len(tasks)}", end="", file=sys.stderr, flush=True)
            if one is not None:
                found.append(one)
    print(file=sys.stderr)
    return found


def chapter(title: str, studied: Sequence[Studied], limits: Sequence[int], note: str = "") -> list[str]:
    lines = [f"# {title}", ""]
    for limit in limits:
        heading = f"{window_name(limit)} window{note}"
        lines += section(heading, [one for one in studied if one.limit_tokens == limit])
    return lines


def verdicts(studied: Sequence[Studied], limits: Sequence[int]) -> list[str]:
    """What counts, a line a window and a baseline."""
    lines = []
    for limit in limits:
        own = [one for one in studied if one.limit_tokens == limit]
        for kind, title in (("truncate", "truncation"), ("keep_last", "keep last N")):
            every = {one.name: m.figures for one in own for m in one.matched if m.kind == kind and m.figures}
            pairs = [
                (_run_of(one, DEFAULT).measures.regret_ratio or 0.0, every[one.name]["regret_ratio"])
                for one in own
                if one.name in every
            ]
            found = difference(pairs)
            if found is not None:
                mean, low, high = (number(100 * value) for value in found[1:])
                verdict = said(found, lower_is_better=True)
                lines.append(
                    f"- {window_name(limit)}, against {title} at the same tokens: {mean} pp "
                    f"({low} to {high}, {found.sessions} sessions): {verdict}."
                )
    return lines


PREFACE = f"""# Policies over recorded sessions

Written by `WINDOWPANE_SESSIONS_DIR=… python benchmarks/bench_policies.py`; the same sessions give the same text.

Each session is managed again under every policy and preset, and sent unmanaged under two baselines: truncation
(drop the oldest groups until the call fits, keep the system prompt) and keeping the last N groups. What people,
tools and the model said is the recording's; a policy cannot change what the recorded agent did next. No language
model is configured, so summaries are extractive. Only sessions that reach the orange zone of a window, and whose
system prompt and tools fit it, are counted there.

- Overflows: calls that would leave no room for their output. A baseline that overflows has failed at that call;
  its regret is counted as if the call had been made and everything in it seen, which favours it. So the
  sessions in which the matched baseline never overflows are also compared by themselves.
- Cost: tokens at the price of fresh input, what the call before sent as a prefix at 0.10, all else at 1.25;
  dollars by list price, where the model is known.
- Probe fidelity: share of the facts of what left that was still in sight; a handle counts nothing.
- Regret: content that had left was fetched again (same call or same digest), or a rare identifier of it that
  nothing in sight said any more was used by the recorded agent, within 20 turns. "Of all content" divides by
  everything the session ever held, so that removing more useless content does not lower it; it is what the
  default is judged by.
- Differences are default less other, by session; the interval is 90% of {RESAMPLES:,} bootstrap samples of the
  sessions. Inconclusive: it includes zero, or fewer than {FEWEST} sessions.

Sessions are split by a digest of their names, so that parameters can be tuned on one half and reported on the
other. The reported half comes first. Variants were tried on the other half, and none was adopted; so all
sessions together follow, which is the larger sample. Few sessions fill the larger windows by themselves; there
recordings are joined end to end, which no agent ever was.

Presets are compared as they are, at whatever they send; those that count tokens by characters may overflow here
where their own count says that they do not.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", choices=HALVES, default="reported")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    folder = os.environ.get("WINDOWPANE_SESSIONS_DIR")
    if not folder:
        print("WINDOWPANE_SESSIONS_DIR is not set: no recorded sessions to replay; nothing done")
        return
    half = "tuning" if options.half == "tuning" else None
    studied = sweep(Path(folder), half=half, quick=options.quick)
    if half:
        print("\n".join(chapter("Tuning half", studied, LIMITS)))
        return
    reported = [one for one in studied if half_of(one.name) == "reported"]
    lines = [
        PREFACE,
        "## Regret of the default, all sessions",
        "",
        *verdicts(studied, (*LIMITS, *LONG_LIMITS)),
        "",
        *chapter("Reported half", reported, LIMITS),
        *chapter("All sessions", studied, LIMITS),
        *chapter("Joined end to end", studied, LONG_LIMITS, ", joined sessions"),
    ]
    text = "\n".join(lines).rstrip() + "\n"
    if not options.quick:
        TARGET.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
