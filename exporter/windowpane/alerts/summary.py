"""Values, conditions and firings as text: the same in stored summaries, messages, pages and the runbook."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from windowpane.alerts.rules import Comparison, Rule, Unit
from windowpane.core.events import PressureMeasured
from windowpane.core.vocabulary import ZONES
from windowpane.text.forecasts import EVIDENCE_LABELS
from windowpane.text.formats import UNKNOWN, percent, rate, tokens, tokens_rounded, turns_band

COMPARISONS: Final[dict[Comparison, str]] = {
    "at_least": "at or above",
    "above": "above",
    "at_most": "at or below",
    "below": "below",
    "ahead": "ahead and at or below",
}


def value_text(value: float | None, unit: Unit) -> str:
    """Return a value of a signal as text: `87%`, `118k`, `in 3 turns`, `orange`."""
    return UNKNOWN if value is None else _FORMATS[unit](value)


def firing_summary(
    rule: Rule,
    value: float | None,
    threshold: float | None,
    pressure: PressureMeasured | None,
    entered: PressureMeasured | None = None,
) -> str:
    """Return one line about a firing; it holds numbers, never content.

    A window that *entered* its zone by an estimate before the call may be smaller by the count of the provider.
    """
    text = rule.summary.format(
        value=value_text(value, rule.unit) + _range(rule, value, pressure),
        threshold=value_text(threshold, rule.unit),
        turns=rule.sustained_turns,
        used=_used(pressure, entered if rule.unit == "zone" else None),
        limit=_limit(pressure),
        level=tokens_rounded(None if pressure is None else pressure.compaction_tokens),
        evidence=EVIDENCE_LABELS.get(pressure.compaction_evidence or "", UNKNOWN) if pressure else UNKNOWN,
    )
    return text[:1].upper() + text[1:]


def _range(rule: Rule, value: float | None, pressure: PressureMeasured | None) -> str:
    """Return the range in which the agent's compaction is in 8 of 10 cases; empty for now, and for all else."""
    if pressure is None or rule.signal != "turns_until_compaction" or not value or value < 1:
        return ""
    band = turns_band(pressure.turns_until_compaction_p10, pressure.turns_until_compaction_p90)
    return f" ({band})" if band else ""


def _used(pressure: PressureMeasured | None, entered: PressureMeasured | None) -> str:
    used = tokens_rounded(None if pressure is None else pressure.used_tokens)
    if pressure is None or entered is None or entered.used_tokens <= pressure.used_tokens:
        return used
    estimate = tokens_rounded(entered.used_tokens)
    return used if estimate == used else f"≈{estimate} before the call, {used}"


def _limit(pressure: PressureMeasured | None) -> str:
    if pressure is None:
        return UNKNOWN
    assumed = "an assumed " if pressure.limit_source == "assumed" else ""
    return assumed + tokens_rounded(pressure.limit_tokens)


def condition_text(rule: Rule) -> str:
    """Return the condition as one line: `utilization at or above 90% for 3 turns`."""
    if rule.threshold is None or rule.comparison == "occurs":
        return f"on {rule.signal}"
    threshold = f"{rule.threshold:g}" if rule.unit == "turns" else value_text(rule.threshold, rule.unit)
    text = f"{rule.signal.replace('_', ' ')} {COMPARISONS[rule.comparison]} {threshold}"
    if rule.sustained_turns > 1:
        text += f" for {rule.sustained_turns} turns"
    return text if rule.from_zone is None else f"{text}, from {rule.from_zone} up"


def _zone(index: float) -> str:
    return ZONES[min(max(int(index), 0), len(ZONES) - 1)]


def _turns(value: float) -> str:
    if value <= 0:
        return "now"
    if value < 1:
        return "within a turn"
    rounded = round(value)
    return f"in {rounded} turn" + ("" if rounded == 1 else "s")


_FORMATS: Final[dict[Unit, Callable[[float], str]]] = {
    "ratio": percent,
    "tokens": tokens_rounded,
    "turns": _turns,
    "zone": _zone,
    "count": tokens,
    "blocks_per_turn": rate,
    "times": rate,
}
