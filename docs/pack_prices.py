"""Reduce the data of the package `genai-prices` to names, windows and prices per token.

Usage: python docs/pack_prices.py

The installed release is converted, with the package's own computation: what a token of each kind costs in a call
of each tier of size. NOTICE lists release, date and licence; `tests/models/test_prices.py` compares both.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
from genai_prices import Usage, types
from genai_prices.data import providers

from windowpane.models.prices import NameMatch, Price, PricedModel, PriceList, Provider

TARGET = Path(__file__).parent.parent / "exporter/windowpane/models/data/prices.json"
UNTIERED_TOKENS = 1_000_000


def match_of(clause: Any) -> NameMatch:
    match clause:
        case types.ClauseOr():
            return NameMatch(any_of=tuple(map(match_of, clause.or_)))
        case types.ClauseAnd():
            return NameMatch(all_of=tuple(map(match_of, clause.and_)))
        case types.ClauseRegex():
            return NameMatch(regex=clause.regex)
    ((kind, text),) = vars(clause).items()
    return NameMatch(**{kind: text.lower()})


def prices_of(model: types.ModelInfo) -> tuple[Price, ...]:
    if isinstance(model.prices, types.ModelPrice):
        return (price_of(model.prices, None),)
    return tuple(price_of(one.prices, one.constraint) for one in model.prices)


def price_of(price: types.ModelPrice, constraint: object) -> Price:
    start = hours = None
    match constraint:
        case types.StartDateConstraint():
            start = constraint.start_date
        case types.TimeOfDateConstraint():
            hours = in_utc(constraint.start_time), in_utc(constraint.end_time)
    if getattr(price, "input_mtok", None) is None and getattr(price, "output_mtok", None) is None:
        return Price((), start=start, hours=hours)
    tiered = (value for value in vars(price).values() if isinstance(value, types.TieredPrices))
    ends = tuple(sorted({tier.start for value in tiered for tier in value.tiers}))
    samples = (min(ends, default=UNTIERED_TOKENS), *(end + 1 for end in ends))
    per_call = cost(price)
    rates = tuple(rates_of(price, total, per_call) for total in samples)
    return Price(rates, ends, per_call or None, start, hours)


def in_utc(hour: time) -> time:
    return datetime.combine(date(1970, 1, 1), hour, hour.tzinfo or UTC).astimezone(UTC).time()


def rates_of(price: types.ModelPrice, total: int, per_call: Decimal) -> tuple[Decimal, ...]:
    fresh = cost(price, input_tokens=total)
    answered = cost(price, input_tokens=total, output_tokens=total)
    costs = (
        fresh - per_call,
        cost(price, input_tokens=total, cache_read_tokens=total) - per_call,
        cost(price, input_tokens=total, cache_write_tokens=total) - per_call,
        cost(price, input_tokens=total, cache_write_tokens=total, cache_write_1h_tokens=total) - per_call,
        answered - fresh,
    )
    return tuple(one / total for one in costs)


def cost(price: types.ModelPrice, **counts: int) -> Decimal:
    names = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "cache_write_1h_tokens", "output_tokens")
    return price.calc_price(Usage(**{name: counts.get(name, 0) for name in names}))["total_price"]


def packed() -> bytes:
    """Return the file's content: one line for each model."""
    sellers = tuple(
        Provider(
            provider.id,
            tuple(
                PricedModel(model.id, match_of(model.match), prices_of(model), model.context_window)
                for model in provider.models
            ),
            None if provider.model_match is None else match_of(provider.model_match),
            tuple(provider.fallback_model_providers or ()),
        )
        for provider in providers
    )
    return (
        msgspec.json.encode(PriceList(version("genai-prices"), sellers)).replace(b'{"id":', b'\n{"id":') + b"\n"
    )


def main() -> None:
    TARGET.write_bytes(packed())
    print(f"{sum(len(provider.models) for provider in providers)} models of {len(providers)} providers")


if __name__ == "__main__":
    main()
