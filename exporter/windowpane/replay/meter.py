"""Measures a replayed session call by call: what was sent, what had left, and what of that was needed.

Works on the blocks that each call sends, whoever chose them, so a managed window and a baseline are measured by
the same yardstick. Content is known by its digest: what was shortened, summarised, masked or dropped has left.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from windowpane.core.events import Usage
from windowpane.core.limits import TrackerSettings
from windowpane.core.protocols import Digester
from windowpane.core.vocabulary import STANDING_TYPES
from windowpane.core.window.blocks import Block
from windowpane.core.window.references import identifiers
from windowpane.fidelity.probe import evaluate
from windowpane.manager.levels import CACHE_READ_PRICE, CACHE_WRITE_PRICE
from windowpane.replay.history import RecordedCall, RecordedHistory, identity
from windowpane.replay.needs import CallNeeds, Need

REGRET_TURNS: Final = TrackerSettings().regret_turns
PROBED_RATIO: Final = 0.25
"""Fidelity is probed whenever content of this share of the limit has left."""
UNSAYING: Final = frozenset({"tool_call", "placeholder"})
"""A name in a call or a placeholder does not say what the removed content said of it."""

SUMMARIZED: Final = UNSAYING | {"summary"}
"""By the stricter reading a list of names in a summary says no more."""

Price = Callable[[Usage], float | None]
"""Dollars of one call; None when unknown."""


@dataclass(frozen=True, slots=True)
class Measures:
    """What one replay came to; tokens, dollars, ratios 0 to 1."""

    turns: int = 0
    """Calls."""
    overflows: int = 0
    """Calls that would have left no room for their output, so that a provider may refuse them."""
    tokens_sent: int = 0
    """Sum over the calls."""
    cached_tokens: int = 0
    """Of these, in a prefix that the call before sent as well."""
    cost_tokens: float = 0.0
    """What was sent, in tokens at the price of fresh input: cached 0.10, all else 1.25 for its cache write."""
    cost_dollars: float | None = None
    """Of what was sent by the model's list price; the replies are the recorded ones and cost the same."""
    evicted_blocks: int = 0
    """Blocks that a policy took out, or a baseline left out."""
    compressions: int = 0
    removed_tokens: int = 0
    """Of recorded content that a call no longer showed in full."""
    fidelity: float | None = None
    """Mean probe: share of the facts of what left that was still in sight; a handle counts nothing here."""
    compression_fidelity: float | None = None
    """Mean probe of the manager's own compressions; a handle counts half."""
    regrets: int = 0
    """Pieces of content that were needed within 20 turns after they left."""
    regretted_tokens: int = 0
    regret_ratio: float | None = None
    """Regretted tokens of all content tokens of the session, so that it cannot fall by removing more."""
    regret_ratio_unsummarized: float | None = None
    """The same where a name in a summary counts for nothing either: only content itself says what it said."""
    regret_ratio_with_oversized: float | None = None
    """The same with content counted that does not fit the window by itself, which no policy can keep in sight."""
    regretted_share: float | None = None
    """Regretted tokens of removed tokens."""
    regrets_by_match: dict[str, int] = field(default_factory=dict)
    peak_tokens: int = 0
    peak_utilization: float = 0.0


class _Regrets:
    """What has left, and what of it was needed while nothing but *unsaying* content named it.

    Content larger than *largest_tokens* is left out.
    """

    def __init__(self, unsaying: frozenset[str], largest_tokens: float) -> None:
        self._unsaying = unsaying
        self._largest_tokens = largest_tokens
        self.left: dict[str, int] = {}
        """Content that has left, and the call before which it did."""
        self.by_match: dict[str, int] = {}
        self.tokens = 0

    def judge(
        self,
        needs: Sequence[Need],
        blocks: Sequence[Block],
        number: int,
        *,
        names_of: Callable[[Block], frozenset[str]],
        tokens_of: Callable[[str], int],
    ) -> None:
        """Count what call *number* needs of what has left and *blocks* do not say."""
        shown: frozenset[str] | None = None
        for need in needs:
            left = self.left.get(need.content)
            if left is None or number - left > REGRET_TURNS or tokens_of(need.content) > self._largest_tokens:
                continue
            if need.match == "identifier":
                if shown is None:
                    saying = (b for b in blocks if b.text and b.content_type not in self._unsaying)
                    shown = frozenset().union(*map(names_of, saying))
                if all(name in shown for name in need.names):
                    continue
            del self.left[need.content]
            self.by_match[need.match] = self.by_match.get(need.match, 0) + 1
            self.tokens += tokens_of(need.content)


