"""Findings: what a session spent on content that did it no good, each with dollars, evidence and a replay to try.

Rules are pure functions over rows that `read_evidence` reads in bounded reads; pages and reports only show their
results. The share of content in the cost of a call is its share of the call's tokens. A dollar belongs to one
finding: a cache break's are taken off the cost of its call, and what is stale, repeated or fetched again off that
of its tool, so that all findings together cost no more than the session.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Literal, TypeVar

from windowpane.alerts.rules import COMPACTION_TURNS
from windowpane.core.agents import CLAUDE_CODE, CLAUDE_CODE_AGENT, CODEX, CODEX_AGENT
from windowpane.core.events import CacheBroken, CallsCopied, ContentRegretted
from windowpane.core.limits import DEFAULT_LIFETIMES
from windowpane.core.times import is_live
from windowpane.core.tracking.prompt_cache import LONG_LIFETIME_SECONDS, SHORT_LIFETIME_SECONDS
from windowpane.core.vocabulary import CacheBreakCause
from windowpane.report.block_sizes import scaled_to
from windowpane.report.calls import new_input_dollars, sent_calls
from windowpane.store.filters import EventFilter
from windowpane.store.reads.project_reader import EventReader
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
HOUR_WRITE_SHARE: Final = (2.0 - 1.25) / (1.25 - 0.1)
"""Additional price of a token written to Anthropic's cache for an hour, over the price of one that a break sends
again: writing costs 1.25 (for five minutes) and 2 (for an hour) times the input, and reading 0.1 times."""
MAXIMUM_BLOCKS: Final = 5_000
"""Removed blocks that are read, the latest."""
UNKNOWN_WINDOW_TOKENS: Final = 200_000
_VENDORS_AGENTS: Final = frozenset(
    {
        CLAUDE_CODE, CLAUDE_CODE_AGENT, CODEX, CODEX_AGENT, "aider", "cline", "copilot-cli", "cursor",
        "gemini-cli", "goose", "opencode", "openhands", "qwen-code",
    }
)  # fmt: skip
"""Agents whose users have settings, and no hand in what a call sends."""

MAXIMUM_EVENTS: Final = 500
"""Cache breaks and regrets that are read, of each; their totals are in the session's row."""
Payload = TypeVar("Payload", CacheBroken, CallsCopied, ContentRegretted)


@dataclass(frozen=True, slots=True)
class Evidence:
    """A turn, and a block in it, that shows a finding."""

    turn: int
    text: str
    block_id: str | None = None


@dataclass(frozen=True, slots=True)
class Trial:
    """A replay that shows what would change: policies in a window, compared with compaction alone."""

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
    trial: Trial | None
    """None for cache breaks, which removing content does not avoid."""


@dataclass(frozen=True)
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
    blocks: Sequence[BlockRow] = ()
    """Every block, in the window or removed, as far as they are read."""
    copied: Sequence[tuple[int, CallsCopied]] = ()
    """Turns whose calls another session counts."""
    is_live: bool = False

    @property
    def counted_turns(self) -> Sequence[TurnRow]:
        """The turns whose calls this session counts; its cost is theirs."""
        return [row for row in self.turns if not any(data.covers(row.turn) for _, data in self.copied)]

    @property
    def calls(self) -> Sequence[TurnRow]:
        """The calls that count as sent."""
        return sent_calls(self.turns)

    @property
    def is_own(self) -> bool:
        """True if the agent is the user's own program, and not that of a vendor with settings."""
        return self.session.agent not in _VENDORS_AGENTS

    @cached_property
    def cost_dollars(self) -> float | None:
        """Cost of all calls; None without any price."""
        if self.session.cost_dollars is not None:
            return self.session.cost_dollars
        paid = [turn.cost_dollars for turn in self.turns if turn.cost_dollars is not None]
        return math.fsum(paid) if paid else None

    @cached_property
    def remaining_dollars(self) -> dict[int, float]:
        """Cost of each call with a price, without that of its cache break."""
        lost: defaultdict[int, float] = defaultdict(float)
        for turn, broken in self.breaks:
            lost[turn] += broken.dollars or 0.0
        return {
            turn.turn: max(0.0, turn.cost_dollars - lost[turn.turn])
            for turn in self.turns
            if turn.cost_dollars is not None
        }

    @cached_property
    def useless_tokens(self) -> dict[int, int]:
        """Stale tokens of each call without those of blocks that were used again later."""
        dead = _dead_tokens(self.blocks, self.turns)
        return {turn.turn: min(turn.stale_tokens, dead.get(turn.turn, 0)) for turn in self.turns}

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
    """Return what every rule finds, the most expensive first; together they cost no more than the session."""
    remaining = math.inf if evidence.cost_dollars is None else evidence.cost_dollars
    unsorted = []
    for rule in _RULES:
        for finding in rule(evidence):
            if finding.dollars is not None and finding.dollars > remaining:
                finding = replace(finding, dollars=remaining)  # noqa: PLW2901
            remaining -= finding.dollars or 0.0
            unsorted.append(finding)
    return tuple(sorted(unsorted, key=lambda finding: -(finding.dollars or 0.0)))


