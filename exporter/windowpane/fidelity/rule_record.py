"""The state of a session's rules after a compaction, and how many survive 1, 2, 3 … compactions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from windowpane.core.events import NO_RULES, RuleOutcome, RulesFollowed
from windowpane.core.protocols import Digester
from windowpane.core.vocabulary import REPLY_TYPES, RULE_FATES, RULE_SOURCES, RuleFate, RuleSource
from windowpane.core.window.blocks import Block
from windowpane.fidelity.rule_comparison import ComparedText
from windowpane.fidelity.rules import MAXIMUM_RULES, Rule, find_rules, instructing
from windowpane.fidelity.situation import is_written

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
        unrecorded = _unrecorded(compaction.before)
        if not any(block.text for block in window if block.id in compaction.results):
            self._followed.clear()
            reason = "the text of the summary was not recorded"
            return RulesFollowed(compaction.of, compaction.number, unrecorded=unrecorded, reason=reason)
        self.follow(find_rules(compaction.before))
        if not self._followed:
            return RulesFollowed(compaction.of, compaction.number, unrecorded=unrecorded, reason=NO_RULES)
        sight = _Sight(compaction, window)
        counts: dict[RuleSource, Counter[RuleFate]] = {source: Counter() for source in RULE_SOURCES}
        outcomes: list[RuleOutcome] = []
        for one in self._followed.values():
            was_visible, rule = one.is_visible, one.rule
            one.compactions += 1
            fate = sight.fate_of(rule)
            one.is_visible = fate not in ("lost", "contradicted")
            if was_visible:
                counts[rule.source][fate] += 1
                digest = self._digest(rule.text)
                outcomes.append(RuleOutcome(fate, rule.source, digest, one.compactions, rule.text))
        outcomes.sort(key=lambda outcome: -RULE_FATES.index(outcome.fate))
        followed_by, visible_by = self._by_compactions()
        return RulesFollowed(
            compaction.of, compaction.number,
            user=dict(counts["user"]), system=dict(counts["system"]), memory=dict(counts["memory"]),
            outcomes=tuple(outcomes[:MAXIMUM_OUTCOMES]),
            followed_by_compactions=followed_by, visible_by_compactions=visible_by, unrecorded=unrecorded,
        )  # fmt: skip

    def follow(self, rules: Iterable[Rule]) -> None:
        """Add rules that are visible now."""
        for rule in rules:
            followed = self._followed.get(rule.text.casefold())
            if followed is not None:
                followed.rule, followed.is_visible = rule, True
            elif len(self._followed) < MAXIMUM_RULES:
                self._followed[rule.text.casefold()] = _Followed(rule)

    def _by_compactions(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return how many rules have been through 1, 2, 3 … compactions, and how many of these are visible."""
        most = min(MAXIMUM_COUNTED, max(one.compactions for one in self._followed.values()))
        followed, visible = [0] * most, [0] * most
        for one in self._followed.values():
            at = min(one.compactions, most) - 1
            followed[at] += 1
            visible[at] += one.is_visible
        return tuple(followed), tuple(visible)


class _Sight:
    """The first call after a compaction: what remained, the summary, and what was put back."""

    def __init__(self, compaction: ObservedCompaction, window: Sequence[Block]) -> None:
        before_ids = {block.id for block in compaction.remaining}
        self._present = {block.id for block in window} & before_ids
        summary = [block for block in window if block.id in compaction.results]
        remaining = [block for block, _ in instructing(block for block in window if block.id in before_ids)]
        added = [block for block in window if block.id not in before_ids and block.id not in compaction.results]
        self._summary = ComparedText(block.text or "" for block in summary)
        self._remaining = ComparedText(block.text or "" for block in remaining)
        by_program = (one for one in added if one.content_type not in OUTPUT_TYPES and not is_written(one))
        self._restored = ComparedText(block.text or "" for block in by_program)
        self._instructions = ComparedText(block.text or "" for block, _ in instructing(compaction.before))

    def fate_of(self, rule: Rule) -> RuleFate:
        """Return what became of a rule."""
        stated, contradicting = self._summary.match(rule.text)
        if stated == "verbatim":
            return "kept"
        if contradicting is not None and not self._instructions.states(contradicting):
            return "contradicted"  # and the summary does not just repeat another rule, or a later one
        if rule.block in self._present or self._remaining.has(rule.text):
            return "kept"
        if self._restored.match(rule.text).match in ("verbatim", "reworded"):
            return "restored"
        return "reworded" if stated == "reworded" else "lost"


def _unrecorded(blocks: Iterable[Block]) -> tuple[RuleSource, ...]:
    """Return the sources of which no block has text."""
    recorded = {source for _, source in instructing(blocks)}
    return tuple(source for source in RULE_SOURCES if source not in recorded)
