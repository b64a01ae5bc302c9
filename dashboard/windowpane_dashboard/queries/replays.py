"""Stored replays as tables: one row per setup over all sessions, the best of each column, the best setup."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd

from windowpane.store.replays import ReplayRow, ReplayRunRow
from windowpane.text.formats import count, dollars, percent, tokens_short
from windowpane.text.labels import POLICY_LABELS

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

    @property
    def title(self) -> str:
        """Its description in plain words."""
        return setup_title(self.runs[0])

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


def setup_title(run: ReplayRunRow) -> str:
    """Return what the setup of a run removes, and its window."""
    return (
        run.setup.replace(run.policy, POLICY_LABELS.get(run.policy, run.policy), 1) if run.policy else run.setup
    )


def results_frame(results: Sequence[SetupResult]) -> pd.DataFrame:
    """Return one row per setup: sums, means of ratios; without columns of zeros, or of one session each."""
    frame = pd.DataFrame([_record(result) for result in results])
    optional = {"sessions": 1, "overflows": 0, "compactions": 0}
    alike = [name for name, usual in optional.items() if name in frame and frame[name].eq(usual).all()]
    unknown = [name for name in ("cost", "still visible") if name in frame and frame[name].isna().all()]
    return frame.drop(columns=[*alike, *unknown])


def _record(result: SetupResult) -> dict[str, Any]:
    return {
        "what removes content": result.title,
        "cost": result.dollars,
        "still visible": result.mean("fidelity"),
        "needed again": int(result.total("regrets")),
        "compactions": int(result.total("compressions")),
        "overflows": int(result.total("overflows")),
        "sessions": len(result.runs),
    }


def best_setup(results: Sequence[SetupResult]) -> SetupResult | None:
    """Return the setup with the fewest overflows; among those the best fidelity, then the least cost.

    So a setup that keeps less is never best because it costs less. Only setups that ran on every session are
    compared; None where all come out alike.
    """
    most = max((len(result.runs) for result in results), default=0)
    whole = [result for result in results if len(result.runs) == most]
    managed = [result for result in whole if result.kind in ("managed", "compact")] or whole
    ranks = {_rank(result) for result in managed}
    return None if len(managed) > 1 and len(ranks) == 1 else min(managed, key=_rank, default=None)


def _rank(result: SetupResult) -> tuple[float, float, float]:
    fidelity = round(result.mean("fidelity") or 0.0, FIDELITY_DECIMALS)
    return result.total("overflows"), -fidelity, result.total("cost_tokens")


def replay_headline(results: Sequence[SetupResult]) -> str:
    """Return a sentence about the best setup, against compaction alone in the largest window."""
    best = best_setup(results)
    if best is None:
        return _without_best(results)
    whole = [one for one in results if one.kind == "compact" and len(one.runs) == len(best.runs)]
    base = max(whole, key=lambda one: one.limit_tokens, default=best)
    against = "" if base is best else f", instead of {_values(base)} with {base.title}"
    others = [one.dollars for one in results if one.kind == "managed"]
    if base.kind == "compact" and others and all(one and one > (base.dollars or math.inf) for one in others):
        against += f". Everything else replayed costs more than {base.title}"
    if best.mean("fidelity") is None:  # it is the one of the lowest cost
        return f"{best.title.capitalize()} costs least: {_values(best)}{against}. What it loses is unknown."
    return f"{best.title.capitalize()} comes out best: {_values(best)}{against}."


def _values(result: SetupResult) -> str:
    fidelity, overflows = result.mean("fidelity"), int(result.total("overflows"))
    sent = f"{tokens_short(result.total('tokens_sent'))} tokens"
    parts = [
        sent if result.dollars is None else dollars(result.dollars, estimated=True),
        "" if fidelity is None else f"{percent(fidelity)} of the names in removed content still in the window",
        count(overflows, "overflow") if overflows else "",
    ]
    return ", ".join(filter(None, parts))


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
        setup_title(run): pd.array([*run.timeline, *[None] * (rows - len(run.timeline))], dtype="Int64")
        for run in runs
    }
    return pd.DataFrame({"call": calls, **columns})


def run_summary(run: ReplayRunRow) -> str:
    """Return a description of one run."""
    peak = run.measures.get("peak_utilization")
    share = "" if peak is None else f", at most {percent(float(peak))} of the window"
    return f"{setup_title(run)}: {count(int(run.measures.get('turns') or 0), 'call')}{share}"
