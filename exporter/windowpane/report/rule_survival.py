"""Rules after each compaction of a session, and how many are visible after 1, 2, 3 … compactions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain
from textwrap import shorten
from typing import Final, NamedTuple

from windowpane.core.events import NO_RULES, RulesFollowed
from windowpane.core.vocabulary import LOST_FATES, RULE_FATES, RuleFate, RuleSource, lost_count
from windowpane.store.filters import EventFilter, SessionFilter
from windowpane.store.reads.project_reader import EventReader
from windowpane.store.records import intact_events
from windowpane.text.formats import count, percent
from windowpane.text.labels import RULE_FATE_LABELS, RULE_SOURCE_LABELS

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
        """The rule with its fate and source, without its full stop: `lost, user: never push`."""
        label = f"{RULE_FATE_LABELS[self.fate]}, {RULE_SOURCE_LABELS[self.source]}"
        if self.text is None:
            return label
        return f"{label}: {shorten(self.text, SHOWN_CHARACTERS, placeholder='…').rstrip('.')}"


@dataclass(frozen=True, slots=True)
class ReportedRules:
    """The rules of one compaction."""

    turn: int
    compaction: int
    counts: dict[RuleFate, int]
    """Rules by what became of them; empty if that is unknown."""
    counts_by_source: dict[RuleSource, dict[RuleFate, int]]
    survival: float | None
    lost: tuple[ReportedRule, ...]
    followed_by_compactions: tuple[int, ...]
    visible_by_compactions: tuple[int, ...]
    unrecorded: tuple[RuleSource, ...]
    note: str
    """Reason why nothing is known."""

    @property
    def lost_count(self) -> int:
        """Rules of the user and of memory files that are lost or reversed."""
        return lost_count(self.counts_by_source)

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
        return f"of {count(sum(self.counts.values()), 'rule')}, {fates}"


def reported_rules(data: RulesFollowed, turn: int, text_of: Callable[[str], str | None]) -> ReportedRules:
    """Return the rules of one compaction; *text_of* returns a stored text by its digest."""
    counts = {fate: number for fate in RULE_FATES if (number := data.count(fate))}
    listed = [rule for rule in data.outcomes if rule.fate in LOST_FATES][:MAXIMUM_SHOWN]
    return ReportedRules(
        turn,
        data.compaction,
        counts,
        {source: fates for source, fates in data.by_source.items() if fates},
        data.survival,
        tuple(ReportedRule(rule.fate, rule.source, text_of(rule.digest)) for rule in listed),
        data.followed_by_compactions,
        data.visible_by_compactions,
        data.unrecorded,
        data.reason,
    )


class Survival(NamedTuple):
    """The rules that have been through so many compactions, and how many of them were visible after the last."""

    compactions: int
    rules: int
    visible: int


def survival_curve(rules: Iterable[ReportedRules | RulesFollowed]) -> list[Survival]:
    """Return by the number of compactions how many rules have been through so many, and how many were visible."""
    followed, visible = Counter[int](), Counter[int]()
    for one in rules:
        followed.update(dict(enumerate(one.followed_by_compactions, start=1)))
        visible.update(dict(enumerate(one.visible_by_compactions, start=1)))
    return [Survival(number, followed[number], visible[number]) for number in sorted(+followed)]


def survival_over(store: EventReader, query: SessionFilter) -> list[Survival]:
    """Return the survival of the rules of all sessions that *query* selects, at most its limit; [] without any.

    Sessions, compactions and repositories are not weighed: each rule counts once for each of its compactions.
    """
    compacted = (row.session_id for row in store.sessions(query) if row.compressions)
    events = (store.events_or_damage(EventFilter(session_id=one, types=("rules.followed",))) for one in compacted)
    stored = chain.from_iterable(map(intact_events, events))
    return survival_curve(one.event.data for one in stored if isinstance(one.event.data, RulesFollowed))


def survival_text(curve: Iterable[Survival]) -> str:
    """Return a curve in words: `995 of 1,019 rules visible after 1 compaction (98%)`."""
    return "\n".join(
        f"{one.visible:,} of {count(one.rules, 'rule')} visible after {count(one.compactions, 'compaction')} "
        f"({percent(one.visible / one.rules)})"
        for one in curve
    )
