"""All windows together: one value per opponent, drawn by session with every window that the session fills."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from policies.report import (
    BASELINES,
    DEFAULT,
    OTHER_READINGS,
    RESAMPLES,
    Difference,
    Figures,
    Studied,
    best_preset,
    matched_with,
    number,
    run_of,
    values_of,
    verdict_text,
)

REGRET = "regret_ratio"


def pooled(studied: Sequence[Studied]) -> list[str]:
    """Compare with both baselines at the default's tokens, by every reading, and with the best preset."""
    best = best_preset(studied)
    text = _difference_text(studied, lambda one: values_of(run_of(one, best)), REGRET)
    return [*pooled_with_baselines(studied), f"- All windows, against the best {best}, as it is: {text}."]


def pooled_with_baselines(studied: Sequence[Studied]) -> list[str]:
    """Compare with both baselines at the default's tokens, by every reading."""
    lines = []
    for kind, title in BASELINES:
        against = matched(kind)
        lines.append(
            f"- All windows, against {title} at the same tokens: {_difference_text(studied, against, REGRET)}."
        )
        lines += [
            f"  - All windows, {one.label}: {_difference_text(studied, against, one.name)}."
            for one in OTHER_READINGS
        ]
        text = _difference_text(studied, sound(kind), REGRET)
        lines.append(f"  - All windows, only sessions in which it never overflows: {text}.")
    return lines


def matched(kind: str) -> Callable[[Studied], Figures | None]:
    """Return the values of a baseline at the tokens of the default."""
    return lambda one: matched_with(one, kind).figures


def sound(kind: str) -> Callable[[Studied], Figures | None]:
    """Return None for a baseline that overflowed, so content larger than the window has no influence."""
    return lambda one: None if matched_with(one, kind).overflows else matched_with(one, kind).figures


def _difference_text(
    studied: Sequence[Studied], against: Callable[[Studied], Figures | None], measure: str
) -> str:
    """Return the difference as text; empty for a window in which either side has no value."""
    by_session: dict[str, list[float]] = {}
    for one in studied:
        own, other = values_of(run_of(one, DEFAULT)), against(one) or {}
        if measure in own and measure in other:
            by_session.setdefault(one.name, []).append(own[measure] - other[measure])
    found = clustered(list(by_session.values()))
    if found is None:
        return "nothing to compare"
    mean, low, high = (number(100 * value) for value in found[1:])
    return f"{mean} pp ({low} to {high}, {found.sessions} sessions): {verdict_text(found, lower_is_better=True)}"


def clustered(deltas: Sequence[Sequence[float]]) -> Difference | None:
    """Return the mean over all windows, with the 90% interval of a bootstrap that draws whole sessions."""
    if not deltas:
        return None
    sums = np.array([sum(own) for own in deltas])
    counts = np.array([len(own) for own in deltas])
    drawn = np.random.default_rng(20).integers(len(deltas), size=(RESAMPLES, len(deltas)))
    low, high = np.quantile(sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1), [0.05, 0.95])
    return Difference(len(deltas), float(sums.sum() / counts.sum()), float(low), float(high))
