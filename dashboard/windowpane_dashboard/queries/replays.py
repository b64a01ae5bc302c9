"""Stored replays as tables: one row per setup over all sessions, the best of each column, the best setup."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd

from windowpane.store.records import SessionRow
from windowpane.store.replays import ReplayRow, ReplayRunRow
from windowpane.text.formats import count, dollars, percent, ratio, tokens_short

AS_RECORDED: Final = "as recorded"
FIDELITY_DECIMALS: Final = 2
"""Fidelities that look the same are equally good."""


@dataclass(frozen=True, slots=True)
class SetupResult:
    """One setup over all its sessions."""

    setup: str
    kind: str
    limit_tokens: int
    config: str
    runs: tuple[ReplayRunRow, ...]

    def total(self, name: str) -> float:
        """Return the sum over the sessions."""
        return float(sum(run.measures.get(name) or 0 for run in self.runs))

    def mean(self, name: str) -> float | None:
        """Return the mean over the sessions that have it."""
        reported = [float(value) for run in self.runs if (value := run.measures.get(name)) is not None]
        return sum(reported) / len(reported) if reported else None

    @property
    def dollars(self) -> float | None:
        """Price of the sent tokens; None unless every session's model has a price."""
        reported = [run.measures.get("cost_dollars") for run in self.runs]
        return None if None in reported else float(sum(value for value in reported if value is not None))


def results_by_setup(runs: Sequence[ReplayRunRow]) -> tuple[SetupResult, ...]:
    """Return one result per setup, in the requested order."""
    by_setup: dict[str, list[ReplayRunRow]] = {}
    for run in runs:
        by_setup.setdefault(run.setup, []).append(run)
    return tuple(
        SetupResult(setup, own[0].kind, own[0].limit_tokens, own[0].config, tuple(own))
        for setup, own in by_setup.items()
    )


def results_frame(results: Sequence[SetupResult], recorded: Sequence[SessionRow] = ()) -> pd.DataFrame:
    """Return the *recorded* sessions as they were, then one row per setup: sums, means of ratios."""
    first = [_as_recorded(recorded)] if recorded else []
    return pd.DataFrame([*first, *(_record(result) for result in results)])


def _as_recorded(rows: Sequence[SessionRow]) -> dict[str, Any]:
    sent = sum(row.input_tokens for row in rows)
    costs = [row.cost_dollars for row in rows]
    scores = [row.fidelity for row in rows if row.fidelity is not None]
    return {
        "under": AS_RECORDED,
        "sessions": len(rows),
        "overflows": sum(row.overflows for row in rows),
        "tokens sent": float(sent) if sent else None,
        "cost tokens": None,
        "dollars": None if None in costs else sum(cost for cost in costs if cost is not None),
        "cached": sum(row.cache_read_tokens for row in rows) / sent if sent else None,
        "removed blocks": sum(row.evicted_blocks for row in rows),
        "compactions": sum(row.compressions for row in rows),
        "names kept": sum(scores) / len(scores) if scores else None,
        "needed again": sum(row.regrets for row in rows),
        "share of all": None,
        "peak": max((row.peak_utilization for row in rows if row.peak_utilization is not None), default=None),
    }


def _record(result: SetupResult) -> dict[str, Any]:
    sent = result.total("tokens_sent")
    fidelity, regret = result.mean("fidelity"), result.mean("regret_ratio")
    return {
        "under": result.setup,
        "sessions": len(result.runs),
        "overflows": int(result.total("overflows")),
        "tokens sent": sent,
        "cost tokens": result.total("cost_tokens"),
        "dollars": result.dollars,
        "cached": result.total("cached_tokens") / sent if sent else None,
        "removed blocks": int(result.total("evicted_blocks")),
        "compactions": int(result.total("compressions")),
        "names kept": fidelity,
        "needed again": int(result.total("regrets")),
        "share of all": regret,
        "peak": max((run.measures.get("peak_utilization") or 0.0 for run in result.runs), default=0.0),
    }


def best_setup(results: Sequence[SetupResult]) -> SetupResult | None:
    """Return the managed setup with the fewest overflows; among those the best fidelity, then the least cost.

    So a setup that keeps less is never best because it costs less. Only setups that ran on every session are
    compared; None where all come out alike.
    """
    most = max((len(result.runs) for result in results), default=0)
    whole = [result for result in results if len(result.runs) == most]
    managed = [result for result in whole if result.kind == "managed"] or whole
    ranks = {_rank(result) for result in managed}
    return None if len(managed) > 1 and len(ranks) == 1 else min(managed, key=_rank, default=None)


def _rank(result: SetupResult) -> tuple[float, float, float]:
    fidelity = round(result.mean("fidelity") or 0.0, FIDELITY_DECIMALS)
    return result.total("overflows"), -fidelity, result.total("cost_tokens")


def replay_headline(results: Sequence[SetupResult]) -> str:
    """Return a sentence about the best setup and its values."""
    best = best_setup(results)
    if best is None:
        return _without_best(results)
    overflows = int(best.total("overflows"))
    full = "no call overflows" if not overflows else f"{count(overflows, 'call')} overflow, the fewest"
    fidelity = best.mean("fidelity")
    score = "" if fidelity is None else f", {ratio(fidelity)} of the names kept"
    money = "" if best.dollars is None else f" ({dollars(best.dollars)})"
    return (
        f"{best.setup} comes out best: {full}, {tokens_short(best.total('cost_tokens'))} cost tokens{money}"
        f"{score}, {count(int(best.total('regrets')), 'block')} needed again."
    )


def _without_best(results: Sequence[SetupResult]) -> str:
    if not results:
        return "Nothing could be replayed."
    if any(result.total("evicted_blocks") or result.total("compressions") for result in results):
        return "All setups come out alike: none is best."
    return "All setups come out alike: none had to remove anything. A smaller window shows how they differ."


def replay_label(row: ReplayRow, when: str) -> str:
    """Return the label of a stored replay."""
    return f"{row.name}  ·  {count(row.sessions, 'session')}, {count(row.runs, 'run')}  ·  {when}"


def sessions_of(results: Sequence[SetupResult]) -> list[str]:
    """Return every session that was replayed."""
    return list(dict.fromkeys(run.session for result in results for run in result.runs))


def timelines_of(results: Sequence[SetupResult], session: str) -> list[ReplayRunRow]:
    """Return the runs of one session, in the order of the setups."""
    return [run for result in results for run in result.runs if run.session == session]


def timelines_frame(runs: Sequence[ReplayRunRow]) -> pd.DataFrame:
    """Return the stored tokens of each call under each setup, one row per stored call."""
    rows = max((len(run.timeline) for run in runs), default=0)
    last = max((int(run.measures.get("turns") or len(run.timeline)) for run in runs), default=0)
    calls = np.linspace(1, max(last, 1), rows).round().astype("int64")
    columns = {
        run.setup: pd.array([*run.timeline, *[None] * (rows - len(run.timeline))], dtype="Int64") for run in runs
    }
    return pd.DataFrame({"call": calls, **columns})


def run_summary(run: ReplayRunRow) -> str:
    """Return a description of one run."""
    peak = run.measures.get("peak_utilization")
    share = "" if peak is None else f", at most {percent(float(peak))} of the window"
    return f"{run.setup}: {count(int(run.measures.get('turns') or 0), 'call')}{share}"
