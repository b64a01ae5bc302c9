"""A session's window as its own agent asks about it: short lines, for a reader who pays for every token."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from windowpane.core.times import is_live
from windowpane.core.vocabulary import COMPONENT_OF
from windowpane.report.block_life import block_name, life_steps
from windowpane.text import formats
from windowpane.text.forecasts import compaction_level_text, next_event
from windowpane.text.formats import turns_band, turns_until
from windowpane.text.labels import (
    COMPONENT_LABELS,
    LIMIT_SOURCE_LABELS,
    RULE_SOURCE_LABELS,
    content_name,
)
from windowpane.text.status_line import status_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from windowpane.core.vocabulary import Component, RuleFate
    from windowpane.fidelity.rules import Rule
    from windowpane.report.session_report import ReportedCompression
    from windowpane.store.reads.block_life import BlockLife
    from windowpane.store.records import BlockRow, SessionRow, TurnRow
    from windowpane.store.search.content import TextHit

LARGEST: Final = 8
"""Contents of the window that are listed."""
COMPRESSIONS: Final = 3


def status_lines(
    session: SessionRow, turn: TurnRow | None, window: Sequence[BlockRow], *, now: float
) -> list[str]:
    """Return how full the window is, when it will be compacted, and what fills it.

    *turn* is the last one, None before the first call has ended; *window* are the blocks after it.
    """
    return [
        _identity(session, now),
        _size(session),
        *_forecast(session, turn, now),
        *_components(window),
        *_largest(window),
        *_losses(session),
    ]


def _identity(session: SessionRow, now: float) -> str:
    title = f" ({session.title})" if session.title else ""
    measured = formats.ago(session.last_at, now)
    return (
        f"session {session.session_id}{title}, after {formats.count(session.turns, 'turn')}, recorded {measured}"
    )


def _size(session: SessionRow) -> str:
    if not session.turns:
        return "no model call of it has ended yet"
    line = status_line(
        zone=session.zone,
        utilization=session.utilization,
        used_tokens=session.used_tokens,
        limit_tokens=session.limit_tokens,
        velocity=session.velocity,
    )
    source = f" (limit {LIMIT_SOURCE_LABELS[session.limit_source]})" if session.limit_source else ""
    return f"window: {line}{source}" + (" (estimated)" if session.is_estimated else "")


def _forecast(session: SessionRow, turn: TurnRow | None, now: float) -> list[str]:
    """Return the turns until the agent compacts or the window is red, with the 10–90 range."""
    if turn is None or not is_live(session, now):
        return []
    event = next_event(session)
    if event.turns is None:
        return ["forecast: none yet"]
    if event.name == "compaction":
        band = turns_band(turn.turns_until_compaction_p10, turn.turns_until_compaction_p90)
    else:
        band = turns_band(turn.turns_until_red_p10, turn.turns_until_red_p90)
    level = compaction_level_text(session.compaction_tokens, session.compaction_evidence)
    median = f"{event.name} in {turns_until(event.turns)} turns"
    return [f"forecast: {median}" + (f" (10–90 range {band})" if band else "") + (f"; {level}" if level else "")]


def _components(window: Iterable[BlockRow]) -> list[str]:
    parts: Counter[Component] = Counter()
    for block in window:
        parts[COMPONENT_OF[block.content_type]] += block.tokens
    total = sum(parts.values())
    if not total:
        return []
    listed = ", ".join(
        f"{COMPONENT_LABELS[component]} {formats.tokens_short(size)} ({formats.percent(size / total)})"
        for component, size in parts.most_common()
        if size
    )
    return [f"filled by: {listed}"]


def _largest(window: Iterable[BlockRow]) -> list[str]:
    """Return the contents that take most of the window, each with all of its copies."""
    sizes: Counter[str] = Counter()
    copies: Counter[str] = Counter()
    for block in window:
        if block.content_type != "unattributed":
            name = content_name(block.content_type, block.tool_name, block.target)
            sizes[name] += block.tokens
            copies[name] += 1
    rows = [
        f"  {formats.tokens_short(size)} {name}" + (f" ({copies[name]} times)" if copies[name] > 1 else "")
        for name, size in sizes.most_common(LARGEST)
    ]
    return ["largest contents:", *rows] if rows else []


def _losses(session: SessionRow) -> list[str]:
    losses = [
        formats.count(session.compressions, "compaction") if session.compressions else "",
        f"{formats.tokens_short(session.evicted_tokens)} tokens removed" if session.evicted_tokens else "",
        f"{formats.count(session.regrets, 'removed block')} needed again" if session.regrets else "",
    ]
    text = ", ".join(loss for loss in losses if loss)
    return [f"removed so far: {text}"] if text else ["nothing was removed so far"]


def removal_lines(
    compressions: Sequence[ReportedCompression], lost: Sequence[str], removed: Sequence[BlockRow]
) -> list[str]:
    """Return the latest compactions, the facts that the last one lost, and the latest removed blocks."""
    if not compressions and not removed:
        return ["nothing was removed from the window"]
    lines = [_compression(one) for one in reversed(compressions)]
    if lost:
        lines += ["facts that the last one lost:", *(f"  {text}" for text in lost)]
    if removed:
        lines.append(
            "removed blocks, the latest first, of one turn the largest (id, content, tokens, turn, cause):"
        )
        lines += [removed_line(block) for block in removed]
    return lines


def _compression(one: ReportedCompression) -> str:
    before, after, subject = one.sizes
    facts = (
        f", {one.facts.damaged} of {one.facts.total} facts lost" if one.facts is not None else ", loss unknown"
    )
    outcome = "" if one.outcome == "accepted" else f" {one.outcome}"
    sizes = f"{subject} {formats.tokens_short(before)} to {formats.tokens_short(after)} tokens"
    return f"turn {one.turn}: {one.strategy}{outcome}, {sizes}{facts}"


def removed_line(block: BlockRow) -> str:
    """Return a removed block: `b12 tool result of Read: src/app.py, 3,210, turn 30, compression: reason`."""
    name = content_name(block.content_type, block.tool_name, block.target)
    cause = f"{block.removed_by}: {block.reason}" if block.reason else f"{block.removed_by}"
    again = "" if block.regretted_turn is None else f", needed again at turn {block.regretted_turn}"
    return f"  {block.block_id} {name}, {formats.tokens(block.tokens)}, turn {block.turn_removed}, {cause}{again}"


def match_lines(hit: TextHit, life: BlockLife) -> list[str]:
    """Return the latest block with a text that matches, whether it was removed, and the passage."""
    state = "in the window" if life.removal is None else f"removed at turn {life.removal.turn}"
    return [f"  {life.block.block_id} {block_name(life.block)}, {state}", f"    {hit.snippet.line}"]


_FATES: Final[dict[RuleFate, str]] = {
    "kept": "in the summary",
    "reworded": "in the summary, in other words",
    "restored": "put back after the compaction",
    "lost": "lost in the compaction",
    "contradicted": "changed in the compaction",
}


def rule_lines(rules: Sequence[Rule], visible: set[str], fates: Mapping[str, RuleFate]) -> list[str]:
    """Return the standing instructions of the user.

    *visible* are the ids of the blocks in the window, *fates* what became of the rules, by their wording, in the
    last compaction.
    """
    lines = []
    for rule in rules:
        state = _FATES[fates[rule.text]] if rule.text in fates else "removed"
        state = "in the window" if rule.block in visible else state
        lines.append(f"  {RULE_SOURCE_LABELS[rule.source]}, {state}: {rule.text}")
    return lines or ["the captured text of this session has no standing instructions"]


def block_lines(life: BlockLife) -> list[str]:
    """Return what a block is, and how it was used and removed."""
    return [
        f"{life.block.block_id}: {block_name(life.block)}",
        *(f"  turn {step.turn}: {step.text}" for step in life_steps(life)),
    ]
