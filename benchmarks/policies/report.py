"""The results of the study of the policies as Markdown: tables, paired differences with intervals, verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from windowpane.evaluation.replay import ReplayRun
from windowpane.evaluation.replay.results import summarize_runs
from windowpane.evaluation.replay.setups import format_window, preset_names

DEFAULT: Final = "hybrid"
RESAMPLES: Final = 10_000
FEWEST: Final = 6
"""Minimum number of sessions for an interval: a bootstrap of fewer is not reliable."""
FIGURES: Final = (
    "regret_ratio",
    "regrets",
    "fidelity",
    "cost_tokens",
    "regret_ratio_unsummarized",
    "regret_ratio_with_oversized",
)
"""Measures by which pairs are compared; the first is the main one."""


@dataclass(frozen=True)
class Matched:
    """A baseline at the setting where it sends as many tokens as the default; or, by a preset's name, the default
    at the setting where it sends as many as the preset."""

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
    runs: tuple[ReplayRun, ...]
    matched: tuple[Matched, ...]


class Difference(NamedTuple):
    """Mean of default less other, with its 90% interval; None for too few sessions."""

    sessions: int
    mean: float
    low: float
    high: float


def values_of(run: ReplayRun) -> dict[str, float]:
    values = {name: getattr(run.measures, name) for name in FIGURES}
    return {name: float(value) for name, value in values.items() if value is not None}


def difference(pairs: Iterable[tuple[float, float]]) -> Difference | None:
    """Return the mean of first less second, with the 90% interval of a bootstrap that draws sessions."""
    deltas = np.array([one - other for one, other in pairs])
    if not len(deltas):
        return None
    drawn = np.random.default_rng(20).choice(deltas, size=(RESAMPLES, len(deltas))).mean(axis=1)
    low, high = np.quantile(drawn, [0.05, 0.95])
    return Difference(len(deltas), float(deltas.mean()), float(low), float(high))


def verdict_text(found: Difference, *, lower_is_better: bool) -> str:
    """Return the verdict as text."""
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
    for one in summarize_runs(run for session in studied for run in session.runs):
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
    """A measure by which pairs are compared."""

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
OTHER_READINGS = (
    Compared(
        "regret_ratio_unsummarized",
        "regretted, names in summaries not counted",
        lower_is_better=True,
        unit=100,
        suffix=" pp",
    ),
    Compared(
        "regret_ratio_with_oversized",
        "regretted, content larger than the window counted",
        lower_is_better=True,
        unit=100,
        suffix=" pp",
    ),
)
"""Readings without the advantage of one side: only the default writes summaries, only baselines send oversized
content."""
Figures = dict[str, float]


def comparison(studied: Sequence[Studied]) -> list[str]:
    """Compare the default with each baseline at its tokens, and with every preset, also at the preset's."""
    lines = [
        "| default against | by | sessions | mean difference | 90% interval | default is |",
        "|---|---|--:|--:|--:|---|",
    ]
    defaults = {one.name: values_of(run_of(one, DEFAULT)) for one in studied}
    for kind, title in BASELINES:
        found = {one.name: matched_with(one, kind) for one in studied}
        every = {name: m.figures for name, m in found.items() if m.figures is not None}
        sound = {name: values for name, values in every.items() if not found[name].overflows}
        lines += rows(f"{title}, tokens matched", defaults, every, (*COMPARED, *OTHER_READINGS))
        if len(sound) < len(every):
            lines += rows(f"{title}, tokens matched, where it never overflows", defaults, sound, COMPARED[:2])
    for preset in preset_names():
        name = f"preset {preset}"
        as_is = {one.name: values_of(run_of(one, name)) for one in studied}
        lines += rows(f"{name}, as it is", defaults, as_is, COMPARED)
        matched = {one.name: m.figures for one in studied if (m := matched_with(one, name)).figures is not None}
        lines += rows(f"{name}, tokens matched", matched, as_is, COMPARED)
    return lines


BASELINES: Final = (("truncate", "truncation"), ("keep_last", "keep last N"))


def matched_with(one: Studied, kind: str) -> Matched:
    """Return the run that is compared with *kind* at the same tokens."""
    return next(m for m in one.matched if m.kind == kind)


