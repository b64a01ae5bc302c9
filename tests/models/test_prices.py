"""Packaged prices against the computation of `genai-prices`, from which they are packed."""

from __future__ import annotations

import importlib.util
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path

from genai_prices import Usage as PricedUsage
from genai_prices.data import providers as package_providers
from genai_prices.types import ModelPrice
from tests.sampling import sampled

from windowpane.core.events import Usage
from windowpane.models.catalog import PackagedCatalog
from windowpane.models.prices import Price, providers

NEWEST = datetime(9999, 1, 1, 12, tzinfo=UTC)
TIMES = (NEWEST, datetime(2024, 3, 1, 17, 30, tzinfo=UTC), datetime(2026, 6, 1, 3, tzinfo=UTC))
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
    if getattr(price, "input_mtok", None) is None and getattr(price, "output_mtok", None) is None:
        return None
    counted = PricedUsage(
        input_tokens=usage.input_total,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        cache_write_1h_tokens=usage.hour_write_tokens,
        output_tokens=usage.output_tokens,
    )
    return float(price.calc_price(counted)["total_price"])


def test_every_price_of_the_package_gives_its_own_result() -> None:
    compared = 0
    for provider in package_providers:
        for model, packed in zip(provider.models, providers()[provider.id].models, strict=True):
            assert (packed.id, packed.context_window) == (model.id, model.context_window)
            for at in TIMES:
                price = model.get_prices(at)
                for usage in CALLS:
                    compared += 1
                    assert packed.price(at).cost_of(usage) == package_cost(price, usage), (model.id, at)
    assert compared > 40_000


def test_names_are_found_as_the_package_finds_them() -> None:
    names = {model.id for provider in package_providers for model in provider.models}
    names |= {"Claude-Sonnet-4-5-20250929", "gpt-5.2-20251211", "gpt-4o-20240806", "o3-mini", "unheard-of"}
    everyone = list(package_providers)
    for provider in everyone:
        packed = providers()[provider.id]
        match, own = provider.model_match, packed.model_match
        for name in sampled(sorted(names), 200):
            found, expected = packed.find_model(name), provider.find_model(name, all_providers=everyone)
            assert (None if found is None else found.id) == (None if expected is None else expected.id), name
            assert (match is not None and match.is_match(name)) == (own is not None and own.holds(name)), name


def test_the_packed_file_is_what_the_package_gives() -> None:
    path = Path(__file__).parents[2] / "docs/pack_prices.py"
    spec = importlib.util.spec_from_file_location("pack_prices", path)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)

    assert script.packed() == script.TARGET.read_bytes()


def test_impossible_usage_has_no_price() -> None:
    assert PackagedCatalog().cost_dollars("gpt-5", Usage(input_tokens=-1), None) is None


def test_a_price_may_be_for_a_part_of_the_day_past_midnight() -> None:
    one = (Decimal(1),) * 5
    night = Price((one,), hours=(time(22), time(4)))
    midnight = datetime(2026, 1, 1, tzinfo=UTC)

    valid = [hour for hour in range(24) if night.is_valid(midnight + timedelta(hours=hour))]

    assert valid == [0, 1, 2, 3, 22, 23]


def test_a_price_starts_on_its_first_day() -> None:
    price = Price((), start=date(2026, 1, 2))

    assert not price.is_valid(datetime(2026, 1, 1, 23, 59, tzinfo=UTC))
    assert price.is_valid(datetime(2026, 1, 2, tzinfo=UTC))
