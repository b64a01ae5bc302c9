"""Findings: what a session spent on content that did it no good, each with dollars, evidence and a replay to try.

Rules are pure functions over rows that `read_evidence` reads in bounded reads; pages and reports only show their
results. The share of content in the cost of a call is its share of the call's tokens.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

from windowpane.alerts.rules import COMPACTION_TURNS
from windowpane.core.events import CacheBroken, ContentRegretted
from windowpane.core.times import is_live
from windowpane.report.calls import sent_calls
from windowpane.store.interface import EventFilter, EventReader
from windowpane.store.records import BlockRow, SessionRow, ToolUse, TurnRow, intact_events
from windowpane.text.events import regretted_name
from windowpane.text.formats import count, dollars, percent, tokens, tokens_short
from windowpane.text.labels import CACHE_BREAK_LABELS

FindingKind = Literal[
    "cache_breaks", "stale", "duplicates", "tool_flood", "unused_tools", "compaction_soon", "lost_content"
]

STALE_SHARE: Final = 0.10
DUPLICATE_SHARE: Final = 0.03
FLOOD_SHARE: Final = 0.25
UNUSED_SHARE: Final = 0.02
"""Shares of all tokens sent from which on the content is worth a finding."""
CACHE_BREAK_DOLLARS: Final = 0.05
LOST_TOKENS: Final = 1_000
BLIND_POLICY: Final = "type_based"
"""A policy that can be replayed where content was not captured."""
EVIDENCE: Final = 3
"""Places that a finding links to."""
UNKNOWN_WINDOW_TOKENS: Final = 200_000

MAXIMUM_EVENTS: Final = 500
"""Cache breaks and regrets that are read, of each; their totals are in the session's row."""
Payload = TypeVar("Payload", CacheBroken, ContentRegretted)


@dataclass(frozen=True, slots=True)
class Evidence:
    """A turn, and a block in it, that shows a finding."""

    turn: int
    text: str
    block_id: str | None = None


@dataclass(frozen=True, slots=True)
class Trial:
    """A replay that shows what would change: policies in a window, compared with the session as recorded."""

    policies: tuple[str, ...]
    window_tokens: int


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing about a session that is worth money or information."""

    kind: FindingKind
    text: str
    advice: str
    dollars: float | None
    """Its price; None where no price is known or nothing has been lost yet."""
    evidence: tuple[Evidence, ...]
    trial: Trial


@dataclass(frozen=True, slots=True)
class SessionEvidence:
    """The rows that the rules read."""

    session: SessionRow
    turns: Sequence[TurnRow]
    uses: Sequence[ToolUse] = ()
    breaks: Sequence[tuple[int, CacheBroken]] = ()
    """Cache breaks with their turns."""
    regrets: Sequence[tuple[int, ContentRegretted]] = ()
    """Regrets with their turns."""
    definitions: Sequence[BlockRow] = ()
    """Tool definitions in the last window."""
    is_live: bool = False

    @property
    def calls(self) -> Sequence[TurnRow]:
        """The calls that count as sent."""
        return sent_calls(self.turns)

    @property
    def sent_tokens(self) -> int:
        """Tokens that the calls sent."""
        return sum(turn.used_final or 0 for turn in self.calls)

    def trial(self, *policies: str) -> Trial:
        """Return a replay in the session's own window; one policy needs no captured content."""
        return Trial(
            tuple(dict.fromkeys((*policies, BLIND_POLICY))), self.session.limit_tokens or UNKNOWN_WINDOW_TOKENS
        )


def findings(evidence: SessionEvidence) -> tuple[Finding, ...]:
    """Return what every rule finds, the most expensive first."""
    unsorted = [finding for rule in _RULES for finding in rule(evidence)]
    return tuple(sorted(unsorted, key=lambda finding: -(finding.dollars or 0.0)))


