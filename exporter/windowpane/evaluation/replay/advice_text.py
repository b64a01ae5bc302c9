"""The advice on the level of compaction as text."""

from __future__ import annotations

from windowpane.evaluation.replay.compaction_threshold import LevelResult, ThresholdAdvice
from windowpane.report.context_health import MINIMUM_SESSIONS
from windowpane.sources.installed_agents.settings import SettingLines, lines_for_level
from windowpane.text.formats import UNKNOWN, count, dollars, tokens_short

LEVEL_COLUMNS = ("compact at", "dollars", "rules visible", "a month", "compactions", "a week")
"""Titles of `level_cells`."""


def advice_sentences(advice: ThresholdAdvice) -> str:
    """Return what to set, what it saves and what it costs, and the accuracy of the replay."""
    present = dollars(advice.present.dollars)
    basis = (
        f"At the present level the replay of {count(advice.sessions, 'session')} costs {present}, "
        f"the recordings {dollars(advice.recorded_dollars)}. It is based on "
        f"{count(advice.compactions.count, 'recorded compaction')}{_rules(advice)}."
    )
    return f"{_proposal(advice)} {basis}"


def _rules(advice: ThresholdAdvice) -> str:
    """Return the number of rules that the survival was measured on."""
    followed = advice.compactions.followed
    return f" and {count(followed[0], 'rule')}" if followed else ""


def _proposal(advice: ThresholdAdvice) -> str:
    if advice.sessions < MINIMUM_SESSIONS:
        return f"Too few sessions to advise: {advice.sessions}; {MINIMUM_SESSIONS} are needed."
    best, lowest = advice.best, advice.lowest_cost
    if best is not None:
        unknown = "" if setting_lines(advice) else f" No setting of {advice.agent} is known that sets this level."
        return f"Compact at {tokens_short(best.level_tokens)}: {_effect(advice, best)}.{unknown}"
    if lowest is None:
        return "Keep the level: no lower one saves money for certain."
    if advice.present.survival is None:
        return (
            f"No advice: rule survival is unknown. Lowest cost at {tokens_short(lowest.level_tokens)}: "
            f"{_effect(advice, lowest)}."
        )
    return (
        f"Keep the level: every lower one that saves money loses rules. Lowest cost at "
        f"{tokens_short(lowest.level_tokens)}: {_effect(advice, lowest)}."
    )


def _effect(advice: ThresholdAdvice, one: LevelResult) -> str:
    monthly = advice.per_month(1.0)
    scale, span = (1.0, "in this time") if monthly is None else (monthly, "a month")
    low, high = dollars(one.saved_low * scale), dollars(one.saved_high * scale)
    more = one.compactions - advice.present.compactions
    weekly = advice.per_week(more)
    often = count(more, "more compaction") if weekly is None else f"{weekly:.1f} more compactions a week"
    rules = "" if one.survival is None else (
        f", rule survival {_share(one.survival)} instead of {_share(advice.present.survival)}"
    )  # fmt: skip
    return f"{dollars(one.saved_dollars * scale)} less {span} ({low} to {high}), {often}{rules}"


def _share(survival: float | None) -> str:
    """Return a rule survival with the decimal that two levels may differ in."""
    return UNKNOWN if survival is None else f"{survival:.1%}"


def level_cells(advice: ThresholdAdvice, one: LevelResult) -> tuple[str, ...]:
    """Return the level, dollars, rule survival, dollars a month, compactions and compactions a week."""
    present = " to ".join(dict.fromkeys(map(tokens_short, advice.levels)))
    name = f"now ({present})" if one.level_tokens is None else tokens_short(one.level_tokens)
    monthly, weekly = advice.per_month(one.dollars), advice.per_week(one.compactions)
    return (
        name,
        dollars(one.dollars),
        _share(one.survival),
        UNKNOWN if monthly is None else dollars(monthly),
        f"{one.compactions:,}",
        UNKNOWN if weekly is None else f"{weekly:.1f}",
    )


def setting_lines(advice: ThresholdAdvice) -> SettingLines | None:
    """Return the lines for the settings of the agent; None without a level to propose or a known setting."""
    best = advice.best
    if best is None or best.level_tokens is None:
        return None
    return lines_for_level(advice.agent, best.level_tokens, limit_tokens=advice.limit_tokens)
