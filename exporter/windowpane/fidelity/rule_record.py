"""The state of a session's rules after a compaction, and how many survive 1, 2, 3 … compactions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from windowpane.core.events import NO_RULES, RuleOutcome, RulesFollowed
from windowpane.core.protocols import Digester
from windowpane.core.vocabulary import REPLY_TYPES, RULE_FATES, RULE_SOURCES, RuleFate, RuleSource
from windowpane.core.window.blocks import Block
from windowpane.fidelity.authorship import is_written
from windowpane.fidelity.rule_comparison import ComparedText
from windowpane.fidelity.rules import MAXIMUM_RULES, Rule, find_rules, instructing

MAXIMUM_OUTCOMES: Final = 100
OUTPUT_TYPES: Final = REPLY_TYPES | {"tool_result"}
"""Content of the model and its tools: neither the user nor the agent's program added it."""
MAXIMUM_COUNTED: Final = 20
"""Numbers of compactions that rules are counted by; more count as the last."""


@dataclass(frozen=True, slots=True)
class ObservedCompaction:
    """A compaction whose first call has not come yet."""

    of: str
    """Its event id."""
    number: int
    window_id: int
    removed: tuple[Block, ...]
    remaining: tuple[Block, ...]
    """The window after it, without its results."""
    results: frozenset[str]
    """Ids of the blocks of the summary."""

    @property
    def before(self) -> tuple[Block, ...]:
        """The window before it."""
        return *self.removed, *self.remaining


@dataclass(slots=True)
class _Followed:
    """A rule of the session."""

    rule: Rule
    compactions: int = 0
    is_visible: bool = True


class RuleRecord:
    """The rules of one session, through its compactions in their order."""

    def __init__(self, digest: Digester) -> None:
        self._digest = digest
        self._window_id = 0
        self._followed: dict[str, _Followed] = {}
        """By wording."""

    def measure(self, compaction: ObservedCompaction, window: Sequence[Block]) -> RulesFollowed:
        """Return the state of the rules; *window* is the content of the first call after the compaction."""
        if self._window_id not in (0, compaction.window_id):
            self._followed.clear()
        self._window_id = compaction.window_id
        recorded = {source for _, source, _ in instructing(compaction.before)}
        unrecorded = tuple(source for source in RULE_SOURCES if source not in recorded)
        event = RulesFollowed(compaction.of, compaction.number, unrecorded=unrecorded)
        if not any(block.text for block in window if block.id in compaction.results):
            self._followed.clear()
            return replace(event, reason="the text of the summary was not recorded")
        self.follow(find_rules(compaction.before))
        if not self._followed:
            return replace(event, reason=NO_RULES)
        sight = _Sight(compaction, window)
        counts: dict[RuleSource, Counter[RuleFate]] = {source: Counter() for source in RULE_SOURCES}
        outcomes: list[RuleOutcome] = []
        followed: Counter[int] = Counter()
        visible: Counter[int] = Counter()
        for one in self._followed.values():
            was_visible, rule = one.is_visible, one.rule
            one.compactions += 1
            fate, claim = sight.fate_of(rule)
            one.is_visible = fate not in ("lost", "contradicted")
            number = min(one.compactions, MAXIMUM_COUNTED)
            followed[number] += 1
            visible[number] += one.is_visible
            if was_visible:
                counts[rule.source][fate] += 1
                digest = self._digest(rule.text)
                outcomes.append(RuleOutcome(fate, rule.source, digest, one.compactions, rule.text, claim))
        outcomes.sort(key=lambda outcome: -RULE_FATES.index(outcome.fate))
        numbers = range(1, max(followed) + 1)
        return replace(
            event,
            user=dict(counts["user"]),
            system=dict(counts["system"]),
            memory=dict(counts["memory"]),
            outcomes=tuple(outcomes[:MAXIMUM_OUTCOMES]),
            followed_by_compactions=tuple(map(followed.__getitem__, numbers)),
            visible_by_compactions=tuple(map(visible.__getitem__, numbers)),
        )

    def follow(self, rules: Iterable[Rule]) -> None:
        """Add rules that are visible now."""
        for rule in rules:
            followed = self._followed.get(rule.text.casefold())
            if followed is not None:
                followed.rule, followed.is_visible = rule, True
            elif len(self._followed) < MAXIMUM_RULES:
                self._followed[rule.text.casefold()] = _Followed(rule)


class _Sight:
    """The first call after a compaction: what remained, the summary, and what was put back."""

    def __init__(self, compaction: ObservedCompaction, window: Sequence[Block]) -> None:
        before_ids = {block.id for block in compaction.remaining}
        remaining = [block for block in window if block.id in before_ids]
        added = (one for one in window if one.id not in before_ids and one.id not in compaction.results)
        by_program = (one for one in added if one.content_type not in OUTPUT_TYPES and not is_written(one))
        self._present = {block.id for block in remaining}
        self._summary = ComparedText(one.text or "" for one in window if one.id in compaction.results)
        self._remaining = ComparedText(text for _, _, text in instructing(remaining))
        self._restored = ComparedText(one.text or "" for one in by_program)
        self._instructions = ComparedText(text for _, _, text in instructing(compaction.before))

    def fate_of(self, rule: Rule) -> tuple[RuleFate, str | None]:
        """Return what became of a rule, and the clause of the summary that contradicts it."""
        stated, contradicting = self._summary.match(rule.text)
        if stated == "verbatim":
            return "kept", None
        if contradicting is not None and not self._instructions.states(contradicting):
            return "contradicted", contradicting.text  # the summary does not just repeat another or a later rule
        if rule.block in self._present or self._remaining.has(rule.text):
            return "kept", None
        if self._restored.match(rule.text).match in ("verbatim", "reworded"):
            return "restored", None
        return "reworded" if stated == "reworded" else "lost", None
