"""Merges similar blocks into one that holds every line of them once.

The newest block holds the merged text; older ones are removed, a tool result behind a placeholder so that its
group stays valid. Similarity is that of word shingles, or of the vectors of an embedding model.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from windowpane.core.events import ContentCompressed
from windowpane.core.limits import WindowLimits
from windowpane.core.vocabulary import COMPONENT_OF, Component
from windowpane.core.window.blocks import Block
from windowpane.effects.commands import ArchiveOriginals, Effect, compute
from windowpane.effects.model_calls import fenced
from windowpane.manager.engine import Engine
from windowpane.manager.levels import Levels
from windowpane.manager.model_calls import NO_CALLS, call_model, may_call_model
from windowpane.manager.plans.acceptance import (
    ProposedSummary,
    rejection_reason,
    reply_rejection_reason,
    sampled_fidelity,
)
from windowpane.manager.plans.merging import (
    SIMILARITY,
    Cluster,
    IsAlike,
    merge_texts,
    plan_merges,
    similarity,
    sketch_of,
)
from windowpane.manager.plans.placeholders import handle_of
from windowpane.manager.plans.prompts import MERGE
from windowpane.manager.step import NOT_DONE, StepResult
from windowpane.manager.steps.summary import EXTRACTIVE

_log = logging.getLogger(__name__)

MERGES_A_TURN: Final = 8
"""Clusters merged before one call, at most."""


def merge_similar(engine: Engine, limits: WindowLimits, levels: Levels) -> Effect[StepResult]:
    """Merge similar blocks until the target is reached."""
    freed = count = 0
    for cluster in plan_merges(engine.snapshot(limits), _comparison(engine))[:MERGES_A_TURN]:
        if engine.used() <= levels.target:
            break
        saved = yield from _merge(engine, cluster)
        freed += saved
        count += len(cluster.blocks) if saved else 0
    if not freed:
        return NOT_DONE
    return StepResult(
        f"merged {count} blocks that were alike, {freed:,} tokens freed", freed, engine.used() > levels.target
    )


def _comparison(engine: Engine) -> IsAlike:
    """Return a comparison by the embedder, or by word shingles if there is none or it fails."""
    embed = engine.settings.embed
    sketches: dict[str, frozenset[int]] = {}
    vectors: dict[str, Sequence[float]] = {}

    def by_shingles(one: Block, other: Block) -> bool:
        for block in (one, other):
            if block.id not in sketches:
                sketches[block.id] = sketch_of(block.text or "")
        return similarity(sketches[one.id], sketches[other.id]) >= SIMILARITY

    def alike(one: Block, other: Block) -> bool:
        nonlocal embed
        if embed is None:
            return by_shingles(one, other)
        try:
            for block in (one, other):
                if block.id not in vectors:
                    vectors[block.id] = embed(block.text or "")
            return cosine(vectors[one.id], vectors[other.id]) >= SIMILARITY
        except Exception:  # noqa: BLE001 (an embedder is the user's code, and may ask a server)
            embed = None
            _log.exception("the embedder failed; comparing word shingles instead")
            return by_shingles(one, other)

    return alike


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """Cosine of the angle between two vectors, -1 to 1; 0 where one has no length."""
    length = math.sqrt(sum(value * value for value in one) * sum(value * value for value in other))
    return sum(a * b for a, b in zip(one, other, strict=True)) / length if length else 0.0


def _merge(engine: Engine, cluster: Cluster) -> Effect[int]:
    tracker, started = engine.tracker, engine.timer()
    texts = [block.text or "" for block in cluster.blocks]
    text, method, use = merge_texts(texts), EXTRACTIVE, NO_CALLS
    if may_call_model(engine):
        answer = yield from call_model(engine, MERGE.format(tokens=engine.counter.count(text)), fenced(texts))
        use = answer.use
        if answer.text:
            fidelity = yield from _fidelity(engine, cluster, answer.text)
            if not reply_rejection_reason(answer.text, _proposed(engine, cluster, answer.text, fidelity)):
                text, method = answer.text, engine.settings.model
    if method == EXTRACTIVE:
        fidelity = yield from _fidelity(engine, cluster, text)
    handles = False
    if engine.settings.archive:
        items = tuple((handle_of(block.id), block.text or "") for block in cluster.blocks if block.handle is None)
        handles = not (yield ArchiveOriginals(items)).failed
    if any(block.id not in tracker.window for block in cluster.blocks):
        return 0
    results = _results(engine, cluster, text, handles=handles)
    after = sum(block.tokens for block in results)
    reason = rejection_reason(_proposed(engine, cluster, text, fidelity, after))
    by_component: dict[Component, int] = {COMPONENT_OF[cluster.blocks[0].content_type]: cluster.tokens}
    event = tracker.compress(
        ContentCompressed(
            strategy="semantic_merge",
            trigger="pressure",
            outcome="rejected" if reason else "accepted",
            tokens_before=cluster.tokens,
            tokens_after=after,
            removed=tuple(block.id for block in cluster.blocks),
            results=() if reason else tuple(block.id for block in results),
            removed_by_component=by_component,
            model_calls=use.calls,
            cost_dollars=use.cost_dollars,
            duration_seconds=engine.timer() - started,
            method=method,
            reason=reason,
        ),
        () if reason else results,
        in_place=True,
    )
    if reason:
        return 0
    engine.forget(cluster.blocks)
    engine.record_fidelity(cluster.blocks, results, recoverable=handles, of=event.event_id)
    return cluster.tokens - after


def _fidelity(engine: Engine, cluster: Cluster, text: str) -> Effect[float | None]:
    if engine.settings.evaluate is None:
        return None
    replacement = replace(cluster.blocks[-1], text=text)
    return (yield from compute(lambda: sampled_fidelity(cluster.blocks, replacement, checks=MERGES_A_TURN)))


def _proposed(
    engine: Engine, cluster: Cluster, text: str, fidelity: float | None, tokens: int | None = None
) -> ProposedSummary:
    after = engine.counter.count(text) if tokens is None else tokens
    return ProposedSummary(text, cluster.tokens, after, cluster.tokens, cluster.tokens, fidelity=fidelity)


def _results(engine: Engine, cluster: Cluster, text: str, *, handles: bool) -> list[Block]:
    """Return the merged block and a placeholder for each older tool result merged into it."""
    *older, newest = cluster.blocks
    tracker, counter = engine.tracker, engine.counter
    results = []
    for block in older:
        if block.content_type != "tool_result":
            continue
        handle = (block.handle or handle_of(block.id)) if handles else None
        where = f" Original: {handle}" if handle else ""
        tool = (block.tool_name or "tool")[:40]
        line = f"[Result of {tool}, turn {block.turn}, merged into that of turn {newest.turn}.{where}]"
        tokens = counter.count(line)
        results.append(
            tracker.make_replacement(
                "placeholder", line, tokens, replaces=block.id, count_source=counter.source, handle=handle
            )
        )
    handle = (newest.handle or handle_of(newest.id)) if handles else None
    results.append(
        tracker.make_shortened(newest, text, counter.count(text), count_source=counter.source, handle=handle)
    )
    return results
