"""Results of a replay: added up per setup, and as the store holds them, without content."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import Final, NamedTuple

from windowpane.evaluation.replay.matrix import ReplayMatrix
from windowpane.evaluation.replay.setups import ReplaySetup
from windowpane.evaluation.replay.simulate import ReplayRun
from windowpane.store.replays import ReplayRow, ReplayRunRow, StoredReplay

MAXIMUM_POINTS: Final = 2_000
"""Points of a stored timeline; a longer one is stored as the peaks of equal ranges."""


def to_stored_replay(matrix: ReplayMatrix, *, name: str, at: float) -> StoredReplay:
    """Return the rows to store; the id is derived from the results."""
    runs = tuple(_row(run) for run in matrix.runs)
    body = json.dumps([name, [[run.session, run.setup, dict(run.measures)] for run in runs]], sort_keys=True)
    notes = [f"{failure.session}: {failure.reason}" for failure in matrix.failures if not failure.setup]
    notes += [
        f"{failure.session}, {failure.setup}: {failure.reason}" for failure in matrix.failures if failure.setup
    ]
    row = ReplayRow(
        id=blake2b(body.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest(),
        name=name,
        at=at,
        sessions=len({run.session for run in runs}),
        runs=len(runs),
        notes=tuple(notes),
    )
    return StoredReplay(row, runs)


def _row(run: ReplayRun) -> ReplayRunRow:
    setup = run.setup
    managed = setup.kind == "managed"
    return ReplayRunRow(
        session=run.session,
        setup=setup.label,
        kind=setup.kind,
        policy=setup.policy if managed and not setup.preset else "",
        preset=setup.preset if managed else "",
        limit_tokens=setup.limit_tokens,
        measures=asdict(run.measures),
        config=setup.as_yaml(),
        timeline=_points(run.timeline),
        note=run.note,
    )


def _points(timeline: Sequence[int]) -> tuple[int, ...]:
    step = -(-len(timeline) // MAXIMUM_POINTS) or 1
    if step == 1:
        return tuple(timeline)
    return tuple(max(timeline[at : at + step]) for at in range(0, len(timeline), step))


# -- summaries ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SetupSummary:
    """All sessions of a replay under one setup: sums, and means of ratios over the sessions that have them."""

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


class _SetupRuns(NamedTuple):
    runs: Sequence[ReplayRun]

    def mean(self, name: str) -> float | None:
        values = [value for run in self.runs if (value := getattr(run.measures, name)) is not None]
        return math.fsum(values) / len(values) if values else None

    def total(self, name: str) -> int:
        return int(sum(getattr(run.measures, name) for run in self.runs))


def summarize_runs(runs: Iterable[ReplayRun]) -> list[SetupSummary]:
    """Return one summary per setup, in the order of their first runs."""
    by_setup: dict[ReplaySetup, list[ReplayRun]] = {}
    for run in runs:
        by_setup.setdefault(run.setup, []).append(run)
    return [_summary(setup, _SetupRuns(own)) for setup, own in by_setup.items()]


def _summary(setup: ReplaySetup, group: _SetupRuns) -> SetupSummary:
    dollars = [run.measures.cost_dollars for run in group.runs]
    return SetupSummary(
        setup=setup,
        sessions=len(group.runs),
        turns=group.total("turns"),
        overflows=group.total("overflows"),
        tokens_sent=group.total("tokens_sent"),
        cost_tokens=sum(run.measures.cost_tokens for run in group.runs),
        cost_dollars=None if None in dollars else math.fsum(value for value in dollars if value is not None),
        evicted_blocks=group.total("evicted_blocks"),
        compressions=group.total("compressions"),
        fidelity=group.mean("fidelity"),
        regrets=group.total("regrets"),
        regret_ratio=group.mean("regret_ratio"),
        regretted_share=group.mean("regretted_share"),
        peak_utilization=max(run.measures.peak_utilization for run in group.runs),
    )
