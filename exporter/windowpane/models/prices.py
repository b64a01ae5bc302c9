"""The packaged models: their names, windows and prices, as `docs/pack_prices.py` takes them from `genai-prices`.

The costs are those that `genai-prices` computes, to the last digit. The package itself is not required: it brings
seven others, and takes a quarter of a second to load.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Final

import msgspec

from windowpane.core.decoders import decode_json
from windowpane.core.events import Usage

_COMPACT_DATE: Final = re.compile(r"-(20\d\d)(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(?=-|:|$)")
"""Date of a release without hyphens, as LiteLLM and OpenRouter write it: `gpt-5.2-20251211`."""


class NameMatch(msgspec.Struct, frozen=True, omit_defaults=True, rename={"any_of": "or", "all_of": "and"}):
    """A condition on names of models; exactly one field is set."""

    starts_with: str | None = None
    ends_with: str | None = None
    contains: str | None = None
    equals: str | None = None
    regex: str | None = None
    any_of: tuple[NameMatch, ...] | None = None
    all_of: tuple[NameMatch, ...] | None = None

    def holds(self, name: str) -> bool:  # noqa: PLR0911  # one for each field
        """Return whether *name* matches."""
        if self.equals is not None:
            return name.lower() == self.equals
        if self.any_of is not None:
            return any(part.holds(name) for part in self.any_of)
        if self.starts_with is not None:
            return name.lower().startswith(self.starts_with)
        if self.contains is not None:
            return self.contains in name.lower()
        if self.ends_with is not None:
            return name.lower().endswith(self.ends_with)
        if self.all_of is not None:
            return all(part.holds(name) for part in self.all_of)
        return self.regex is not None and re.search(self.regex, name) is not None


class Price(msgspec.Struct, frozen=True, omit_defaults=True):
    """Dollars per token at some time."""

    rates: tuple[tuple[Decimal, Decimal, Decimal, Decimal, Decimal], ...]
    """By kind: input, cache read, cache write, write for an hour, output; one row for each tier of size."""
    tier_ends: tuple[int, ...] = ()
    """Largest input total of each tier but the last."""
    per_call: Decimal | None = None
    """Dollars of a call as such."""
    start: date | None = None
    """First day."""
    hours: tuple[time, time] | None = None
    """Part of the day, UTC, which may go past midnight."""

    def is_valid(self, at: datetime) -> bool:
        """Return whether it is the price at the time *at*, unless a later one is."""
        if self.start is not None:
            return at.date() >= self.start
        if self.hours is None:
            return True
        (first, end), now = self.hours, at.time()
        return first <= now < end if first <= end else now >= first or now < end

    def cost_of(self, usage: Usage) -> float | None:
        """Return what *usage* costs in US dollars; None without a price and for a negative count."""
        hour_writes = min(usage.hour_write_tokens, usage.cache_write_tokens)
        counts = (
            usage.input_tokens,
            usage.cache_read_tokens,
            usage.cache_write_tokens - hour_writes,
            hour_writes,
            usage.output_tokens,
        )
        if not self.rates or min(counts) < 0:
            return None
        rates = self.rates[bisect_left(self.tier_ends, usage.input_total)]
        return float(sum((rate * count for rate, count in zip(rates, counts, strict=True)), self.per_call or 0))


class PricedModel(msgspec.Struct, frozen=True, omit_defaults=True):
    """A model as one provider sells it."""

    id: str
    match: NameMatch
    prices: tuple[Price, ...]
    """The last one that is valid counts, else the first."""
    context_window: int | None = None

    def price(self, at: datetime) -> Price:
        """Return the price at a time."""
        at = at.astimezone(UTC)
        return next((price for price in reversed(self.prices) if price.is_valid(at)), self.prices[0])


class Provider(msgspec.Struct, frozen=True, omit_defaults=True):
    """A provider and the models that it sells."""

    id: str
    models: tuple[PricedModel, ...]
    model_match: NameMatch | None = None
    """Names of models that are the provider's where nothing names another."""
    fallbacks: tuple[str, ...] = ()
    """Providers whose models it sells too."""

    def find_model(self, name: str) -> PricedModel | None:
        """Return the model of this name, in any case; a date without hyphens is the one with them."""
        name = name.lower()
        return self._find(name) or self._find(_COMPACT_DATE.sub(r"-\1-\2-\3", name))

    def _find(self, name: str) -> PricedModel | None:
        sellers = (self, *(providers()[one] for one in self.fallbacks))
        return next((model for seller in sellers for model in seller.models if model.match.holds(name)), None)


class PriceList(msgspec.Struct, frozen=True):
    """All that is packaged."""

    release: str
    """Release of `genai-prices`."""
    providers: tuple[Provider, ...]


@cache
def price_list() -> PriceList:
    """Return the packaged list."""
    packed = files("windowpane.models").joinpath("data/prices.json").read_bytes()
    return decode_json(packed, PriceList)


@cache
def providers() -> dict[str, Provider]:
    """Return all providers by their ids."""
    return {provider.id: provider for provider in price_list().providers}
