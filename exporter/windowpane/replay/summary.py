"""All sessions of a replay under one setup, added up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from windowpane.replay.setups import ReplaySetup
from windowpane.replay.simulate import ReplayRun


@dataclass(frozen=True, slots=True)
class SetupSummary:
    """Sums over the sessions; ratios are means over those sessions that have them."""

    setup: ReplaySetup
    sessions: int
    turns: int
    overflows: int
    tokens_sent: int
    cost_tokens: float
    cost_dollars: float | None
    """None unless every session's model has a price."""
    evicted_blocks: int
    compressions: int
    fidelity: float | None
    regrets: int
    regret_ratio: float | None
    regretted_share: float | None
    peak_utilization: float
    """The highest of any session."""


class _Figures(NamedTuple):
    runs: Sequence[ReplayRun]

    def mean(self, name: str) -> float | None:
        known = [value for run in self.runs if (value := getattr(run.measures, name)) is not None]
        return sum(known) / len(known) if known else None

    def total(self, name: str) -> int:
        return int(sum(getattr(run.measures, name) for run in self.runs))


def summarize_runs(runs: Iterable[ReplayRun]) -> list[SetupSummary]:
    """One summary a setup, in the order the setups first came."""
    by_setup: dict[ReplaySetup, list[ReplayRun]] = {}
    for run in runs:
        by_setup.setdefault(run.setup, []).append(run)
    return [_summary(setup, _Figures(own)) for setup, own in by_setup.items()]


def _summary(setup: ReplaySetup, figures: _Figures) -> SetupSummary:
    dollars = [run.measures.cost_dollars for run in figures.runs]
    return SetupSummary(
        setup=setup,
        sessions=len(figures.runs),
        turns=figures.total("turns"),
        overflows=figures.total("overflows"),
        tokens_sent=figures.total("tokens_sent"),
        cost_tokens=sum(run.measures.cost_tokens for run in figures.runs),
        cost_dollars=None if None in dollars else sum(value for value in dollars if value is not None),
        evicted_blocks=figures.total("evicted_blocks"),
        compressions=figures.total("compressions"),
        fidelity=figures.mean("fidelity"),
        regrets=figures.total("regrets"),
        regret_ratio=figures.mean("regret_ratio"),
        regretted_share=figures.mean("regretted_share"),
        peak_utilization=max(run.measures.peak_utilization for run in figures.runs),
    )
