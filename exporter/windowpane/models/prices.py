"""The price of one model call, from a price of the `genai-prices` package.

The package takes as long for one call as reading, counting and measuring it, so the prices per token are taken
from it once for each of its prices and tiers of size. The results are those of the package to the last digit.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from windowpane.core.events import Usage

if TYPE_CHECKING:
    from genai_prices.types import ModelPrice

_SEARCHES: Final = "_searches_kcount"
"""End of the names of prices per search, which a call's usage does not count."""
_UNTIERED_TOKENS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class _TokenPrices:
    """The prices per token of one of the package's prices."""

    price: ModelPrice
    """The package's; held so that its identity stays its own."""
    tier_ends: tuple[int, ...] | None
    """Largest input total of each tier but the last; None for a price that is not by token."""
    rates: dict[int, tuple[Decimal, ...] | None] = field(default_factory=dict)
    """Dollars per token of each kind, by tier; None where the package has none."""

    def of(self, total: int) -> tuple[Decimal, ...] | None:
        """Return the rates of a call with this input total."""
        if self.tier_ends is None:
            return None
        tier = bisect_left(self.tier_ends, total)
        if tier not in self.rates:
            self.rates[tier] = _rates(self.price, self._sample(tier))
        return self.rates[tier]

    def _sample(self, tier: int) -> int:
        """Return an input total within *tier*."""
        ends = self.tier_ends or ()
        return ends[tier - 1] + 1 if tier else min(ends, default=_UNTIERED_TOKENS)


_prices: Final[dict[int, _TokenPrices]] = {}
"""By the identity of the package's price: as many as the package has."""


def cost_of(price: ModelPrice, usage: Usage) -> float | None:
    """Return what *usage* costs in US dollars; None without a price and for a negative count."""
    if getattr(price, "input_mtok", None) is None and getattr(price, "output_mtok", None) is None:
        return None
    counts = _counts(usage)
    if min(counts) < 0:
        return None
    prices = _prices.get(id(price))
    if prices is None:
        prices = _prices[id(price)] = _TokenPrices(price, _tier_ends(price))
    rates = prices.of(usage.input_total)
    if rates is None:
        cost = _package_cost(price, usage)
        return None if cost is None else float(cost)
    return float(sum(rate * count for rate, count in zip(rates, counts, strict=True)))


def _counts(usage: Usage) -> tuple[int, ...]:
    hour_writes = min(usage.hour_write_tokens, usage.cache_write_tokens)
    return (
        usage.input_tokens,
        usage.cache_read_tokens,
        usage.cache_write_tokens - hour_writes,
        hour_writes,
        usage.output_tokens,
    )


def _tier_ends(price: ModelPrice) -> tuple[int, ...] | None:
    from genai_prices.types import TieredPrices

    prices = {name: value for name, value in vars(price).items() if value is not None}
    if any(not name.endswith(("_mtok", _SEARCHES)) for name in prices):
        return None
    tiered = (value for value in prices.values() if isinstance(value, TieredPrices))
    return tuple(sorted({tier.start for value in tiered for tier in value.tiers}))


def _rates(price: ModelPrice, total: int) -> tuple[Decimal, ...] | None:
    """Return the package's prices per token of each kind, in the order of `_counts`, in calls of this size."""
    fresh = _package_cost(price, Usage(input_tokens=total))
    read = _package_cost(price, Usage(cache_read_tokens=total))
    written = _package_cost(price, Usage(cache_write_tokens=total))
    hour = _package_cost(price, Usage(cache_write_tokens=total, hour_write_tokens=total))
    answered = _package_cost(price, Usage(input_tokens=total, output_tokens=total))
    if fresh is None or read is None or written is None or hour is None or answered is None:
        return None
    return fresh / total, read / total, written / total, hour / total, (answered - fresh) / total


def _package_cost(price: ModelPrice, usage: Usage) -> Decimal | None:
    """Return the package's own result; it counts cached tokens in the input, Windowpane separately."""
    from genai_prices import Usage as PricedUsage

    try:
        counted = PricedUsage(
            input_tokens=usage.input_total,
            cache_read_tokens=usage.cache_read_tokens,
            cache_write_tokens=usage.cache_write_tokens,
            cache_write_1h_tokens=min(usage.hour_write_tokens, usage.cache_write_tokens),
            output_tokens=usage.output_tokens,
        )
        return price.calc_price(counted)["total_price"]
    except ValueError:
        return None
