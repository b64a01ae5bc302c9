"""Measures of a replayed session, call by call: content sent, content removed, and removed content needed again.

The meter works on the blocks that each call sends, so a managed window and a baseline are measured alike. Content
is identified by its digest: content that was shortened, summarized, masked or dropped counts as removed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from windowpane.core.events import Usage
from windowpane.core.limits import REGRET_TURNS
from windowpane.core.protocols import Digester
from windowpane.core.vocabulary import STATIC_TYPES
from windowpane.core.window.blocks import Block
from windowpane.core.window.references import identifiers
from windowpane.evaluation.replay.history import CallNeeds, Need, RecordedCall, RecordedHistory, content_key
from windowpane.fidelity.facts import names_kept
from windowpane.fidelity.probe import MINIMUM_COVERAGE, coverage_of
from windowpane.manager.levels import CACHE_READ_PRICE, CACHE_WRITE_PRICE

PROBED_RATIO: Final = 0.25
"""Fidelity is probed whenever content of this share of the limit was removed."""
NAMING_ONLY: Final = frozenset({"tool_call", "placeholder"})
"""Types that mention a name without repeating the removed content about it."""

SUMMARIZED: Final = NAMING_ONLY | {"summary"}
"""By the stricter reading, a summary only mentions a name as well."""

Price = Callable[[Usage], float | None]
"""Dollars of one call; None when unknown."""


@dataclass(frozen=True, slots=True)
class Measures:
    """The measures of one replay; tokens, dollars, ratios 0 to 1."""

    turns: int = 0
    """Number of calls."""
    overflows: int = 0
    """Calls without enough room for their output, which a provider may refuse."""
    tokens_sent: int = 0
    """Sum over the calls."""
    cached_tokens: int = 0
    """Tokens of these in a prefix that the call before sent as well."""
    cost_tokens: float = 0.0
    """Tokens sent at the price of fresh input: cached ones 0.10, all others 1.25 for their cache write."""
    cost_dollars: float | None = None
    """List price of the tokens sent; the replies are the recorded ones and cost the same under every setup."""
    evicted_blocks: int = 0
    """Blocks that a policy evicted or a baseline omitted."""
    compressions: int = 0
    removed_tokens: int = 0
    """Tokens of recorded content that a call no longer sent in full."""
    fidelity: float | None = None
    """Mean probe: share of the facts of removed content that were still visible; a handle does not count."""
    compression_fidelity: float | None = None
    """Mean probe of the manager's compressions; a handle counts half."""
    regrets: int = 0
    """Pieces of content that were needed again within 20 turns of their removal."""
    regretted_tokens: int = 0
    regret_ratio: float | None = None
    """Regretted tokens / all content tokens of the session, so removing more cannot lower it."""
    regret_ratio_unsummarized: float | None = None
    """The same if a name in a summary does not count as visible either."""
    regret_ratio_with_oversized: float | None = None
    """The same including content that is larger than the window, which no policy can keep."""
    regretted_share: float | None = None
    """Regretted tokens / removed tokens."""
    regrets_by_match: dict[str, int] = field(default_factory=dict)
    peak_tokens: int = 0
    peak_utilization: float = 0.0


class _Regrets:
    """Removed content, and the part of it that was needed while only *naming_only* content mentioned it.

    Content larger than *largest_tokens* is not counted.
    """

    def __init__(self, naming_only: frozenset[str], largest_tokens: float) -> None:
        self._naming_only = naming_only
        self._largest_tokens = largest_tokens
        self.removed: dict[str, int] = {}
        """Removed content, and the number of the call before which it was removed."""
        self.by_match: dict[str, int] = {}
        self.tokens = 0

    def count(
        self,
        needs: Sequence[Need],
        blocks: Sequence[Block],
        number: int,
        *,
        names_of: Callable[[Block], frozenset[str]],
        tokens_of: Callable[[str], int],
    ) -> None:
        """Count removed content that call *number* needs and *blocks* do not contain."""
        visible: frozenset[str] | None = None
        for need in needs:
            removed_at = self.removed.get(need.content)
            if removed_at is None or number - removed_at > REGRET_TURNS:
                continue
            if need.changed_at >= removed_at:  # it was read for what changed
                continue
            if tokens_of(need.content) > self._largest_tokens:
                continue
            if need.match == "identifier":
                if visible is None:
                    texts = (b for b in blocks if b.text and b.content_type not in self._naming_only)
                    visible = frozenset().union(*map(names_of, texts))
                if all(name in visible for name in need.names):
                    continue
            del self.removed[need.content]
            self.by_match[need.match] = self.by_match.get(need.match, 0) + 1
            self.tokens += tokens_of(need.content)


@dataclass(frozen=True, slots=True)
class WindowSizes:
    """Sizes of the window that a replay is measured against, in tokens."""

    limit: int
    fitting: int
    """The most a call may send; more is an overflow."""
    largest: int
    """The largest content that a policy could keep; needing larger content again is not counted as a regret."""


