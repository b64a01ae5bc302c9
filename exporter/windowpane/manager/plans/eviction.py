"""Plans an eviction: a pure function from a window snapshot and a number of tokens to what should leave.

Tool results are masked first, in place, so their groups stay valid; then whole groups may be dropped as the
policy allows. The plan is the smallest prefix of the ranking that frees enough, without what turns out not to
be needed. Nothing is applied here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from windowpane.core.events import Candidate
from windowpane.core.protocols import TokenCounter
from windowpane.core.window.blocks import Block
from windowpane.manager.plans.placeholders import handle_of, placeholder_text
from windowpane.manager.plans.policies import TERMS, Policy
from windowpane.manager.plans.protection import Grade, protected
from windowpane.manager.snapshot import Group, Item, Snapshot, groups_of

LISTED_CANDIDATES: Final = 20


@dataclass(frozen=True, slots=True)
class Removal:
    """One thing that leaves: a tool result behind a placeholder, or a whole group."""

    form: Literal["mask", "drop"]
    blocks: tuple[Block, ...]
    score: float
    terms: dict[str, float]
    reason: str
    placeholder: str | None = None
    placeholder_tokens: int = 0

    @property
    def freed(self) -> int:
        """Tokens that leave, net of the placeholder."""
        return sum(block.tokens for block in self.blocks) - self.placeholder_tokens


@dataclass(frozen=True, slots=True)
class EvictionPlan:
    """What should leave, made for one version of the window; tokens as counted at ingest."""

    version: int
    policy: str
    grade: Grade
    needed_tokens: int
    removals: tuple[Removal, ...] = ()
    cache_cost_tokens: int = 0
    """Tokens behind the first edited block, which the prompt cache would no longer serve."""
    candidates: tuple[Candidate, ...] = ()

    @property
    def freed_tokens(self) -> int:
        """Tokens freed, net of placeholders."""
        return sum(removal.freed for removal in self.removals)

    @property
    def shortfall_tokens(self) -> int:
        """How much it falls short of what was needed; 0 when it does not."""
        return max(0, self.needed_tokens - self.freed_tokens)


class _Ranking:
    """Candidates with their scores, evict first ones first; equal ones oldest first."""

    def __init__(self, items: Sequence[Item], snapshot: Snapshot, policy: Policy) -> None:
        self.items = items
        self._columns = [
            (term, weight, TERMS[term](items, snapshot)) for term, weight in policy.weights.items() if weight > 0
        ]
        self.scores = _weighted(len(items), [(weight, column) for _, weight, column in self._columns])
        self.order = sorted(range(len(items)), key=self.scores.__getitem__)
        self._rows: dict[str, int] | None = None

    def terms(self, row: int) -> dict[str, float]:
        """What the score of a candidate is made of."""
        found: dict[str, float] = {}
        for term, _, column in self._columns:
            value = column[row]
            if value is not None:
                found[term] = value
        return found

    def row(self, block_id: str) -> int:
        """Where a candidate is."""
        if self._rows is None:
            self._rows = {item.block.id: row for row, item in enumerate(self.items)}
        return self._rows[block_id]


def _weighted(count: int, columns: Sequence[tuple[float, Sequence[float | None]]]) -> list[float]:
    """The weighted mean of each row over the columns that can rate it; 0 where none can."""
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
    """What to evict to free *needed_tokens*; the same snapshot always gives the same plan.

    Without *handles* placeholders promise no original, for want of an archive.
    """
    groups = groups_of(snapshot.items)
    kept = protected(snapshot, grade, groups)
    free = [group for group in groups if group.id not in kept]
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
    taken = {block.id for removal in removals for block in removal.blocks}
    return EvictionPlan(
        version=snapshot.version,
        policy=policy.name,
        grade=grade,
        needed_tokens=needed_tokens,
        removals=tuple(removals),
        cache_cost_tokens=_behind(snapshot, taken),
        candidates=_candidates(ranking, taken, listed, masks=policy.masks),
    )


def _masks(ranking: _Ranking, snapshot: Snapshot, counter: TokenCounter, *, handles: bool) -> Iterator[Removal]:
    """Masks in order of score, each worked out only when it is asked for; none that would not save anything."""
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
    """The steps with whole groups dropped on top, least worth keeping first, until enough is freed."""
    later = {item.block.digest: item.block.id for item in snapshot.items if item.block.digest}
    droppable = [
        (_group_score(group, ranking), group)
        for group in free
        if policy.drops == "any" or _spent(group, later, snapshot)
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
        reason = "oldest and least used" if policy.drops == "any" else "expired"
        removals.append(Removal("drop", tuple(item.block for item in group.items), score, terms, reason))
        freed += group.tokens
    return removals


def _group_score(group: Group, ranking: _Ranking) -> float:
    """The token-weighted mean of its blocks' scores."""
    scores = [ranking.scores[ranking.row(item.block.id)] for item in group.items]
    total = group.tokens
    if not total:
        return min(scores)
    return sum(score * item.block.tokens for score, item in zip(scores, group.items, strict=True)) / total


def _spent(group: Group, later: Mapping[str, str], snapshot: Snapshot) -> bool:
    """Whether nothing in the group is of use: expired, masked for a lifetime, or standing again later."""
    masked_turns = snapshot.lifetimes.get("tool_result", 0)
    used_up = 0
    for item in group.items:
        block = item.block
        if block.content_type == "tool_call":
            continue
        repeated = bool(block.digest) and later.get(block.digest, block.id) != block.id
        masked = block.content_type == "placeholder" and snapshot.turn - block.turn >= masked_turns
        if not (item.stale or repeated or masked):
            return False
        used_up += 1
    return used_up > 0


def _why(item: Item, terms: Mapping[str, float]) -> str:
    if terms.get("duplication") == 0.0 or terms.get("similarity", 1.0) < 0.5:
        return "stands again later"
    if item.stale:
        return "not used for its lifetime"
    return "least worth keeping"


def _without_surplus(removals: Sequence[Removal], needed_tokens: int) -> list[Removal]:
    """The steps without those that turn out not to be needed, most worth keeping first."""
    surplus = sum(removal.freed for removal in removals) - needed_tokens
    kept = list(removals)
    for removal in sorted(removals, key=lambda removal: -removal.score):
        if 0 < removal.freed <= surplus:
            kept.remove(removal)
            surplus -= removal.freed
    return kept


def _behind(snapshot: Snapshot, taken: set[str]) -> int:
    """Tokens that stay behind the first edited block."""
    first = next((at for at, item in enumerate(snapshot.items) if item.block.id in taken), None)
    if first is None:
        return 0
    return sum(item.block.tokens for item in snapshot.items[first:] if item.block.id not in taken)


def _candidates(ranking: _Ranking, taken: set[str], count: int, *, masks: bool) -> tuple[Candidate, ...]:
    """What is next in line: tool results before all else where these are masked first."""
    listed: list[Candidate] = []
    order = ranking.order
    if masks:
        order = sorted(order, key=lambda row: ranking.items[row].block.content_type != "tool_result")
    for row in order:
        if len(listed) >= count:
            break
        block = ranking.items[row].block
        if block.id not in taken:
            listed.append(Candidate(block.id, block.content_type, block.tokens, ranking.scores[row]))
    return tuple(listed)
