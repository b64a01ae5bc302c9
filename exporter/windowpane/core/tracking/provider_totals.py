"""The provider's totals of a session's calls: two in a row show a compaction, or a removal without a record."""

from __future__ import annotations

from typing import Final, NamedTuple

from windowpane.core.events import BlocksEvicted, CompactionMeasured
from windowpane.core.limits import WindowLimits
from windowpane.core.vocabulary import UNKNOWN_CAUSE

DROP_RATIO: Final = 0.10
DROP_TOKENS: Final = 2_000
"""A total that is lower by more than this, and by more than `DROP_RATIO` of the last one, shows a removal."""


class _Compaction(NamedTuple):
    event_id: str
    tokens_before: int
    stated: bool
    """The size before is what the agent stated: no call precedes the compaction."""
    limits: WindowLimits | None


class ProviderTotals:
    """The last total, and the removals recorded since."""

    def __init__(self) -> None:
        self._last: int | None = None
        self._model = ""
        self._is_reduced = False
        self._compaction: _Compaction | None = None

    def record_removal(self) -> None:
        """Record that content was removed: it explains a lower total of the next call."""
        self._is_reduced = True

    def record_rewind(self) -> None:
        """Record that the conversation went back: the next total measures no compaction before it."""
        self._is_reduced, self._compaction = True, None

    def record_compaction(self, event_id: str, *, stated_tokens: int | None, limits: WindowLimits | None) -> None:
        """Record a compaction, to be measured by the next total; *stated_tokens* is the agent's own count."""
        self._is_reduced = True
        before = self._last if self._last is not None else stated_tokens
        if before is not None and self._compaction is None:
            self._compaction = _Compaction(event_id, before, self._last is None, limits)
        elif self._compaction is not None:
            self._compaction = self._compaction._replace(event_id=event_id)

    def correct_limits(self, before: int | None, limits: WindowLimits) -> None:
        """Measure a compaction under the limit *before*, which never was, by the true limits."""
        compaction = self._compaction
        if compaction is not None and (compaction.limits and compaction.limits.limit_tokens) == before:
            self._compaction = compaction._replace(limits=limits)

    def restart(self) -> None:
        """Continue with an empty window."""
        self._last, self._is_reduced, self._compaction = None, False, None

    def add(self, total: int, model: str) -> CompactionMeasured | BlocksEvicted | None:
        """Add the total of a call; return the compaction that it measures, or the removal that only it shows."""
        last, compaction = self._last, self._compaction
        explained = self._is_reduced or model != self._model
        self._last, self._model, self._is_reduced, self._compaction = total, model, False, None
        if compaction is not None:
            return _measured(compaction, total)
        if last is None or explained or last - total <= max(DROP_TOKENS, DROP_RATIO * last):
            return None
        removed = last - total
        return BlocksEvicted(UNKNOWN_CAUSE, (), removed, removed)


def _measured(compaction: _Compaction, total: int) -> CompactionMeasured:
    before, limits = compaction.tokens_before, compaction.limits
    return CompactionMeasured(
        compaction.event_id,
        before,
        total,
        "reported" if compaction.stated else "usage",
        None if limits is None else limits.limit_tokens,
        None if limits is None else limits.zone_of(before, previous="green"),
    )
