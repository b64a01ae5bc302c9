"""Numbers of an alert as words: the same in the stored summary, in messages and on the terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from windowpane.alerts.rules import Rule, Unit
from windowpane.core.events import PressureMeasured
from windowpane.core.vocabulary import ZONES


def tokens(count: float | None) -> str:
    """Tokens as 8,123, 118k or 1.05M; a dash when unknown."""
    if count is None:
        return "–"
    if count < 10_000:
        return f"{count:,.0f}"
    return f"{count / 1000:,.0f}k" if count < 1_000_000 else f"{count / 1e6:,.2f}M"


def quantity(value: float | None, unit: Unit) -> str:
    """A value in the words of its unit; a dash when unknown."""
    if value is None:
        return "–"
    return _WORDS[unit](value)


def summary(rule: Rule, value: float | None, threshold: float | None, pressure: PressureMeasured | None) -> str:
    """One line about a firing, numbers only; never content."""
    text = rule.what.format(
        value=quantity(value, rule.unit),
        threshold=quantity(threshold, rule.unit),
        turns=rule.sustained_turns,
        used=tokens(None if pressure is None else pressure.used_tokens),
        limit=tokens(None if pressure is None else pressure.limit_tokens),
    )
    return text[:1].upper() + text[1:]


def _zone(index: float) -> str:
    return ZONES[min(max(int(index), 0), len(ZONES) - 1)]


def _turns(value: float) -> str:
    if value <= 0:
        return "now"
    if value < 1:
        return "within a turn"
    rounded = round(value)
    return f"in {rounded} turn" + ("" if rounded == 1 else "s")


_WORDS: Final[dict[Unit, Callable[[float], str]]] = {
    "ratio": "{:.0%}".format,
    "tokens": tokens,
    "turns": _turns,
    "zone": _zone,
    "count": "{:.0f}".format,
    "blocks_per_turn": "{:.1f}".format,
    "times": "{:.1f}".format,
}
