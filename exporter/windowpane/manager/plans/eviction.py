"""Plans an eviction: a pure function from a window snapshot and a number of tokens to the removals.

Tool results are masked first, in place, so their groups stay valid; then whole groups may be dropped as the
policy allows. The plan is the shortest prefix of the ranking that frees enough, without removals that turn out
to be unnecessary. Nothing is applied here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from windowpane.core.events import Candidate
from windowpane.core.protocols import TokenCounter
from windowpane.core.window.blocks import Block
from windowpane.manager.plans.placeholders import handle_of, placeholder_text
from windowpane.manager.plans.policies import SCORERS, Policy
from windowpane.manager.plans.protection import Grade, protected
from windowpane.manager.snapshot import Group, Item, Snapshot, groups_of

LISTED_CANDIDATES: Final = 20


@dataclass(frozen=True, slots=True)
class Removal:
    """A tool result replaced by a placeholder, or a whole group dropped."""

    form: Literal["mask", "drop"]
    blocks: tuple[Block, ...]
    score: float
    terms: dict[str, float]
    """Scores by scorer, of which the score is the weighted mean."""
    reason: str
    placeholder: str | None = None
    placeholder_tokens: int = 0

    @property
    def freed(self) -> int:
        """Tokens removed, net of the placeholder."""
        return sum(block.tokens for block in self.blocks) - self.placeholder_tokens


@dataclass(frozen=True, slots=True)
class EvictionPlan:
    """The removals planned for one version of the window; tokens as counted at ingest."""

    version: int
    policy: str
    grade: Grade
    needed_tokens: int
    removals: tuple[Removal, ...] = ()
    cache_cost_tokens: int = 0
    """Retained tokens behind the first edited block, which the prompt cache would no longer serve."""
    candidates: tuple[Candidate, ...] = ()

    @classmethod
    def of(cls, snapshot: Snapshot, removals: Sequence[Removal], *, policy: str) -> EvictionPlan:
        """Return the plan that applies all of *removals*, chosen by a preset's own rule."""
        return cls(
            version=snapshot.version,
            policy=policy,
            grade="open_cycle",
            needed_tokens=sum(removal.freed for removal in removals),
            removals=tuple(removals),
            cache_cost_tokens=_cache_cost(snapshot, _block_ids(removals)),
        )

    @property
    def freed_tokens(self) -> int:
        """Tokens freed, net of placeholders."""
        return sum(removal.freed for removal in self.removals)

    @property
    def shortfall_tokens(self) -> int:
        """Tokens missing to what is needed; 0 if the plan frees enough."""
        return max(0, self.needed_tokens - self.freed_tokens)


class _Ranking:
    """Candidates with their scores, lowest first; equal ones oldest first."""

    def __init__(self, items: Sequence[Item], snapshot: Snapshot, policy: Policy) -> None:
        self.items = items
        self._columns = [
            (name, weight, SCORERS[name](items, snapshot))
            for name, weight in policy.weights.items()
            if weight > 0
        ]
        self.scores = _weighted(len(items), [(weight, column) for _, weight, column in self._columns])
        self.order = sorted(range(len(items)), key=self.scores.__getitem__)
        self._rows: dict[str, int] | None = None

    def terms(self, row: int) -> dict[str, float]:
        """Return the scores of a candidate by scorer."""
        terms: dict[str, float] = {}
        for name, _, column in self._columns:
            value = column[row]
            if value is not None:
                terms[name] = value
        return terms

    def row(self, block_id: str) -> int:
        """Return the index of a candidate."""
        if self._rows is None:
            self._rows = {item.block.id: row for row, item in enumerate(self.items)}
        return self._rows[block_id]


def _weighted(count: int, columns: Sequence[tuple[float, Sequence[float | None]]]) -> list[float]:
    """Return the weighted mean of each row over the columns that rate it; 0 for a row that none rates."""
    totals = [0.0] * count
    weights = [0.0] * count
    everywhere = 0.0
    for weight, column in columns:
        if None in column:
            for row, value in enumerate(column):
                if value is not None:
                    totals[row] += weight * value
                    weights[row] += weight
        else:
            everywhere += weight
            totals = [total + weight * value for total, value in zip(totals, column, strict=True)]  # type: ignore[operator]  # no None
    return [
        total / (own + everywhere) if own + everywhere else 0.0
        for total, own in zip(totals, weights, strict=True)
    ]


def plan_eviction(
    snapshot: Snapshot,
    needed_tokens: int,
    *,
    policy: Policy,
    counter: TokenCounter,
    grade: Grade = "exchanges",
    handles: bool = True,
    listed: int = LISTED_CANDIDATES,
) -> EvictionPlan:
    """Return the removals that free *needed_tokens*; the same snapshot always gives the same plan.

    Without *handles*, where there is no archive, placeholders name no original.
    """
    groups = groups_of(snapshot.items)
    retained = protected(snapshot, grade, groups)
    free = [group for group in groups if group.id not in retained]
    ranking = _Ranking([item for group in free for item in group.items], snapshot, policy)
    if policy.only is not None:
        free = [group for group in free if all(item.block.content_type in policy.only for item in group.items)]
    removals: list[Removal] = []
    freed = 0
    if needed_tokens > 0 and policy.masks:
        for removal in _masks(ranking, snapshot, counter, handles=handles):
            removals.append(removal)
            freed += removal.freed
            if freed >= needed_tokens:
                break
    if freed < needed_tokens:
        removals = _drop(removals, needed_tokens, free=free, ranking=ranking, snapshot=snapshot, policy=policy)
    removals = _without_surplus(removals, needed_tokens)
    removed = _block_ids(removals)
    return EvictionPlan(
        version=snapshot.version,
        policy=policy.name,
        grade=grade,
        needed_tokens=needed_tokens,
        removals=tuple(removals),
        cache_cost_tokens=_cache_cost(snapshot, removed),
        candidates=_candidates(ranking, removed, listed, masks=policy.masks),
    )


