"""The price of one model call, from a price of the `genai-prices` package.

The package takes as long for one call as reading, counting and measuring it, so the prices per token are taken
from it once for each of its prices that consists of prices per token and per search. The results are those of the
package to the last digit.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from windowpane.core.events import Usage

if TYPE_CHECKING:
    from genai_prices.types import ModelPrice

_MILLION: Final = 1_000_000
_SEARCHES: Final = "_searches_kcount"
"""End of the names of prices per search, which a call's usage does not count."""
_UNITS: Final = (
    Usage(input_tokens=_MILLION),
    Usage(cache_read_tokens=_MILLION),
    Usage(cache_write_tokens=_MILLION),
    Usage(cache_write_tokens=_MILLION, hour_write_tokens=_MILLION),
    Usage(output_tokens=_MILLION),
)
"""A million tokens of each kind, in the order of `_counts`."""


@dataclass(frozen=True, slots=True)
class _TokenPrices:
    price: ModelPrice
    """The package's; held so that its identity stays its own."""
    rates: tuple[Decimal, ...] | None
    """Dollars per million tokens of each kind; None for a price by size or by request."""


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
        prices = _prices[id(price)] = _TokenPrices(price, _rates(price))
    if prices.rates is None:
        cost = _package_cost(price, usage)
        return None if cost is None else float(cost)
    total = sum(rate * count for rate, count in zip(prices.rates, counts, strict=True))
    return float(total / _MILLION)


def _counts(usage: Usage) -> tuple[int, ...]:
    hour_writes = min(usage.hour_write_tokens, usage.cache_write_tokens)
    return (
        usage.input_tokens,
        usage.cache_read_tokens,
        usage.cache_write_tokens - hour_writes,
        hour_writes,
        usage.output_tokens,
    )


def _rates(price: ModelPrice) -> tuple[Decimal, ...] | None:
    from genai_prices.types import TieredPrices

    set_prices = {
        name: value for name, value in vars(price).items() if value is not None and not name.endswith(_SEARCHES)
    }
    if any(isinstance(value, TieredPrices) or not name.endswith("_mtok") for name, value in set_prices.items()):
        return None
    costs = [_package_cost(price, unit) for unit in _UNITS]
    rates = tuple(cost for cost in costs if cost is not None)
    return rates if len(rates) == len(_UNITS) else None


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
