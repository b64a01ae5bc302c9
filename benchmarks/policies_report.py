"""What the study of the policies found, as Markdown: tables, paired differences with intervals, verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from windowpane.replay import Run
from windowpane.replay.catalogue import preset_names
from windowpane.replay.setups import window_name
from windowpane.replay.summary import summaries

DEFAULT: Final = "hybrid"
RESAMPLES: Final = 10_000
FEWEST: Final = 6
"""Sessions below which no interval is believed: a bootstrap of so few says nothing."""
FIGURES: Final = ("regret_ratio", "regrets", "fidelity", "cost_tokens")
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


class Difference(NamedTuple):
    """Mean of default less other, with its 90% interval; None where there are too few sessions."""

    sessions: int
    mean: float
    low: float
    high: float


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

The halves came out uneven: one session of the reported half fills 32k.

Tried on the tuning half in two rounds, proposed and not adopted: zones at 0.50/0.80/0.95. In a 32k window
(0.50/0.75/0.90 now) regret fell from 10.2% to 7.7% of all content for 6% more tokens sent and 2% more cost, from
0.6 to 3.1 points below truncation at the same tokens. In an 8k window (0.40/0.65/0.85 now) it fell from 21.8% to
20.3% for 18% more tokens, which brings truncation as much. Eviction from 0.85 was no better than from 0.80.
Evicting only to 0.9 of where eviction begins: 8.3% in 32k for 18% more cost, no change in 8k. Dropping any old
group: 0.5 points better in 8k, 1.4 worse in 32k. A larger cap of single results: 0.3 points better in 8k.

Presets are compared as they are, at whatever they send, which is up to a third more in a small window. Those
that count tokens by characters may overflow here where their own count says that they do not.
"""