def _masks(ranking: _Ranking, snapshot: Snapshot, counter: TokenCounter, *, handles: bool) -> Iterator[Removal]:
    """Yield the masks that save tokens, lowest score first; lazily, since counting placeholders is slow."""
    for row in ranking.order:
        item = ranking.items[row]
        block = item.block
        if block.content_type != "tool_result":
            continue
        handle = (block.handle or handle_of(block.id)) if handles else None
        text = placeholder_text(
            block, snapshot.findings.get(block.id, ""), handle, counter, names=snapshot.in_use.get(block.id, ())
        )
        tokens = counter.count(text)
        if tokens < block.tokens:
            terms = ranking.terms(row)
            yield Removal("mask", (block,), ranking.scores[row], terms, _why(item, terms), text, tokens)


def _drop(
    removals: list[Removal],
    needed_tokens: int,
    *,
    free: Sequence[Group],
    ranking: _Ranking,
    snapshot: Snapshot,
    policy: Policy,
) -> list[Removal]:
    """Return *removals* with whole groups dropped in addition, lowest score first, until enough is freed."""
    later = {item.block.digest: item.block.id for item in snapshot.items if item.block.digest}
    droppable = [
        (_group_score(group, ranking), group)
        for group in free
        if policy.drops == "any" or _is_spent(group, later, snapshot, expired=policy.drops == "expired")
    ]
    droppable.sort(key=lambda pair: (pair[0], pair[1].position))
    freed = sum(removal.freed for removal in removals)
    for score, group in droppable:
        if freed >= needed_tokens:
            break
        members = {item.block.id for item in group.items}
        freed -= sum(removal.freed for removal in removals if removal.blocks[0].id in members)
        removals = [removal for removal in removals if removal.blocks[0].id not in members]
        terms = ranking.terms(ranking.row(group.items[0].block.id))
        reason = "oldest and least used" if policy.drops == "any" else policy.drops
        removals.append(Removal("drop", tuple(item.block for item in group.items), score, terms, reason))
        freed += group.tokens
    return removals


def _group_score(group: Group, ranking: _Ranking) -> float:
    """Return the token-weighted mean of its blocks' scores."""
    scores = [ranking.scores[ranking.row(item.block.id)] for item in group.items]
    total = group.tokens
    if not total:
        return min(scores)
    return math.fsum(score * item.block.tokens for score, item in zip(scores, group.items, strict=True)) / total


def _is_spent(group: Group, later: Mapping[str, str], snapshot: Snapshot, *, expired: bool) -> bool:
    """Return whether everything in the group is repeated later or, with *expired*, expired or long masked."""
    masked_turns = snapshot.lifetimes.get("tool_result", 0)
    spent = 0
    for item in group.items:
        block = item.block
        if block.content_type == "tool_call":
            continue
        repeated = bool(block.digest) and later.get(block.digest, block.id) != block.id
        masked = block.content_type == "placeholder" and snapshot.turn - block.turn >= masked_turns
        if not (repeated or (expired and (item.stale or masked))):
            return False
        spent += 1
    return spent > 0


def _why(item: Item, terms: Mapping[str, float]) -> str:
    if terms.get("semantic_duplication") == 0.0 or terms.get("similarity", 1.0) < 0.5:
        return "repeated later in the window"
    if item.stale:
        return "not used for its lifetime"
    return "least worth keeping"


def _without_surplus(removals: Sequence[Removal], needed_tokens: int) -> list[Removal]:
    """Return *removals* without those that are unnecessary, highest score first."""
    surplus = sum(removal.freed for removal in removals) - needed_tokens
    retained = list(removals)
    for removal in sorted(removals, key=lambda removal: -removal.score):
        if 0 < removal.freed <= surplus:
            retained.remove(removal)
            surplus -= removal.freed
    return retained


def _block_ids(removals: Sequence[Removal]) -> set[str]:
    return {block.id for removal in removals for block in removal.blocks}


def _cache_cost(snapshot: Snapshot, removed: set[str]) -> int:
    """Retained tokens behind the first removed block."""
    first = next((at for at, item in enumerate(snapshot.items) if item.block.id in removed), len(snapshot.items))
    return sum(item.block.tokens for item in snapshot.items[first:] if item.block.id not in removed)


def _candidates(ranking: _Ranking, removed: set[str], count: int, *, masks: bool) -> tuple[Candidate, ...]:
    """Return the next *count* candidates, tool results first where these are masked first."""
    listed: list[Candidate] = []
    order = ranking.order
    if masks:
        order = sorted(order, key=lambda row: ranking.items[row].block.content_type != "tool_result")
    for row in order:
        if len(listed) >= count:
            break
        block = ranking.items[row].block
        if block.id not in removed:
            listed.append(Candidate(block.id, block.content_type, block.tokens, ranking.scores[row]))
    return tuple(listed)
