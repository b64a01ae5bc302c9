"""Used tokens of the window: the provider's last total, the reply, and a calibrated estimate of the rest.

Two totals in a row show the change between them: a compaction, or content that was removed without a record.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from windowpane.core.events import BlocksEvicted, CompactionMeasured
from windowpane.core.limits import WindowLimits
from windowpane.core.vocabulary import COMPONENTS, UNKNOWN_CAUSE, Component

CALIBRATION_RATE: Final = 0.2
"""Weight of the newest observation in the moving average of the calibration."""
CALIBRATION_RANGE: Final = (0.5, 2.0)
"""No tokenizer is off by more: a difference outside of it, times the count, has another cause."""
CALIBRATION_MINIMUM_TOKENS: Final = 200
"""Smaller differences are mostly rounding and do not change the calibration."""
PLACEHOLDER_RATIO: Final = 0.5
"""A reported output below this share of the visible reply is a placeholder of a recording, not a count."""

DROP_RATIO: Final = 0.10
DROP_TOKENS: Final = 2_000
"""A total that is lower by more than this, and by more than `DROP_RATIO` of the last one, shows a removal."""


class TotalReport(NamedTuple):
    """The comparison of a provider's total with what was counted here."""

    error: float | None = None
    """Signed relative error of the estimate; None for the first total."""
    unseen_tokens: int = 0
    """Tokens added since the last call (negative: removed) that no visible content explains."""


class TokenAccount:
    """The anchor (the provider's last total and the reply to it) and the calibration of our counts against it.

    Counts are corrected by differences between calls, never by totals: content that a total includes but
    a transcript does not record, such as a system prompt, is the caller's `unattributed` block.
    """

    def __init__(self) -> None:
        self.calibration = 1.0
        """Provider tokens per token counted here, 0.5 to 2.0."""
        self._anchor: int | None = None
        self._anchor_raw = 0
        self._call: tuple[int, int] | None = None
        """The last call's total, and the count of its content; None if it cannot be compared with the next."""
        self._removed_raw = 0
        """Tokens removed since the last call."""

    @property
    def anchored(self) -> bool:
        """True once the provider has reported a total for this window."""
        return self._anchor is not None

    def used(self, raw_tokens: int) -> int:
        """Return the tokens that the next call would send, given the sum of the window's blocks."""
        if self._anchor is None:
            return raw_tokens
        return max(0, round(self._anchor + self.calibration * (raw_tokens - self._anchor_raw)))

    def report(self, total_tokens: int, raw_tokens: int) -> TotalReport:
        """Set the anchor to the provider's total of a call that sent blocks summing to *raw_tokens*."""
        error, unseen = None, 0
        if self._anchor is not None and total_tokens > 0:
            error = (self.used(raw_tokens) - total_tokens) / total_tokens
            if self._call is not None:
                unseen = self._compare(total_tokens, raw_tokens, *self._call)
        self._anchor, self._anchor_raw, self._removed_raw = total_tokens, raw_tokens, 0
        self._call = total_tokens, raw_tokens
        return TotalReport(error, unseen)

    def add_reply(self, tokens: int, raw_tokens: int) -> None:
        """Count the reply, of which the next call sends *tokens*, instead of estimating it from its blocks."""
        if self._anchor is not None:
            self._anchor += tokens
            self._anchor_raw += raw_tokens

    def rebase(self, total_tokens: int | None, raw_tokens: int) -> None:
        """Set the anchor after a reduction of a known size; the next total is not compared with the last."""
        if total_tokens is not None:
            self._anchor, self._anchor_raw = total_tokens, raw_tokens
        self._call = None

    def shift(self, raw_tokens: int) -> None:
        """Count *raw_tokens* of new blocks that the anchor already includes (the unattributed remainder)."""
        self._anchor_raw += raw_tokens
        if self._call is not None:
            self._call = self._call[0], self._call[1] + raw_tokens

    def reduce(self, raw_tokens: int) -> None:
        """Count *raw_tokens* of removed blocks: the next difference mixes growth and reduction."""
        self._removed_raw += max(0, raw_tokens)

    def reset(self) -> None:
        """Drop the anchor for a new window; the calibration stays."""
        self._anchor, self._anchor_raw, self._call, self._removed_raw = None, 0, None, 0

    def _compare(self, total: int, raw: int, last_total: int, last_raw: int) -> int:
        """Return the part of a difference between calls that is unseen; a difference without one calibrates."""
        counted = raw - last_raw
        unseen = unseen_tokens(total - last_total, added=counted + self._removed_raw, removed=self._removed_raw)
        if unseen:
            return round(total - last_total - self.calibration * counted)
        if not self._removed_raw and counted >= CALIBRATION_MINIMUM_TOKENS and total > last_total:
            low, high = CALIBRATION_RANGE
            observed = min(max((total - last_total) / counted, low), high)
            self.calibration += CALIBRATION_RATE * (observed - self.calibration)
        return 0


def unseen_tokens(difference: int, *, added: int, removed: int = 0) -> int:
    """Return by how much a difference of totals exceeds what counts of *added* and *removed* content can explain.

    Negative where it falls short of them; 0 within the range of the calibration, or within a rounding of it.
    """
    low, high = CALIBRATION_RANGE
    most = high * added - low * removed + CALIBRATION_MINIMUM_TOKENS
    if difference > most:
        return round(difference - most)
    least = low * added - high * removed - CALIBRATION_MINIMUM_TOKENS
    return round(difference - least) if difference < least else 0


def apportion(used_tokens: int, raw: dict[Component, int]) -> dict[Component, int]:
    """Split *used_tokens* over the components so that the parts sum to it.

    The unattributed part is unchanged if it fits; the visible components share the rest in proportion to their
    counts. The rounding remainder is added to the message history, or to the largest component without one.
    """
    total = sum(raw.values())
    if total == used_tokens:
        return raw
    visible = total - raw.get("unattributed", 0)
    if visible <= 0:
        return {**dict.fromkeys(COMPONENTS, 0), "unattributed": used_tokens}
    unattributed = min(total - visible, used_tokens)
    remainder = rest = used_tokens - unattributed
    parts = raw.copy()
    for component, tokens in raw.items():
        if tokens and component != "unattributed":
            parts[component] = part = rest * tokens // visible
            remainder -= part
    parts["unattributed"] = unattributed
    if remainder:
        receiver: Component = "message_history"
        if not raw.get(receiver):
            receiver = max((component for component in raw if component != "unattributed"), key=raw.__getitem__)
        parts[receiver] += remainder
    return parts


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
