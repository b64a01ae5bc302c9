"""The advice on the level of compaction as text."""

from __future__ import annotations

from windowpane.evaluation.replay.compaction_threshold import (
    MINIMUM_RULE_COMPACTIONS,
    LevelResult,
    ThresholdAdvice,
)
from windowpane.report.context_health import MINIMUM_SESSIONS
from windowpane.sources.installed_agents.settings import SettingLines, lines_for_level
from windowpane.text.formats import UNKNOWN, count, dollars, percent, tokens_short

LEVEL_COLUMNS = (
    "compact at",
    "cost",
    "saves (99% range)",
    "rules visible",
    "compactions",
    "compactions a week",
)
"""Titles of `level_cells`."""


def advice_sentences(advice: ThresholdAdvice) -> str:
    """Return what to set, what it saves and what it costs, and the accuracy of the replay."""
    return f"{advice_answer(advice)} {advice_basis(advice)}"


def advice_basis(advice: ThresholdAdvice) -> str:
    """Return what the advice rests on, and the accuracy of the replay."""
    return (
        f"Every level is a replay of {count(advice.sessions, 'session')}, that of now too: "
        f"{dollars(advice.present.dollars)}, where the recordings cost {dollars(advice.recorded_dollars)}. "
        f"They have {count(advice.compactions.count, 'compaction')}{_rules(advice)}. What is read again after "
        "a compaction is priced as recorded; lost work is not priced."
    )


def _rules(advice: ThresholdAdvice) -> str:
    """Return what is known of the rules, and on how many compactions that rests."""
    recorded, interval = advice.compactions, advice.compactions.survival_interval
    if interval is None:
        return "; what they did to the rules is unknown"
    share, low, high = (percent(one) for one in (recorded.visible[0] / recorded.followed[0], *interval))
    rules = f"{count(recorded.with_rules, 'compaction')} with {count(recorded.followed[0], 'rule')}"
    return f"; one left {share} ({low} to {high}) of the rules visible (n = {rules})"


def advice_answer(advice: ThresholdAdvice) -> str:
    """Return what to set, what it saves and what it costs."""
    if advice.sessions < MINIMUM_SESSIONS:
        return f"Too few sessions to advise: {advice.sessions}; {MINIMUM_SESSIONS} are needed."
    best, lowest = advice.best, advice.lowest_cost
    if best is not None:
        unknown = "" if setting_lines(advice) else f" No setting of {advice.agent} is known that sets this level."
        return f"Compact at {tokens_short(best.level_tokens)}: {_effect(advice, best)}.{unknown}"
    if lowest is None:
        return "Compact as now: no lower size is certain to cost less (see the ranges)."
    if advice.present.survival is None:
        return (
            "No advice yet. Lower sizes cost less; whether they lose more rules is known only after "
            f"{MINIMUM_RULE_COMPACTIONS} compactions with rules ({advice.compactions.with_rules} so far)."
        )
    return "Compact as now: no lower size that costs less is known to keep as many rules."


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
    """Return the level, its cost, what it saves, rule survival, compactions, and these a week."""
    present = " to ".join(dict.fromkeys(map(tokens_short, advice.levels)))
    name = f"now ({present})" if one.level_tokens is None else tokens_short(one.level_tokens)
    weekly = advice.per_week(one.compactions)
    saved = f"{dollars(one.saved_dollars)} ({dollars(one.saved_low)} to {dollars(one.saved_high)})"
    return (
        name,
        dollars(one.dollars),
        UNKNOWN if one.level_tokens is None else saved,
        _share(one.survival),
        f"{one.compactions:,}",
        UNKNOWN if weekly is None else f"{weekly:.1f}",
    )


def setting_lines(advice: ThresholdAdvice) -> SettingLines | None:
    """Return the lines for the settings of the agent; None without a level to propose or a known setting."""
    best = advice.best
    if best is None or best.level_tokens is None:
        return None
    return lines_for_level(advice.agent, best.level_tokens, limit_tokens=advice.limit_tokens)
