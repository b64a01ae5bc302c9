"""Plans an eviction: a pure function from a window snapshot and a number of tokens to what should leave.

Tool results are masked first, in place, so their groups stay valid; then whole groups may be dropped as the
policy allows. The plan is the smallest prefix of the ranking that frees enough, without what turns out not to
be needed. Nothing is applied here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from windowpane.control.eviction.placeholders import handle_of, placeholder_text
from windowpane.control.eviction.policies import TERMS, Policy
from windowpane.control.protection import Grade, protected
from windowpane.control.snapshot import Group, Item, Snapshot, groups_of
from windowpane.events import Candidate
from windowpane.protocols import TokenCounter
from windowpane.window.blocks import Block

LISTED_CANDIDATES: Final = 20


@dataclass(frozen=True, slots=True)
class Step:
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
    steps: tuple[Step, ...] = ()
    cache_cost_tokens: int = 0
    """Tokens behind the first edited block, which the prompt cache would no longer serve."""
    candidates: tuple[Candidate, ...] = ()

    @property
    def freed_tokens(self) -> int:
        """Tokens freed, net of placeholders."""
        return sum(step.freed for step in self.steps)

    @property
    def shortfall_tokens(self) -> int:
        """How much it falls short of what was needed; 0 when it does not."""
        return max(0, self.needed_tokens - self.freed_tokens)


@dataclass(slots=True)
class _Rated:
    item: Item
    score: float
    terms: dict[str, float]


def plan_eviction(
    snapshot: Snapshot,
    needed_tokens: int,
    *,
    policy: Policy,
    counter: TokenCounter,
    grade: Grade = "exchanges",
    handles: bool = True,
) -> EvictionPlan:
    """What to evict to free *needed_tokens*; the same snapshot always gives the same plan.

    Without *handles* placeholders promise no original, for want of an archive.
    """
    groups = groups_of(snapshot.items)
    kept = protected(snapshot, grade, groups)
    free = [group for group in groups if group.id not in kept]
    rated = _rate([item for group in free for item in group.items], snapshot, policy)
    steps: list[Step] = []
    freed = 0
    if needed_tokens > 0 and policy.masks:
        for step in _masks(rated, snapshot, counter, handles=handles):
            steps.append(step)
            freed += step.freed
            if freed >= needed_tokens:
                break
    if freed < needed_tokens:
        steps = _drop(steps, needed_tokens, free=free, rated=rated, snapshot=snapshot, policy=policy)
    steps = _without_surplus(steps, needed_tokens)
    taken = {block.id for step in steps for block in step.blocks}
    return EvictionPlan(
        version=snapshot.version,
        policy=policy.name,
        grade=grade,
        needed_tokens=needed_tokens,
        steps=tuple(steps),
        cache_cost_tokens=_behind(snapshot, taken),
        candidates=_candidates(rated, taken),
    )


def _rate(items: Sequence[Item], snapshot: Snapshot, policy: Policy) -> list[_Rated]:
    """Candidates with their scores, evict first ones first; equal ones oldest first."""
    weights = {term: weight for term, weight in policy.weights.items() if weight > 0}
    columns = [(term, weight, TERMS[term](items, snapshot)) for term, weight in weights.items()]
    rated = []
    for row, item in enumerate(items):
        total = weight_sum = 0.0
        terms: dict[str, float] = {}
        for term, weight, column in columns:
            value = column[row]
            if value is not None:
                terms[term] = value
                total += weight * value
                weight_sum += weight
        rated.append(_Rated(item, total / weight_sum if weight_sum else 0.0, terms))
    rated.sort(key=lambda entry: entry.score)
    return rated


def _masks(
    rated: Sequence[_Rated], snapshot: Snapshot, counter: TokenCounter, *, handles: bool
) -> Iterator[Step]:
    """Masks in order of score, each worked out only when it is asked for; none that would not save anything."""
    for entry in rated:
        block = entry.item.block
        if block.content_type != "tool_result":
            continue
        handle = (block.handle or handle_of(block.id)) if handles else None
        text = placeholder_text(block, snapshot.findings.get(block.id, ""), handle, counter)
        tokens = counter.count(text)
        if tokens < block.tokens:
            yield Step("mask", (block,), entry.score, entry.terms, _why(entry.item, entry.terms), text, tokens)


def _drop(
    steps: list[Step],
    needed_tokens: int,
    *,
    free: Sequence[Group],
    rated: Sequence[_Rated],
    snapshot: Snapshot,
    policy: Policy,
) -> list[Step]:
    """The steps with whole groups dropped on top, least worth keeping first, until enough is freed."""
    by_block = {entry.item.block.id: entry for entry in rated}
    later = {item.block.digest: item.block.id for item in snapshot.items if item.block.digest}
    droppable = [
        (_group_score(group, by_block), group)
        for group in free
        if policy.drops == "any" or _spent(group, later, snapshot)
    ]
    droppable.sort(key=lambda pair: (pair[0], pair[1].position))
    freed = sum(step.freed for step in steps)
    for score, group in droppable:
        if freed >= needed_tokens:
            break
        members = {item.block.id for item in group.items}
        freed -= sum(step.freed for step in steps if step.blocks[0].id in members)
        steps = [step for step in steps if step.blocks[0].id not in members]
        terms = by_block[group.items[0].block.id].terms
        reason = "oldest and least used" if policy.drops == "any" else "expired"
        steps.append(Step("drop", tuple(item.block for item in group.items), score, terms, reason))
        freed += group.tokens
    return steps


def _group_score(group: Group, by_block: Mapping[str, _Rated]) -> float:
    """The token-weighted mean of its blocks' scores."""
    total = sum(item.block.tokens for item in group.items)
    weighted = sum(by_block[item.block.id].score * item.block.tokens for item in group.items)
    return weighted / total if total else min(by_block[item.block.id].score for item in group.items)


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


def _without_surplus(steps: Sequence[Step], needed_tokens: int) -> list[Step]:
    """The steps without those that turn out not to be needed, most worth keeping first."""
    surplus = sum(step.freed for step in steps) - needed_tokens
    kept = list(steps)
    for step in sorted(steps, key=lambda step: -step.score):
        if 0 < step.freed <= surplus:
            kept.remove(step)
            surplus -= step.freed
    return kept


def _behind(snapshot: Snapshot, taken: set[str]) -> int:
    """Tokens that stay behind the first edited block."""
    first = next((at for at, item in enumerate(snapshot.items) if item.block.id in taken), None)
    if first is None:
        return 0
    return sum(item.block.tokens for item in snapshot.items[first:] if item.block.id not in taken)


def _candidates(rated: Sequence[_Rated], taken: set[str]) -> tuple[Candidate, ...]:
    listed: list[Candidate] = []
    for entry in rated:
        block = entry.item.block
        if block.id not in taken:
            listed.append(Candidate(block.id, block.content_type, block.tokens, entry.score))
            if len(listed) == LISTED_CANDIDATES:
                break
    return tuple(listed)
