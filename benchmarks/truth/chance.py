"""Differences that chance between sessions explains: resampled sessions, a simulated calibrated forecaster."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import NormalDist
from typing import Final, NamedTuple

import numpy as np
from forecast.measures import coverage, loss

from truth.judged import HORIZONS, LEVELS, Judged, at_level
from truth.passages import Level, Passage
from truth.statistics import interval
from windowpane.core.tracking.forecast import BAND

SIMULATIONS: Final = 1_000
SESSION_SHARE: Final = 0.1
"""Share of the variance of a surprise that all calls of a session have in common. Recorded forecasts of one
session without a common call correlate by 0.14; 0 or 0.2 instead moves the ends of the ranges by about 0.02."""
WAITS: Final = (
    (0.0, math.inf),
    *((low - 0.5, high + 0.5) for low, high in HORIZONS),
    (HORIZONS[-1][1] + 0.5, math.inf),
)
"""Ranges of the median: any, the horizons, and beyond them."""


def chance_lines(groups: Mapping[str, Sequence[Sequence[Judged]]]) -> Iterator[str]:
    """Yield both tables; *groups* are the judged forecasts of each session by the name of a group of sessions."""
    yield "### Chance between sessions"
    yield ""
    yield (
        "Coverage of the band less 80%, and loss less that of the bootstrap of own growth on the same forecasts "
        "(below 0 is better), each with its 90% interval over resampled sessions. An interval that contains 0 "
        "does not show a fault of the model beyond the choice of sessions. Last the outcomes before and after "
        "the band, and both differences without the session that has most of the forecasts."
    )
    yield ""
    yield (
        "| sessions | level | coverage less 80% | loss less bootstrap's | before | after "
        "| coverage without one | loss without one |"
    )
    yield "| --- | --- | --- | --- | ---: | ---: | ---: | ---: |"
    for name, judged in groups.items():
        for level in LEVELS:
            if kept := at_level(judged, level):
                yield f"| {name} | {level} | {_differences(kept)} |"
    yield ""
    yield from _calibrated(groups)


def _differences(judged: Sequence[Sequence[Judged]]) -> str:
    """Return the cells of one level: a block of rows per session has its outcome and two forecasts."""
    blocks = [
        [np.array([(one.passage.turns, *one.own, one.passage.turns, *one.bootstrap) for one in own])]
        for own in judged
    ]
    missing, worse = interval(blocks, _missing), interval(blocks, _worse)
    rows = np.concatenate([block[0] for block in blocks])
    others = [block[0] for block in sorted(blocks, key=lambda block: len(block[0]))[:-1]]
    rest = f"{_missing(others):.2f} | {_worse(others):.1f}" if others else "– | –"
    before, after = (rows[:, 0] < rows[:, 1]).mean(), (rows[:, 0] > rows[:, 3]).mean()
    return f"{missing.text()} | {worse.text(1)} | {before:.0%} | {after:.0%} | {rest}"


def _missing(blocks: Sequence[np.ndarray]) -> float:
    return coverage(np.concatenate(blocks)[:, :4]) - BAND


def _worse(blocks: Sequence[np.ndarray]) -> float:
    rows = np.concatenate(blocks)
    return loss(rows[:, :4]) - loss(rows[:, 4:])


# -- a calibrated forecaster ----------------------------------------------------------------------------------


class _Cell(NamedTuple):
    """Observed coverage of some forecasts, and the range of that of a calibrated forecaster."""

    observed: float
    least: float
    most: float

    @property
    def is_outside(self) -> bool:
        return not self.least <= self.observed <= self.most

    @property
    def text(self) -> str:
        mark = "**" if self.is_outside else ""
        return f"{mark}{self.observed:.2f}{mark} ({self.least:.2f} to {self.most:.2f})"


def _calibrated(groups: Mapping[str, Sequence[Sequence[Judged]]]) -> Iterator[str]:
    """Yield the table of observed coverage with the ranges."""
    table = {name: _cells([[one.passage for one in own] for own in judged]) for name, judged in groups.items()}
    cells = [cell for rows in table.values() for row in rows for cell in row if cell is not None]
    yield "### Coverage that a calibrated forecaster would show"
    yield ""
    yield (
        "Forecasts of a session are not independent: their waits have calls in common. Here every call has a "
        f"normal surprise, {SESSION_SHARE:.0%} of whose variance is common to its session; the outcome of a "
        "forecast is the sum over the calls of its wait, and the band holds the middle 80% of such sums, or the "
        "first 80% where it starts at the next call. The forecasts, their waits and their sessions are the "
        f"recorded ones. Observed coverage, with the 90% range of {SIMULATIONS:,} simulations, by the median of "
        f"the forecast. Bold is outside: {sum(cell.is_outside for cell in cells)} of {len(cells)} cells, of "
        "which a calibrated forecaster has a tenth. Half of the sessions show the coverage of one level to about "
        "ten points only, nine sessions to about fifteen."
    )
    yield ""
    distances = [f"{low}–{high}" for low, high in HORIZONS]
    yield f"| sessions | level | any wait | {' | '.join(distances)} | over {HORIZONS[-1][1]} |"
    yield f"| --- | --- | {' | '.join('---' for _ in WAITS)} |"
    for name, rows in table.items():
        for level, row in zip((*LEVELS, "all"), rows, strict=True):
            yield f"| {name} | {level} | {' | '.join('–' if cell is None else cell.text for cell in row)} |"
    yield ""


def _cells(by_session: Sequence[Sequence[Passage]]) -> list[list[_Cell | None]]:
    """Return the cells of each level, then of all, by wait."""
    passages = [one for own in by_session for one in own]
    observed = np.array([one.held for one in passages])
    simulated = _simulated(by_session)

    def cell(level: Level | None, wait: tuple[float, float]) -> _Cell | None:
        kept = np.array([level in (None, one.level) and wait[0] <= one.median < wait[1] for one in passages])
        if not kept.any():
            return None
        least, most = np.quantile(simulated[:, kept].mean(axis=1), [0.05, 0.95])
        return _Cell(float(observed[kept].mean()), float(least), float(most))

    return [[cell(level, wait) for wait in WAITS] for level in (*LEVELS, None)]


def _simulated(by_session: Sequence[Sequence[Passage]]) -> np.ndarray:
    """Return for each simulation and each forecast whether the band held the outcome."""
    random = np.random.default_rng(12)
    held: list[np.ndarray] = []
    for own in filter(None, by_session):
        first = np.array([one.call for one in own])
        last = first + np.array([one.turns + _unmade(one) for one in own])
        sums = random.standard_normal((SIMULATIONS, last.max() + 1)).cumsum(axis=1)
        waits = (sums[:, last] - sums[:, first]) / np.sqrt(last - first)
        common = random.standard_normal((SIMULATIONS, 1))
        surprise = np.sqrt(SESSION_SHARE) * common + np.sqrt(1 - SESSION_SHARE) * waits
        is_first = np.array([one.early + _unmade(one) <= 1 for one in own])
        low = np.where(is_first, -np.inf, _quantile((1 - BAND) / 2))
        high = np.where(is_first, _quantile(BAND), _quantile((1 + BAND) / 2))
        held.append((low < surprise) & (surprise <= high))
    return np.concatenate(held, axis=1)


def _unmade(passage: Passage) -> int:
    """Return the calls that are not made: a compaction comes before the call that would pass its level."""
    return 1 if passage.level == "own" else 0


_quantile = NormalDist().inv_cdf