def _cache_breaks(data: SessionEvidence) -> Iterator[Finding]:
    lost = data.session.cache_break_dollars
    if not data.session.cache_breaks or (lost is not None and lost < CACHE_BREAK_DOLLARS):
        return
    causes = Counter(broken.cause for _, broken in data.breaks)
    worst = sorted(data.breaks, key=lambda item: -(item[1].dollars or item[1].rewritten_tokens))[:EVIDENCE]
    main = f", most often because {CACHE_BREAK_LABELS[causes.most_common(1)[0][0]]}" if causes else ""
    yield Finding(
        "cache_breaks",
        f"{count(data.session.cache_breaks, 'call')} sent {tokens_short(data.session.cache_break_tokens)} cached "
        f"tokens again{main}",
        "Use the one-hour cache where pauses are usual."
        if causes and causes.most_common(1)[0][0] == "expired"
        else "Keep what was sent unchanged and in order; look for settings that change between calls.",
        lost,
        tuple(
            Evidence(
                turn,
                f"{tokens_short(broken.rewritten_tokens)} tokens again ({dollars(broken.dollars)}): "
                f"{CACHE_BREAK_LABELS[broken.cause]}",
                broken.block_id,
            )
            for turn, broken in worst
        ),
        data.trial("hybrid"),
    )


def _stale(data: SessionEvidence) -> Iterator[Finding]:
    again = _Resent.of(data, lambda turn: turn.stale_tokens)
    if again is not None and again.share >= STALE_SHARE:
        yield Finding(
            "stale",
            f"{again.text} was stale: not referenced for the lifetime of its type",
            "Evict by age and use; the replay shows what that saves.",
            again.dollars,
            (again.worst,),
            data.trial("hybrid", "type_based", "lru"),
        )


def _duplicates(data: SessionEvidence) -> Iterator[Finding]:
    again = _Resent.of(data, lambda turn: turn.duplicate_tokens)
    if again is not None and again.share >= DUPLICATE_SHARE:
        yield Finding(
            "duplicates",
            f"{again.text} was there twice: the same content was read again",
            "Merge repeated reads, or have the agent refer to what it has.",
            again.dollars,
            (again.worst,),
            data.trial("semantic_merge", "hybrid"),
        )


@dataclass(frozen=True, slots=True)
class _Resent:
    """Content that calls sent again although it was of no use."""

    share: float
    text: str
    dollars: float | None
    worst: Evidence

    @classmethod
    def of(cls, data: SessionEvidence, tokens_of: Callable[[TurnRow], int]) -> _Resent | None:
        """Sum *tokens_of* over the turns; None where nothing was sent."""
        sent = data.sent_tokens
        if not sent:
            return None
        calls = data.calls
        share = sum(map(tokens_of, calls)) / sent
        worst = max(calls, key=tokens_of)
        return cls(
            share,
            f"{percent(share)} of the {tokens_short(sent, estimated=calls[0].input_tokens is None)} tokens that "
            "all calls sent",
            _share_of_cost(calls, tokens_of),
            Evidence(worst.turn, f"{tokens(tokens_of(worst))} tokens"),
        )


def _share_of_cost(turns: Sequence[TurnRow], tokens_of: Callable[[TurnRow], int]) -> float | None:
    """Return the share of each call's cost that *tokens_of* of its tokens have; None without any price."""
    priced = [turn for turn in turns if turn.cost_dollars is not None and turn.used_final]
    if not priced:
        return None
    return math.fsum(
        (turn.cost_dollars or 0.0) * min(1.0, tokens_of(turn) / (turn.used_final or 1)) for turn in priced
    )


def _tool_flood(data: SessionEvidence) -> Iterator[Finding]:
    sent = data.sent_tokens
    by_tool: Counter[str] = Counter()
    for use in data.uses:
        by_tool[use.tool] += use.carried_tokens
    if not sent or not by_tool or by_tool.most_common(1)[0][1] / sent < FLOOD_SHARE:
        return
    tool, carried = by_tool.most_common(1)[0]
    uses = [use for use in data.uses if use.tool == tool]
    paid = [use.dollars for use in uses if use.dollars is not None]
    largest = max(uses, key=lambda use: use.carried_tokens)
    name = f"{tool} {largest.target}".strip()
    peak = max(data.turns, key=lambda turn: turn.components.get("tool_results", 0))
    yield Finding(
        "tool_flood",
        f"{tool} filled {percent(min(1.0, carried / sent))} of what all calls sent",
        "Cap its output, or have it return a part.",
        math.fsum(paid) if paid else None,
        (Evidence(peak.turn, f"{name}: {tokens_short(largest.carried_tokens)} tokens over all calls"),),
        data.trial("type_based", "hybrid"),
    )