def _cache_breaks(data: SessionEvidence) -> Iterator[Finding]:
    lost = data.session.cache_break_dollars
    if not data.session.cache_breaks or (lost is not None and lost < CACHE_BREAK_DOLLARS):
        return
    causes = Counter(broken.cause for _, broken in data.breaks)
    worst = sorted(data.breaks, key=lambda item: -(item[1].dollars or item[1].rewritten_tokens))[:EVIDENCE]
    cause = causes.most_common(1)[0][0] if causes else "unknown"
    main = "" if cause == "unknown" else f", most often because {CACHE_BREAK_LABELS[cause]}"
    yield Finding(
        "cache_breaks",
        f"{count(data.session.cache_breaks, 'call')} sent {tokens_short(data.session.cache_break_tokens)} cached "
        f"tokens again{main}",
        _cache_advice(data, cause),
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
        None,
    )


def _cache_advice(data: SessionEvidence, cause: CacheBreakCause) -> str:
    """Return what would have avoided most breaks, by what the user of this agent can change."""
    if cause == "expired":
        return _expiry_advice(data)
    if cause == "model":
        return "Change the model only where a window starts: each model has another cache."
    if cause == "unknown":
        return "Most often nothing that was recorded had changed before, so the cause is unknown."
    if data.is_own:
        return "Keep what was sent unchanged and in order; look for settings that change between calls."
    return (
        "Connect MCP servers and change settings before the first prompt: both can change the start of each call."
    )


def _expiry_advice(data: SessionEvidence) -> str:
    """Replay the pauses between the calls with the cache of an hour."""
    expired = [broken for _, broken in data.breaks if broken.cause == "expired"]
    if any(broken.lifetime_seconds == LONG_LIFETIME_SECONDS for broken in expired):
        return "It has the one-hour cache: compact or start anew before a pause of more than an hour."
    avoided = [
        broken
        for broken in expired
        if broken.lifetime_seconds == SHORT_LIFETIME_SECONDS
        and (broken.idle_seconds or 0) <= LONG_LIFETIME_SECONDS
    ]
    priced = [broken for broken in avoided if broken.dollars is not None]
    pause = "compact or start anew before a pause of more than five minutes"
    if not priced:
        return "Compact or start anew before a long pause: the next call sends the whole window as new input."
    saved = math.fsum(broken.dollars or 0.0 for broken in priced)
    rewritten = sum(broken.rewritten_tokens for broken in priced)
    written = sum(turn.cache_write_tokens or 0 for turn in data.turns) - rewritten
    net = saved - HOUR_WRITE_SHARE * saved / rewritten * max(0, written)
    if net <= 0:
        return f"The one-hour cache would have cost {dollars(-net)} more; {pause}."
    how = {CLAUDE_CODE: "ENABLE_PROMPT_CACHING_1H=1, from 2.1.108"}.get(data.session.agent)
    if how is None and data.is_own:
        how = '"ttl": "1h" in `cache_control`'
    if how is None:
        return f"{pause[:1].upper()}{pause[1:]}."
    return f"The one-hour cache ({how}) would have saved {dollars(net)} at these pauses."