class Meter:
    """Adds up one replay; told of each call in order."""

    def __init__(
        self,
        history: RecordedHistory,
        needs: Sequence[CallNeeds],
        limit_tokens: int,
        fitting_tokens: int,
        *,
        largest_tokens: int,
        digest: Digester,
        price: Price | None = None,
        probe: bool = True,
    ) -> None:
        self._history = history
        self._needs = needs
        self._limit_tokens = limit_tokens
        self._fitting_tokens = fitting_tokens
        self._digest = digest
        self._price = price
        self._probe = probe
        self._names: dict[str, frozenset[str]] = {}
        self._originals: dict[str, Block] = {}
        self._visible: dict[str, None] = {}
        self._sent: list[str] = []
        self._regrets = _Regrets(UNSAYING, largest_tokens)
        self._stricter = _Regrets(SUMMARIZED, largest_tokens)
        self._oversized = _Regrets(UNSAYING, math.inf)
        self._readings = (self._regrets, self._stricter, self._oversized)
        self._unprobed: list[Block] = []
        self._unprobed_tokens = 0
        self._scores: list[tuple[float, int]] = []
        self._last: Sequence[Block] = ()
        self._dollars: float | None = 0.0 if price is not None else None
        self._totals: dict[str, int] = {}
        self._cost_tokens = 0.0
        self.timeline: list[int] = []
        """Tokens of each call."""

    @property
    def next_call(self) -> RecordedCall | None:
        """The recorded call that comes next; None after the last."""
        number = len(self.timeline)
        return self._history.calls[number] if number < len(self._history.calls) else None

    def sent(self, blocks: Sequence[Block]) -> None:
        """The next call sends *blocks*; then the recorded reply comes in."""
        number = len(self.timeline)
        call, needs = self._history.calls[number], self._needs[number]
        keys = [identity(block) for block in blocks]
        self._count(blocks, keys)
        self._judge(needs.returned, blocks, number)
        self._depart(call, keys, number)
        self._last = blocks
        if self._unprobed_tokens >= PROBED_RATIO * self._limit_tokens:
            self._probe_departed()
        self._judge(needs.used, blocks, number)

    def measures(self, *, evicted: int, compressions: int, compression_fidelity: float | None) -> Measures:
        """The sums, with what only the manager knows."""
        self._probe_departed()
        weight = sum(tokens for _, tokens in self._scores)
        removed, regretted = self._totals.get("removed", 0), self._regrets.tokens
        everything = self._history.tokens
        peak = max(self.timeline, default=0)
        return Measures(
            turns=len(self.timeline),
            overflows=self._totals.get("overflows", 0),
            tokens_sent=sum(self.timeline),
            cached_tokens=self._totals.get("cached", 0),
            cost_tokens=round(self._cost_tokens, 1),
            cost_dollars=None if self._dollars is None else round(self._dollars, 6),
            evicted_blocks=evicted,
            compressions=compressions,
            removed_tokens=removed,
            fidelity=sum(score * tokens for score, tokens in self._scores) / weight if weight else None,
            compression_fidelity=compression_fidelity,
            regrets=sum(self._regrets.by_match.values()),
            regretted_tokens=regretted,
            regret_ratio=regretted / everything if everything else None,
            regret_ratio_unsummarized=self._stricter.tokens / everything if everything else None,
            regret_ratio_with_oversized=self._oversized.tokens / everything if everything else None,
            regretted_share=regretted / removed if removed else None,
            regrets_by_match=dict(sorted(self._regrets.by_match.items())),
            peak_tokens=peak,
            peak_utilization=peak / self._limit_tokens,
        )

    def _add(self, what: str, number: int) -> None:
        self._totals[what] = self._totals.get(what, 0) + number

    def _count(self, blocks: Sequence[Block], keys: list[str]) -> None:
        total = sum(block.tokens for block in blocks)
        self.timeline.append(total)
        self._add("overflows", total > self._fitting_tokens)
        cached = 0
        for before, now, block in zip(self._sent, keys, blocks, strict=False):
            if before != now:
                break
            cached += block.tokens
        self._sent = keys
        self._add("cached", cached)
        fresh = total - cached
        self._cost_tokens += CACHE_READ_PRICE * cached + CACHE_WRITE_PRICE * fresh
        if self._price is not None and self._dollars is not None:
            dollars = self._price(Usage(input_tokens=fresh, cache_read_tokens=cached))
            self._dollars = None if dollars is None else self._dollars + dollars

    def _depart(self, call: RecordedCall, keys: Sequence[str], number: int) -> None:
        """What stood in the call before or came in since, and is not sent in full, has left."""
        if call.start == 0 and number:
            # A new window after a clear: what the user cleared was not removed by anyone else.
            self._visible, self._originals = {}, {}
            for regrets in self._readings:
                regrets.left.clear()
        visible = dict.fromkeys(keys)
        before = dict(self._visible)
        for block in call.arrived:
            key = identity(block)
            self._originals[key] = block
            before[key] = None
        for key in before:
            original = self._originals.get(key)
            if key in visible or original is None or original.content_type in STANDING_TYPES:
                continue
            for regrets in self._readings:
                regrets.left[key] = number
            self._add("removed", original.tokens)
            self._unprobed.append(original)
            self._unprobed_tokens += original.tokens
        for key in visible:
            for regrets in self._readings:
                regrets.left.pop(key, None)
        self._visible = {key: None for key in visible if key in self._originals}

    def _judge(self, needs: Sequence[Need], blocks: Sequence[Block], number: int) -> None:
        for regrets in self._readings:
            regrets.judge(needs, blocks, number, names_of=self._names_of, tokens_of=self._tokens_of)

    def _tokens_of(self, content: str) -> int:
        return self._originals[content].tokens

    def _names_of(self, block: Block) -> frozenset[str]:
        key = identity(block)
        known = self._names.get(key)
        if known is None:
            known = self._names[key] = frozenset(identifiers(block.text or ""))
        return known

    def _probe_departed(self) -> None:
        """How much of what left is still in sight, by the facts it stated."""
        removed, self._unprobed, self._unprobed_tokens = self._unprobed, [], 0
        if not removed or not self._probe:
            return
        score = evaluate(removed, self._last, digest=self._digest).score
        if score is not None:
            self._scores.append((score, sum(block.tokens for block in removed)))