def _unused_tools(data: SessionEvidence) -> Iterator[Finding]:
    called = {use.tool for use in data.uses}
    unused = [block for block in data.definitions if block.tool_name and block.tool_name not in called]
    size, sent = sum(block.tokens for block in unused), data.sent_tokens
    if not sent or not called or size * len(data.calls) / sent < UNUSED_SHARE:
        return
    largest = sorted(unused, key=lambda block: -block.tokens)[:EVIDENCE]
    yield Finding(
        "unused_tools",
        f"Every call sent the {tokens(size)} tokens of {count(len(unused), 'tool definition')}, and no call used "
        f"{'the tool' if len(unused) == 1 else 'these tools'}",
        "Offer only the tools that the task needs, from the start.",
        _share_of_cost(data.turns, lambda _turn: size),
        tuple(
            Evidence(data.turns[-1].turn, f"{block.tool_name}: {tokens(block.tokens)} tokens", block.block_id)
            for block in largest
        ),
        data.trial("hybrid"),
    )


def _compaction_soon(data: SessionEvidence) -> Iterator[Finding]:
    turns = data.session.turns_until_compaction
    if not data.is_live or turns is None or turns > COMPACTION_TURNS or not data.turns:
        return
    yield Finding(
        "compaction_soon",
        f"The agent compacts in about {count(max(0, round(turns)), 'turn')}, at "
        f"{tokens(data.session.compaction_tokens)} tokens",
        "Have it note what must survive, or compact now with instructions.",
        None,
        (Evidence(data.turns[-1].turn, f"{tokens(data.session.used_tokens)} tokens used"),),
        data.trial("hybrid"),
    )


def _lost_content(data: SessionEvidence) -> Iterator[Finding]:
    again = [(turn, regret) for turn, regret in data.regrets if regret.cause == "compression"]
    if sum(regret.tokens for _, regret in again) < LOST_TOKENS:
        return
    by_turn = {turn.turn: turn for turn in data.turns}
    paid = []
    for number, regret in again:
        turn = by_turn.get(number)
        if turn is not None and turn.cost_dollars is not None and turn.used_final:
            paid.append(turn.cost_dollars * min(1.0, regret.tokens / turn.used_final))
    largest = sorted(again, key=lambda item: -item[1].tokens)[:EVIDENCE]
    yield Finding(
        "lost_content",
        f"Compressions lost {count(len(again), 'block')} that the agent fetched again "
        f"({tokens_short(sum(regret.tokens for _, regret in again))} tokens)",
        "Pin what is used again, or compress older content first.",
        math.fsum(paid) if paid else None,
        tuple(
            Evidence(
                turn,
                f"{regretted_name(regret)}: removed at turn {regret.turn_left}, again at turn {turn}: "
                f"{tokens(regret.tokens)} tokens",
                regret.by,
            )
            for turn, regret in largest
        ),
        data.trial("hybrid", "priority"),
    )  # fmt: skip


_RULES: Final[tuple[Callable[[SessionEvidence], Iterator[Finding]], ...]] = (
    _cache_breaks, _stale, _duplicates, _tool_flood, _unused_tools, _compaction_soon, _lost_content,
)  # fmt: skip


def read_evidence(
    store: EventReader, session: SessionRow, turns: Sequence[TurnRow], *, now: float | None = None
) -> SessionEvidence:
    """Read the evidence about *session*; without *now* it counts as recorded, not live."""
    last = turns[-1].turn if turns else 0
    return SessionEvidence(
        session,
        turns,
        store.tool_use(session.session_id),
        _read(store, session, CacheBroken) if session.cache_breaks else (),
        _read(store, session, ContentRegretted) if session.regrets else (),
        [block for block in store.blocks_at(session.session_id, last) if block.content_type == "tool_definition"],
        is_live=now is not None and is_live(session, now),
    )


def _read(store: EventReader, session: SessionRow, kind: type[Payload]) -> list[tuple[int, Payload]]:
    query = EventFilter(session_id=session.session_id, types=(kind.type,), limit=MAXIMUM_EVENTS)
    events = intact_events(store.events_or_damage(query))
    return [(one.event.context.turn, data) for one in events if isinstance(data := one.event.data, kind)]
