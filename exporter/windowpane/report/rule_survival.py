"""Rules after each compaction of a session, and how many are visible after 1, 2, 3 … compactions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from textwrap import shorten
from typing import Final

from windowpane.core.events import NO_RULES, RulesFollowed
from windowpane.core.vocabulary import RULE_FATES, RuleFate, RuleSource
from windowpane.text.formats import count, percent
from windowpane.text.labels import RULE_FATE_LABELS, RULE_SOURCE_LABELS

SHOWN: Final[tuple[RuleFate, ...]] = ("contradicted", "lost")
"""Fates whose rules are listed, the worst first."""
MAXIMUM_SHOWN: Final = 20
SHOWN_CHARACTERS: Final = 160


@dataclass(frozen=True, slots=True)
class ReportedRule:
    """A rule that a compaction lost or reversed."""

    fate: RuleFate
    source: RuleSource
    text: str | None
    """None where texts are not stored."""

    @property
    def label(self) -> str:
        """The rule with its fate and source: `lost, user: never push`."""
        label = f"{RULE_FATE_LABELS[self.fate]}, {RULE_SOURCE_LABELS[self.source]}"
        return label if self.text is None else f"{label}: {shorten(self.text, SHOWN_CHARACTERS, placeholder='…')}"


@dataclass(frozen=True, slots=True)
class ReportedRules:
    """The rules of one compaction."""

    turn: int
    compaction: int
    counts: dict[RuleFate, int]
    """Rules by what became of them; empty if that is unknown."""
    survival: float | None
    lost: tuple[ReportedRule, ...]
    followed_by_compactions: tuple[int, ...]
    visible_by_compactions: tuple[int, ...]
    unrecorded: tuple[RuleSource, ...]
    note: str
    """Reason why nothing is known."""

    @property
    def is_unknown(self) -> bool:
        """True if nothing could be followed; False also where no rule was found."""
        return self.survival is None and self.note != NO_RULES

    @property
    def summary(self) -> str:
        """The counts in words, or the reason why nothing is known."""
        if self.survival is None:
            return f"unknown: {self.note}" if self.is_unknown else self.note
        fates = ", ".join(
            f"{self.counts[fate]} {RULE_FATE_LABELS[fate]}" for fate in RULE_FATES if fate in self.counts
        )
        return f"{percent(self.survival)} of {count(sum(self.counts.values()), 'rule')} visible: {fates}"


def reported_rules(data: RulesFollowed, turn: int, text_of: Callable[[str], str | None]) -> ReportedRules:
    """Return the rules of one compaction; *text_of* returns a stored text by its digest."""
    counts = {fate: number for fate in RULE_FATES if (number := data.count(fate))}
    listed = [rule for rule in data.outcomes if rule.fate in SHOWN][:MAXIMUM_SHOWN]
    return ReportedRules(
        turn,
        data.compaction,
        counts,
        data.survival,
        tuple(ReportedRule(rule.fate, rule.source, text_of(rule.digest)) for rule in listed),
        data.followed_by_compactions,
        data.visible_by_compactions,
        data.unrecorded,
        data.reason,
    )


def survival_curve(rules: Iterable[ReportedRules]) -> list[tuple[int, int, int]]:
    """Return by the number of compactions how many rules have been through so many, and how many were visible."""
    followed: dict[int, int] = {}
    visible: dict[int, int] = {}
    for one in rules:
        numbers = zip(one.followed_by_compactions, one.visible_by_compactions, strict=True)
        for compactions, (total, seen) in enumerate(numbers, start=1):
            followed[compactions] = followed.get(compactions, 0) + total
            visible[compactions] = visible.get(compactions, 0) + seen
    return [(number, followed[number], visible[number]) for number in sorted(followed) if followed[number]]
