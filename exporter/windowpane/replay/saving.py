"""A replay's result as the store keeps it: figures, configuration and timelines, never content."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from hashlib import blake2b
from typing import Final

from windowpane.replay.matrix import ReplayMatrix
from windowpane.replay.simulate import ReplayRun
from windowpane.store.replays import ReplayRow, ReplayRunRow, StoredReplay

MAXIMUM_POINTS: Final = 2_000
"""Of a stored timeline; of a longer one each stretch keeps its peak."""


def to_stored_replay(matrix: ReplayMatrix, *, name: str, at: float) -> StoredReplay:
    """What to store; its id is the same whenever its results are."""
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
