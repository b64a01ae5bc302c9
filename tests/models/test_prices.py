"""Prices of single calls against the package's own computation."""

from __future__ import annotations

from datetime import UTC, datetime

from genai_prices import Usage as PricedUsage
from genai_prices.data import providers
from genai_prices.types import ModelPrice

from windowpane.core.events import Usage
from windowpane.models.prices import _tier_ends, cost_of

NEWEST = datetime(9999, 1, 1, 12, tzinfo=UTC)
CALLS = (
    Usage(100_000, 50, 100_000),
    Usage(100_000, 50, 100_001, hour_write_tokens=0),
    Usage(1_000_001, 7),
    Usage(1_200, 340, 150_000, 2_000),
    Usage(10, 1, 0, 5_000, hour_write_tokens=3_000),
    Usage(500_000, 9_000),
    Usage(),
)


def package_cost(price: ModelPrice, usage: Usage) -> float | None:
    counted = PricedUsage(
        input_tokens=usage.input_total,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        cache_write_1h_tokens=usage.hour_write_tokens,
        output_tokens=usage.output_tokens,
    )
    try:
        return float(price.calc_price(counted)["total_price"])
    except ValueError:
        return None


def test_every_price_of_the_package_gives_its_own_result() -> None:
    compared = 0
    for provider in providers:
        for model in provider.models:
            price = model.get_prices(NEWEST)
            if getattr(price, "input_mtok", None) is None and getattr(price, "output_mtok", None) is None:
                continue
            for usage in CALLS:
                expected = package_cost(price, usage)
                compared += 1
                assert cost_of(price, usage) == expected, model.id
    assert compared > 1_000


def test_impossible_usage_has_no_price() -> None:
    price = providers[0].models[0].get_prices(NEWEST)

    assert cost_of(price, Usage(input_tokens=-1)) is None


def test_prices_of_searches_do_not_matter() -> None:
    prices = [model.get_prices(NEWEST) for provider in providers for model in provider.models]
    searching = [price for price in prices if price.web_searches_kcount is not None and price.input_mtok == 2.5]
    assert searching

    assert all(_tier_ends(price) is not None for price in searching)