def rows(
    title: str, defaults: dict[str, Figures], found: dict[str, Figures], compared: Sequence[Compared]
) -> list[str]:
    """Return one line per measure: the default's values against *found*, over the sessions that both have."""
    lines = []
    for measure in compared:
        result = difference(_pairs(defaults, found, measure.name))
        if result is not None:
            mean, low, high = (number(value * measure.unit) for value in result[1:])
            verdict = verdict_text(result, lower_is_better=measure.lower_is_better)
            lines.append(
                f"| {title} | {measure.label} | {result.sessions} | {mean}{measure.suffix} | {low} to {high} "
                f"| {verdict} |"
            )
    return lines


def _pairs(defaults: dict[str, Figures], found: dict[str, Figures], measure: str) -> list[tuple[float, float]]:
    return [
        (defaults[name][measure], values[measure])
        for name, values in found.items()
        if measure in values and measure in defaults.get(name, {})
    ]


def number(value: float) -> str:
    return f"{value:+,.0f}" if abs(value) >= 100 else f"{value:+.2f}"


def run_of(one: Studied, name: str) -> ReplayRun:
    """Return the replay under a policy or preset."""
    return next(run for run in one.runs if run.setup.name == name)


def matching(studied: Sequence[Studied]) -> str:
    words = []
    presets = [(f"preset {name}", f"default to preset {name}") for name in preset_names()]
    for kind, title in (*BASELINES, *presets):
        found = [matched_with(one, kind) for one in studied]
        direct = sum(m.figures is not None and not m.interpolated for m in found)
        between = sum(m.interpolated for m in found)
        out = sum(m.figures is None for m in found)
        over = sum(m.overflows for m in found)
        words.append(
            f"{title}: {direct} within 2%, {between} interpolated between two settings, "
            f"{out} out of reach and omitted, {over:,} overflowing calls at the matched settings"
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
        heading = f"{format_window(limit)} window{note}"
        lines += section(heading, [one for one in studied if one.limit_tokens == limit])
    return lines


def verdicts(studied: Sequence[Studied], limits: Sequence[int]) -> list[str]:
    """Return one line per window and opponent: both baselines, and the best preset by both readings."""
    lines = []
    for limit in limits:
        own = [one for one in studied if one.limit_tokens == limit]
        if not own:
            continue
        window = format_window(limit)
        defaults = {one.name: values_of(run_of(one, DEFAULT)) for one in own}
        for kind, title in BASELINES:
            found = {one.name: m.figures for one in own if (m := matched_with(one, kind)).figures is not None}
            lines.append(_verdict(f"{window}, against {title} at the same tokens", defaults, found))
            lines += [_verdict(f"  {window}, {one.label}", defaults, found, one.name) for one in OTHER_READINGS]
        best = best_preset(own)
        as_is = {one.name: values_of(run_of(one, best)) for one in own}
        sent = [sum(run_of(one, name).measures.tokens_sent for one in own) for name in (best, DEFAULT)]
        over = sum(run_of(one, best).measures.overflows for one in own)
        label = f"{window}, against the best {best}" + (f", which overflows in {over} calls" if over else "")
        lines.append(_verdict(f"{label}, as it is ({sent[0] / sent[1] - 1:+.0%} tokens)", defaults, as_is))
        matched = {one.name: m.figures for one in own if (m := matched_with(one, best)).figures is not None}
        lines.append(_verdict(f"{label}, at the same tokens", matched, as_is))
    return lines


def best_preset(studied: Sequence[Studied]) -> str:
    """Return the preset with the lowest mean regret, of those that overflow in the fewest calls."""

    def rank(name: str) -> tuple[int, float]:
        runs = [run_of(one, name).measures for one in studied]
        return sum(run.overflows for run in runs), sum(run.regret_ratio or 0.0 for run in runs)

    return min((f"preset {name}" for name in preset_names()), key=rank)


def _verdict(
    title: str, defaults: dict[str, Figures], found: dict[str, Figures], measure: str = "regret_ratio"
) -> str:
    """Return a line of a list, one level deeper below a title."""
    line = f"{' ' * (len(title) - len(title.lstrip()))}- {title.lstrip()}"
    result = difference(_pairs(defaults, found, measure))
    if result is None:
        return f"{line}: nothing to compare."
    mean, low, high = (number(100 * value) for value in result[1:])
    sessions = "1 session" if result.sessions == 1 else f"{result.sessions} sessions"
    return f"{line}: {mean} pp ({low} to {high}, {sessions}): {verdict_text(result, lower_is_better=True)}."