def _dead_tokens(blocks: Sequence[BlockRow], turns: Sequence[TurnRow]) -> Counter[int]:
    """Return the tokens in each turn's window that were past their lifetime and never used again.

    A block is used where later content refers to it, and where a later call names its file or command.
    """
    if not turns:
        return Counter()
    last = turns[-1].turn
    last_calls: dict[str, int] = {}
    for block in blocks:
        if block.target and block.content_type == "tool_call":
            last_calls[block.target] = max(last_calls.get(block.target, 0), block.turn_added)
    change: Counter[int] = Counter()
    for block in blocks:
        lifetime = DEFAULT_LIFETIMES.get(block.content_type)
        if lifetime is None:
            continue
        added = block.turn_added
        used = max(added, block.last_referenced or added, last_calls.get(block.target or "", added))
        start, end = used + lifetime + 1, last + 1 if block.turn_removed is None else block.turn_removed
        if start < end:
            change[start] += block.tokens
            change[end] -= block.tokens
    dead: Counter[int] = Counter()
    tokens_now, first = 0, min(change, default=0)
    for turn in range(first, last + 1):
        tokens_now += change[turn]
        dead[turn] = tokens_now
    return dead


def _stale(data: SessionEvidence) -> Iterator[Finding]:
    again = _Resent.of(data, lambda turn: data.useless_tokens[turn.turn])
    if again is not None and again.share >= STALE_SHARE:
        yield Finding(
            "stale",
            f"{again.text} was old and not used again",
            "Remove by age and use; the replay shows what that saves."
            if data.is_own
            else "Compact or start anew between tasks.",
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
            "Merge repeated reads, or have the agent refer to what it has."
            if data.is_own
            else "Ask the agent to refer to what it has read.",
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
            _share_of_cost(data, calls, tokens_of),
            Evidence(worst.turn, f"{tokens(tokens_of(worst))} tokens"),
        )


def _share_of_cost(
    data: SessionEvidence, turns: Sequence[TurnRow], tokens_of: Callable[[TurnRow], int]
) -> float | None:
    """Return the share of each call's cost that *tokens_of* of its tokens have; None without any price."""
    remaining = data.remaining_dollars
    priced = [turn for turn in turns if turn.turn in remaining and turn.used_final]
    if not priced:
        return None
    return math.fsum(remaining[turn.turn] * min(1.0, tokens_of(turn) / (turn.used_final or 1)) for turn in priced)


def _tool_flood(data: SessionEvidence) -> Iterator[Finding]:
    """Find a tool that fills the window, without what may be stale or repeated of it."""
    sent = data.sent_tokens
    by_tool: Counter[str] = Counter()
    for use in data.uses:
        by_tool[use.tool] += use.carried_tokens
    if not sent or not by_tool:
        return
    tool, carried = by_tool.most_common(1)[0]
    others = {one.kind: one for rule in (_stale, _duplicates, _lost_content) for one in rule(data)}
    claimed = 0
    if "stale" in others:
        claimed += sum(data.useless_tokens[turn.turn] for turn in data.calls)
    if "duplicates" in others:
        claimed += sum(turn.duplicate_tokens for turn in data.calls)
    carried -= claimed
    if carried / sent < FLOOD_SHARE:
        return
    uses = [use for use in data.uses if use.tool == tool]
    paid = [use.dollars for use in uses if use.dollars is not None]
    unbroken = 1.0
    if data.cost_dollars:
        unbroken = min(1.0, math.fsum(data.remaining_dollars.values()) / data.cost_dollars)
    price = math.fsum(paid) * unbroken - math.fsum(one.dollars or 0.0 for one in others.values())
    besides = ", without what was old or there twice" if claimed else ""
    largest = max(uses, key=lambda use: use.carried_tokens)
    name = f"{tool} {largest.target}".strip()
    peak = max(data.turns, key=lambda turn: turn.components.get("tool_results", 0))
    yield Finding(
        "tool_flood",
        f"{tool} filled {percent(min(1.0, carried / sent))} of what all calls sent{besides}",
        "Cap its output, or have it return a part.",
        max(0.0, price) if paid else None,
        (Evidence(peak.turn, f"{name}: {tokens_short(largest.carried_tokens)} tokens over all calls"),),
        data.trial("type_based", "hybrid"),
    )


