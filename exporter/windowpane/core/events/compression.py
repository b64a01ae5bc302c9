"""Facts about compressions: sizes before and after, the compression ratio, and the fidelity of the result."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Final, Literal

from windowpane.core.vocabulary import Component, Fate, RuleFate, RuleSource, lost_count

Strategy = Literal[
    "tool_result_summarization",
    "progressive_summarization",
    "compaction",
    "note_taking",
    "subagent_delegation",
    "truncation",
    "semantic_merge",
]
"""Method of replacing content by less content."""


@dataclass(frozen=True, slots=True)
class ContentCompressed:
    """Content was replaced by less content, or an attempt to do so failed."""

    type: ClassVar[str] = "content.compressed"
    strategy: Strategy
    trigger: str
    outcome: Literal["accepted", "rejected", "failed"]
    tokens_before: int
    tokens_after: int
    scope: Literal["content", "window"] = "content"
    """`window` if a recording has only totals of the whole window: no ratio is derived from them."""
    removed: tuple[str, ...] = ()
    """Ids of the removed blocks."""
    results: tuple[str, ...] = ()
    """Ids of the blocks that replace them; each follows as `block.added`."""
    removed_by_component: dict[Component, int] = field(default_factory=dict)
    model_calls: int = 0
    cost_dollars: float | None = None
    duration_seconds: float | None = None
    method: str = ""
    """Author of the result, such as `extractive` or a model's name; `agent` or `provider` when that
    compressed it."""
    reason: str = ""
    """Reason of a rejection or failure."""

    @property
    def ratio(self) -> float | None:
        """The compression ratio: original tokens / result tokens of the replaced content; None if unknown."""
        if self.scope != "content" or self.outcome != "accepted" or self.tokens_after <= 0:
            return None
        return self.tokens_before / self.tokens_after

    @property
    def is_compaction(self) -> bool:
        """True if the window was compacted: a rejected or failed attempt does not count."""
        return self.strategy == "compaction" and self.outcome == "accepted"

    @property
    def is_own_compaction(self) -> bool:
        """True if the agent compacted by itself, and not at the request of its user."""
        return self.strategy == "compaction" and self.method == "agent" and self.trigger != "manual"


@dataclass(frozen=True, slots=True)
class FactOutcome:
    """One decision-critical fact after a compression: retained, recoverable, lost or contradicted."""

    kind: str
    outcome: Fate
    digest: str
    text: str | None = None
    """Never serialized; content capture stores it under the digest.

    Of a contradiction the first line has the fact, the second the text of the replacement.
    """
    block: str | None = None
    """Id of the removed block that has the content of the fact, by which a regret refers to it."""


@dataclass(frozen=True, slots=True)
class FidelityEvaluated:
    """The decision-critical information that is still visible after a compression was evaluated."""

    type: ClassVar[str] = "fidelity.evaluated"
    method: Literal["probe", "judge", "behavior"]
    score: float | None
    """Share of the facts that are kept, 0 to 1, or a judge's score.

    None when the text of less than half of the removed tokens was seen, or with fewer than five facts.
    """
    coverage: float
    """Share of the removed tokens whose text was seen, 0 to 1."""
    key_facts: float | None = None
    continuity: float | None = None
    decisions: float | None = None
    facts: tuple[FactOutcome, ...] = ()
    """Outcome of each fact, at most 200."""
    facts_total: int = 0
    facts_kept: int = 0
    facts_recoverable: int = 0
    facts_lost: int = 0
    facts_contradicted: int = 0
    of: str | None = None
    """Event id of the compression or eviction that was evaluated."""
    judge: str | None = None
    reason: str = ""
    """Reason of a missing score."""
    faithfulness: float | None = None
    """Of events recorded before the probe counted faults."""
    form: tuple[str, ...] = ()
    """Damage to the form of the replacement, such as `section missing: Pending Tasks`."""
    spread: float | None = None
    """Of a judge: the difference between the highest and the lowest score of its repetitions."""
    unmeasured: tuple[str, ...] = ()
    """Facts that could not be measured, with the reason."""


@dataclass(frozen=True, slots=True)
class RuleOutcome:
    """One standing instruction after a compaction."""

    fate: RuleFate
    source: RuleSource
    digest: str
    compactions: int = 1
    """Compactions that it has been through, this one included."""
    text: str | None = None
    """Never serialized; content capture stores it under the digest."""
    contradicted_by: str | None = None
    """Clause of the summary that contradicts it; never serialized."""


NO_RULES: Final = "no rules were found"
"""Reason of `RulesFollowed` where nothing is missing."""


@dataclass(frozen=True, slots=True)
class RulesFollowed:
    """The standing instructions visible before a compaction were looked up in the first call after it."""

    type: ClassVar[str] = "rules.followed"
    of: str
    """Event id of the compaction."""
    compaction: int
    """Number of the compaction in the session, from 1."""
    user: dict[RuleFate, int] = field(default_factory=dict)
    """Rules that a message of the user stated, by what became of them."""
    system: dict[RuleFate, int] = field(default_factory=dict)
    """Those of the system prompt."""
    memory: dict[RuleFate, int] = field(default_factory=dict)
    """Those of memory files and reminders."""
    outcomes: tuple[RuleOutcome, ...] = ()
    """Outcome of each rule, the worst first, at most 100."""
    followed_by_compactions: tuple[int, ...] = ()
    """Rules that have been through 1, 2, 3 … compactions, those that an earlier one lost included."""
    visible_by_compactions: tuple[int, ...] = ()
    """Those of them that are still visible."""
    unrecorded: tuple[RuleSource, ...] = ()
    """Sources of which the recording holds no text: their rules are unknown."""
    reason: str = ""
    """Reason why nothing could be followed."""

    @property
    def by_source(self) -> dict[RuleSource, dict[RuleFate, int]]:
        """Rules of each source, by what became of them."""
        return {"user": self.user, "system": self.system, "memory": self.memory}

    def count(self, *fates: RuleFate) -> int:
        """Return the number of rules with one of *fates*, or of all."""
        sources = self.by_source.values()
        return sum(count for source in sources for fate, count in source.items() if not fates or fate in fates)

    @property
    def lost(self) -> int:
        """Rules of the user and of memory files that are lost or reversed."""
        return lost_count(self.by_source)

    @property
    def survival(self) -> float | None:
        """Share of the rules that are visible in the first call after the compaction; None without any."""
        total = self.count()
        return self.count("kept", "reworded", "restored") / total if total else None
