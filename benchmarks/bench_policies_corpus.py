"""The default policy over long recorded sessions, each by itself; writes `POLICIES_CORPUS.md` beside this file.

    WINDOWPANE_SESSIONS_DIR=… python benchmarks/bench_policies_corpus.py [--workers 2] [--sessions N]

The sessions are those of the folder `corpus` beside the one that WINDOWPANE_SESSIONS_DIR names; each is replayed
in windows from 32k to 200k that it fills by itself. The default is held against both baselines at its own tokens,
and against every preset and baseline as it is; a table per window lists the setups on the Pareto front.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
from bench_policies import KEEP_GROUPS, Task, fills, match_keeping, match_truncation, spread
from policies.pooled import pooled_with_baselines
from policies.report import (
    BASELINES,
    COMPARED,
    DEFAULT,
    Studied,
    matched_with,
    percent,
    ratio,
    rows,
    run_of,
    table,
    values_of,
)

from windowpane.evaluation.replay import PreparedRecording, ReplaySetup, find_recordings, simulate
from windowpane.evaluation.replay.setups import format_window, preset_names

TARGET = Path(__file__).with_name("POLICIES_CORPUS.md")
LIMITS = (32_768, 65_536, 100_000, 200_000)

PREFACE = """# Policies over long sessions

Written by `WINDOWPANE_SESSIONS_DIR=… python benchmarks/bench_policies_corpus.py`; the same sessions give the
same text.

Long sessions of real coding agents, each managed again by itself in every window that it fills: none is joined
with another. Baselines, measures and their readings are those of [POLICIES.md](POLICIES.md). The primary measure
was fixed before the first run, and is the one by which the default was chosen there: **regretted of all
content**, the difference between the default and each baseline at the same tokens, over all windows. Nothing was
tuned on these sessions. Some of the agents had compacted by themselves; what they fetched again after that counts
as a regret of every setup that had removed it as well.

A setup is on the *Pareto front* of a window if no other is at least as good by overflows, regret, cost and probe
fidelity, and better by one of them. Regret and fidelity are means over the sessions, cost is the mean of the
session's cost as a share of the default's.
"""


class Point(NamedTuple):
    """A setup in a window, by the measures of the front; lower is better, except for fidelity."""

    name: str
    overflows: int
    regret: float
    cost: float
    fidelity: float

    def dominates(self, other: Point) -> bool:
        """Return whether this setup is at least as good by every measure, and better by one."""
        own = (self.overflows, self.regret, self.cost, -self.fidelity)
        their = (other.overflows, other.regret, other.cost, -other.fidelity)
        return own != their and all(one <= two for one, two in zip(own, their, strict=True))


def study(task: Task) -> Studied | None:
    """Replay one session in one window; None if it does not fill it."""
    prepared = PreparedRecording(task.source.load())
    default = ReplaySetup(task.limit_tokens, policy=DEFAULT)
    if not fills(prepared, default):
        return None
    setups = [default, *(ReplaySetup(task.limit_tokens, preset=name) for name in preset_names())]
    setups.append(ReplaySetup(task.limit_tokens, "truncate"))
    setups += [ReplaySetup(task.limit_tokens, "keep_last", keep_groups=groups) for groups in KEEP_GROUPS]
    runs = tuple(simulate(prepared, setup) for setup in setups)
    target = next(run for run in runs if run.setup == default).measures.tokens_sent
    matched = tuple(match(prepared, task.limit_tokens, target) for match in (match_truncation, match_keeping))
    return Studied(task.source.name, task.limit_tokens, runs, matched)


def points(studied: Sequence[Studied]) -> list[Point]:
    """Return every setup of a window by the measures of the front."""
    found = []
    for name in (run.setup.name for run in studied[0].runs):
        runs = [run_of(one, name).measures for one in studied]
        costs = [
            run.cost_tokens / run_of(one, DEFAULT).measures.cost_tokens
            for run, one in zip(runs, studied, strict=True)
        ]
        regrets = [run.regret_ratio for run in runs if run.regret_ratio is not None]
        kept = [run.fidelity for run in runs if run.fidelity is not None]
        overflows = sum(run.overflows for run in runs)
        found.append(
            Point(
                name,
                overflows,
                float(np.mean(regrets)),
                float(np.mean(costs)),
                float(np.mean(kept)) if kept else 1.0,
            )
        )
    return found


def front(studied: Sequence[Studied]) -> list[str]:
    """Return the table of a window's setups, the front marked, and the sentence about the default."""
    every = points(studied)
    lines = [
        "| under | overflows | regretted of all content | relative cost | probe fidelity | on the front |",
        "|---|--:|--:|--:|--:|---|",
    ]
    for one in sorted(every, key=lambda point: (point.overflows, point.regret)):
        better = [other.name for other in every if other.dominates(one)]
        name = f"**{one.name}** (default)" if one.name == DEFAULT else one.name
        verdict = "yes" if not better else f"no: {', '.join(better[:3])}"
        figures = f"{one.overflows:,} | {percent(one.regret)} | {one.cost:.2f} | {ratio(one.fidelity)}"
        lines.append(f"| {name} | {figures} | {verdict} |")
    return lines


def chapter(studied: Sequence[Studied], limit_tokens: int) -> list[str]:
    """Return the section of one window."""
    heading = [f"## {format_window(limit_tokens)} window", ""]
    if not studied:
        return [*heading, "No session fills this window.", ""]
    defaults = {one.name: values_of(run_of(one, DEFAULT)) for one in studied}
    lines = [
        "| default against | by | sessions | mean difference | 90% interval | default is |",
        "|---|---|--:|--:|--:|---|",
    ]
    for kind, title in BASELINES:
        found = {one.name: m.figures for one in studied if (m := matched_with(one, kind)).figures is not None}
        lines += rows(f"{title}, tokens matched", defaults, found, COMPARED)
    for run in studied[0].runs:
        name = run.setup.name
        if name != DEFAULT:
            own = {one.name: values_of(run_of(one, name)) for one in studied}
            lines += rows(f"{name}, as it is", defaults, own, COMPARED[:1])
    return [
        *heading, f"Sessions that fill it: {len(studied)}.", "", *front(studied), "",
        *lines, "", *table(studied), "",
    ]  # fmt: skip


def report(studied: Sequence[Studied]) -> str:
    """Return the whole document."""
    lines = [PREFACE, "## The default, all windows", "", *pooled_with_baselines(studied), ""]
    for limit in LIMITS:
        lines += chapter([one for one in studied if one.limit_tokens == limit], limit)
    return "\n".join(lines).rstrip() + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--sessions", type=int, help="only so many, for a trial; writes nothing")
    options = parser.parse_args()
    folder = os.environ.get("WINDOWPANE_SESSIONS_DIR")
    corpus = Path(folder).with_name("corpus") if folder else None
    if corpus is None or not corpus.is_dir():
        print("there is no folder `corpus` beside WINDOWPANE_SESSIONS_DIR: nothing done")
        return
    sources = spread(list(find_recordings([corpus])), options.sessions)
    tasks = [Task(source, limit) for source in sources for limit in LIMITS]
    studied = []
    with ProcessPoolExecutor(options.workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        for number, one in enumerate(pool.map(study, tasks), 1):
            print(f"\r{number} of {len(tasks)}", end="", file=sys.stderr, flush=True)
            if one is not None:
                studied.append(one)
    print(file=sys.stderr)
    text = report(studied)
    if options.sessions is None:
        TARGET.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