def _unused_tools(data: SessionEvidence) -> Iterator[Finding]:
    called = {use.tool for use in data.uses}
    definitions = _measured_definitions(data)
    unused = [block for block in definitions if block.tool_name and block.tool_name not in called]
    size, sent = sum(block.tokens for block in unused), data.sent_tokens
    if not sent or not called or size * len(data.calls) / sent < UNUSED_SHARE:
        return
    largest = sorted(unused, key=lambda block: -block.tokens)[:EVIDENCE]
    yield Finding(
        "unused_tools",
        f"Every call sent the {tokens(size)} tokens of {count(len(unused), 'tool definition')}, and no call used "
        f"{'the tool' if len(unused) == 1 else 'these tools'}",
        "Offer only the tools that the task needs, from the start."
        if data.is_own
        else "Disconnect the MCP servers that the task does not need.",
        _share_of_cost(data, data.calls, lambda _turn: size),
        tuple(
            Evidence(data.turns[-1].turn, f"{block.tool_name}: {tokens(block.tokens)} tokens", block.block_id)
            for block in largest
        ),
        data.trial("hybrid"),
    )


def _measured_definitions(data: SessionEvidence) -> list[BlockRow]:
    """Return the tool definitions with the sizes that the last call's composition has for them."""
    last = next((turn for turn in reversed(data.turns) if turn.components), None)
    measured = None if last is None else last.components.get("tool_definitions")
    counted = [block.tokens for block in data.definitions]
    if not measured or not any(counted):
        return list(data.definitions)
    sizes = scaled_to(counted, measured)
    return [replace(block, tokens=size) for block, size in zip(data.definitions, sizes, strict=True)]


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
    fetched: Counter[int] = Counter()
    for number, regret in again:
        fetched[number] += regret.tokens
    largest = sorted(again, key=lambda item: -item[1].tokens)[:EVIDENCE]
    yield Finding(
        "lost_content",
        f"Compactions removed {count(len(again), 'item')} that the agent needed again "
        f"({tokens_short(sum(regret.tokens for _, regret in again))} tokens)",
        "Pin what is used again, or compact older content first."
        if data.is_own
        else "Name what must survive in the instructions of the compaction.",
        _sent_anew(data, fetched),
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


def _sent_anew(data: SessionEvidence, fetched: Mapping[int, int]) -> float | None:
    """Return what fetched tokens cost in the calls that first sent them; None without any price."""
    remaining, costs = data.remaining_dollars, list[float]()
    for turn in data.turns:
        cost = new_input_dollars(turn, fetched[turn.turn]) if fetched.get(turn.turn) else None
        if cost is not None:
            costs.append(min(cost, remaining[turn.turn]))
    return math.fsum(costs) if costs else None


_RULES: Final[tuple[Callable[[SessionEvidence], Iterator[Finding]], ...]] = (
    _cache_breaks, _unused_tools, _duplicates, _stale, _lost_content, _tool_flood, _compaction_soon,
)  # fmt: skip
"""The rules in the order in which they claim a share: those that measure it most exactly first."""


def read_evidence(
    store: EventReader, session: SessionRow, turns: Sequence[TurnRow], *, now: float | None = None
) -> SessionEvidence:
    """Read the evidence about *session*; without *now* it counts as recorded, not live."""
    last = turns[-1].turn if turns else 0
    window = store.blocks_at(session.session_id, last)
    is_stale = any(turn.stale_tokens for turn in turns)
    return SessionEvidence(
        session,
        turns,
        store.tool_use(session.session_id),
        _read(store, session, CacheBroken) if session.cache_breaks else (),
        _read(store, session, ContentRegretted) if session.regrets else (),
        [block for block in window if block.content_type == "tool_definition"],
        [*window, *store.removed_blocks(session.session_id, last, limit=MAXIMUM_BLOCKS)] if is_stale else (),
        _read(store, session, CallsCopied) if session.copied_turns else (),
        is_live=now is not None and is_live(session, now),
    )


def _read(store: EventReader, session: SessionRow, kind: type[Payload]) -> list[tuple[int, Payload]]:
    query = EventFilter(session_id=session.session_id, types=(kind.type,), limit=MAXIMUM_EVENTS)
    events = intact_events(store.events_or_damage(query))
    return [(one.event.context.turn, data) for one in events if isinstance(data := one.event.data, kind)]