class Meter:
    """Measures one replay; `sent` is called for each call in order."""

    def __init__(
        self,
        history: RecordedHistory,
        needs: Sequence[CallNeeds],
        sizes: WindowSizes,
        *,
        digest: Digester,
        price: Price | None = None,
        probe: bool = True,
    ) -> None:
        self._history = history
        self._needs = needs
        self._sizes = sizes
        self._digest = digest
        self._price = price
        self._probe = probe
        self._names: dict[str, frozenset[str]] = {}
        self._originals: dict[str, Block] = {}
        self._visible: dict[str, None] = {}
        self._sent: list[str] = []
        self._regrets = _Regrets(NAMING_ONLY, sizes.largest)
        self._stricter = _Regrets(SUMMARIZED, sizes.largest)
        self._oversized = _Regrets(NAMING_ONLY, math.inf)
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
        """The recorded call that is measured next; None after the last."""
        number = len(self.timeline)
        return self._history.calls[number] if number < len(self._history.calls) else None

    def sent(self, blocks: Sequence[Block]) -> None:
        """Measure the next call, which sends *blocks* and is followed by its recorded reply."""
        number = len(self.timeline)
        call, needs = self._history.calls[number], self._needs[number]
        keys = [content_key(block) for block in blocks]
        self._count_tokens(blocks, keys)
        self._count_regrets(needs.returned, blocks, number)
        self._remove(call, keys, number)
        self._last = blocks
        if self._unprobed_tokens >= PROBED_RATIO * self._sizes.limit:
            self._probe_removed()
        self._count_regrets(needs.used, blocks, number)

    def measures(self, *, evicted: int, compressions: int, compression_fidelity: float | None) -> Measures:
        """Return the measures, with the counts that only the manager knows."""
        self._probe_removed()
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
            fidelity=math.fsum(score * tokens for score, tokens in self._scores) / weight if weight else None,
            compression_fidelity=compression_fidelity,
            regrets=sum(self._regrets.by_match.values()),
            regretted_tokens=regretted,
            regret_ratio=regretted / everything if everything else None,
            regret_ratio_unsummarized=self._stricter.tokens / everything if everything else None,
            regret_ratio_with_oversized=self._oversized.tokens / everything if everything else None,
            regretted_share=regretted / removed if removed else None,
            regrets_by_match=dict(sorted(self._regrets.by_match.items())),
            peak_tokens=peak,
            peak_utilization=peak / self._sizes.limit,
        )

    def _add(self, name: str, number: int) -> None:
        self._totals[name] = self._totals.get(name, 0) + number

    def _count_tokens(self, blocks: Sequence[Block], keys: list[str]) -> None:
        total = sum(block.tokens for block in blocks)
        self.timeline.append(total)
        self._add("overflows", total > self._sizes.fitting)
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

    def _remove(self, call: RecordedCall, keys: Sequence[str], number: int) -> None:
        """Record content of the call before, or added since, that is not sent in full."""
        if call.start == 0 and number:
            # A new window after a clear: content that the user cleared was not removed by a policy.
            self._visible, self._originals = {}, {}
            for regrets in self._readings:
                regrets.removed.clear()
        visible = dict.fromkeys(keys)
        before = dict(self._visible)
        for block in call.arrived:
            key = content_key(block)
            self._originals[key] = block
            before[key] = None
        for key in before:
            original = self._originals.get(key)
            if key in visible or original is None or original.content_type in STATIC_TYPES:
                continue
            for regrets in self._readings:
                regrets.removed[key] = number
            self._add("removed", original.tokens)
            self._unprobed.append(original)
            self._unprobed_tokens += original.tokens
        for key in visible:
            for regrets in self._readings:
                regrets.removed.pop(key, None)
        self._visible = {key: None for key in visible if key in self._originals}

    def _count_regrets(self, needs: Sequence[Need], blocks: Sequence[Block], number: int) -> None:
        for regrets in self._readings:
            regrets.count(needs, blocks, number, names_of=self._names_of, tokens_of=self._tokens_of)

    def _tokens_of(self, content: str) -> int:
        return self._originals[content].tokens

    def _names_of(self, block: Block) -> frozenset[str]:
        key = content_key(block)
        names = self._names.get(key)
        if names is None:
            names = self._names[key] = frozenset(identifiers(block.text or ""))
        return names

    def _probe_removed(self) -> None:
        """Score how many of the names in the removed content are still visible."""
        removed, self._unprobed, self._unprobed_tokens = self._unprobed, [], 0
        if not removed or not self._probe:
            return
        score = names_kept(removed, self._last) if coverage_of(removed) >= MINIMUM_COVERAGE else None
        if score is not None:
            self._scores.append((score, sum(block.tokens for block in removed)))
