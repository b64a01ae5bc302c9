"""The model catalog: window sizes and prices from the data of `genai-prices`.

Windows that it does not state are those of LiteLLM's public table. Nothing is fetched, so two runs of one release
give the same results, except for the user's own file of models. A name that the data does not contain
has no price, and only the window of its family, which is assumed. The data is loaded at the first lookup, and not
at import.
"""

from __future__ import annotations

import json
import logging
import re
from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from windowpane.config.paths import data_folder
from windowpane.core.agents import (
    CLAUDE_CODE_LARGE_SUFFIX,
    CLAUDE_CODE_LARGE_WINDOW,
    CLAUDE_CODE_SMALL_WINDOW,
)
from windowpane.core.limits import MAXIMUM_TOKENS
from windowpane.core.protocols import ModelInfo
from windowpane.core.times import moment
from windowpane.exceptions import ConfigurationError
from windowpane.models.names import ModelName, provider_id, split_model_name
from windowpane.models.prices import NameMatch, PricedModel, Provider, providers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from windowpane.core.events import Usage
    from windowpane.core.vocabulary import LimitSource

_VENDORS: Final = ("gemini", "mistral", "dashscope", "moonshot", "deepseek", "xai", "zai", "meta_llama")
"""Providers that serve their own models; of several sizes theirs is the model's."""


@dataclass(frozen=True, slots=True)
class WindowSizes:
    """The sizes of one model's window at the providers that serve it."""

    tokens: int
    """The vendor's size, else the one that most providers serve."""
    is_certain: bool
    """The size is the vendor's or all providers serve the same."""
    larger: tuple[int, ...] = ()
    """Sizes above it, in order."""


def window_sizes(model: str) -> WindowSizes | None:
    """Return the sizes of *model*'s window; None for a name that is not in the table.

    A name is found as it is written, or as the end of longer names, at the providers that serve it:
    `moonshotai/kimi-k2` is the end of `vercel_ai_gateway/moonshotai/kimi-k2`. Another vendor in front of a name
    is another model.
    """
    reference = split_model_name(model)
    name = "/".join((*reference.prefixes, reference.name))
    served = _served().get(name)
    if served is None:
        return None
    counts = Counter(served.values())
    vendors = (f"{vendor}/{name}" for vendor in _VENDORS)
    own = next((served[one] for one in (name, *vendors) if one in served), None)
    tokens = own or min(counts, key=lambda size: (-counts[size], size))
    larger = sorted(size for size in counts if size > tokens)
    return WindowSizes(tokens, own is not None or len(counts) == 1, tuple(larger))


@cache
def _served() -> dict[str, dict[str, int]]:
    """Return the whole names and sizes by each end of the names."""
    text = files("windowpane.models").joinpath("data/window_sizes.json").read_text(encoding="utf-8")
    served: dict[str, dict[str, int]] = {}
    for name, size in json.loads(text).items():
        parts = name.split("/")
        for start in range(len(parts)):
            served.setdefault("/".join(parts[start:]), {})[name] = size
    return served


_MAX_NAME_CHARACTERS = 200
"""Limit for names from recordings, which are not trusted; real names are far shorter."""

_BEDROCK_NAME = re.compile(
    r"(?:[a-z-]{2,8}\.)?(?:ai21|amazon|anthropic|cohere|deepseek|meta|mistral|openai|qwen)\."
)
"""Names of AWS Bedrock, with or without a region: `us.anthropic.claude-…`."""

MODELS_FILE: Final = "models.json"
"""The user's file of models, in the data folder: windows of models that this release does not know."""
_PARTS: Final = re.compile(r"[a-z]+|\d+")
_STAGES: Final = frozenset({"preview", "latest", "exp", "experimental", "beta"})

_log = logging.getLogger("windowpane")

_VERSION_END = re.compile(r"(?<!\d)[1-9]$")
_VERSION_CONTINUES = re.compile(r"[a-z0-9]|\.\d")

_LATEST = datetime(9999, 1, 1, 12, tzinfo=UTC)
"""Replaces an unknown time of a call: the newest price, outside off-peak hours, on every run."""


@dataclass(frozen=True, slots=True)
class _CatalogEntry:
    provider: Provider
    model: PricedModel
    limit_tokens: int | None
    limit_source: LimitSource = "catalogue"
    largest_tokens: int | None = None
    """The larger one of two windows that the model is sold with."""


class PackagedCatalog:
    """A `ModelCatalog` over the packaged data.

    *limits* maps a model, in the agent's spelling, to its window in tokens and overrides the data. Raises
    `ConfigurationError` for a limit that is not a positive number.
    """

    def __init__(self, *, limits: Mapping[str, int] | None = None) -> None:
        for model, tokens in (limits or {}).items():
            try:
                _window_size(model, tokens)
            except ValueError as error:
                raise ConfigurationError(
                    f"limits.{model}", f"{tokens!r} is not a window size", expected=f"1 to {MAXIMUM_TOKENS}"
                ) from error
        self._limits = {_fold(model): tokens for model, tokens in (limits or {}).items()}
        self._names = {_fold(model): model.strip() for model in limits or {}}
        self._lookup = lru_cache(maxsize=1_024)(self._lookup_uncached)

    def lookup(self, model: str) -> ModelInfo | None:
        """Return the limit and provider of *model*; None for a name in neither the limits nor the data."""
        return self._lookup(model)

    def limit_source(self, model: str) -> LimitSource | None:
        """Return the source of *model*'s limit: `given`, `catalogue`, or None for an unknown limit."""
        if _fold(model) in self._limits:
            return "given"
        info = self.lookup(model)
        return info.limit_source if info and info.limit_tokens is not None else None

    def family_limit(self, model: str) -> int | None:
        """Return the window of the newest model of the same family, for a model that `lookup` does not know.

        A family's models differ only in their version: `gpt-5.6-codex` is of the family of `gpt-5.3-codex`.
        """
        return None if self.lookup(model) is not None else _family_limit(_fold(model))

    def next_limit(self, model: str, above: int) -> int | None:
        """Return the smallest window that the model's provider sells with at least *above* tokens.

        None for an unknown model, and if the provider does not sell one that large.
        """
        listed, entry = _listed(model), _find(model)
        if listed is not None:
            return next((size for size in listed.larger if size >= above), None)
        if entry is None:
            return None
        if entry.largest_tokens is not None and above <= entry.largest_tokens:
            return entry.largest_tokens if above > CLAUDE_CODE_SMALL_WINDOW else CLAUDE_CODE_SMALL_WINDOW
        windows = (sold.context_window for sold in entry.provider.models)
        return min((window for window in windows if window is not None and window >= above), default=None)

    def smaller_limit(self, model: str, used: int) -> int | None:
        """Return the smaller of two windows that *model* is sold with, if *used* tokens fit it; else None."""
        entry = _find(model)
        has_two = entry is not None and entry.largest_tokens is not None
        return CLAUDE_CODE_SMALL_WINDOW if has_two and used <= CLAUDE_CODE_SMALL_WINDOW else None

    def cost_dollars(self, model: str, usage: Usage, at: float | None) -> float | None:
        """Return the list price of one call in US dollars at the time *at* (None: the newest price).

        None for an unknown model or price and for impossible usage (a negative count). Discounts and batch prices
        are not included.
        """
        entry = _find(model)
        if entry is None:
            return None
        return entry.model.price(moment(at) or _LATEST).cost_of(usage)

    def _lookup_uncached(self, model: str) -> ModelInfo | None:
        key = _fold(model)
        given = self._limits.get(key)
        info = _packaged_info(model)
        if info is None:
            return None if given is None else ModelInfo(self._names[key], given, limit_source="given")
        return info if given is None else replace(info, limit_tokens=given, limit_source="given")


def _packaged_info(model: str) -> ModelInfo | None:
    """Return what the packaged data states of *model*: its size comes from the second table if need be.

    A size in the user's file is used before both.
    """
    info = _packaged(model)
    own = own_windows().get(_fold(model))
    if own is None:
        return info
    return (
        ModelInfo(_fold(model), own)
        if info is None
        else replace(info, limit_tokens=own, limit_source="catalogue")
    )


def _packaged(model: str) -> ModelInfo | None:
    entry, listed = _find(model), _listed(model)
    source: LimitSource = "catalogue" if listed is None or listed.is_certain else "assumed"
    if entry is None:
        return None if listed is None else ModelInfo(_fold(model), listed.tokens, limit_source=source)
    smaller = CLAUDE_CODE_SMALL_WINDOW if entry.limit_source == "assumed" else None
    info = ModelInfo(entry.model.id, entry.limit_tokens, entry.provider.id, entry.limit_source, smaller)
    return info if listed is None else replace(info, limit_tokens=listed.tokens, limit_source=source)


def _listed(model: str) -> WindowSizes | None:
    """Return the sizes of the second table where the first has none, by the name as written or its own name."""
    entry = _find(model)
    if not 0 < len(model) <= _MAX_NAME_CHARACTERS or (entry is not None and entry.limit_tokens is not None):
        return None
    names = (model,) if entry is None else (model, entry.model.id)
    sizes = [one for name in names if (one := window_sizes(name)) is not None]
    return next((one for one in sizes if one.is_certain), sizes[0] if sizes else None)


@cache
def packaged_catalog() -> PackagedCatalog:
    """Return the process's catalog without limits set by the user."""
    return PackagedCatalog()


@cache
def own_windows() -> Mapping[str, int]:
    """Return the windows in the user's file of models, by name; empty without it, or where it cannot be used."""
    path = data_folder() / MODELS_FILE
    try:
        sizes = json.loads(path.read_text(encoding="utf-8"))
        return {_fold(model): _window_size(model, tokens) for model, tokens in sizes.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError) as error:
        _log.warning('%s is not used (%s); expected {"model": window in tokens}', path, error)
        return {}


def _window_size(model: str, tokens: object) -> int:
    if isinstance(tokens, bool) or not isinstance(tokens, int) or not 0 < tokens <= MAXIMUM_TOKENS:
        raise ValueError(f"{model}: {tokens!r} is not a window size")
    return tokens


@lru_cache(maxsize=1_024)
def _family_limit(model: str) -> int | None:
    family, _ = _versioned(split_model_name(model).name)
    newest = _families().get(family) if len(family) > 1 else None
    return None if newest is None else newest[1]


@cache
def _families() -> Mapping[tuple[str, ...], tuple[tuple[int, ...], int]]:
    """Return the newest version of each family, with its window."""
    families: dict[tuple[str, ...], tuple[tuple[int, ...], int]] = {}
    sold = ((model.id, model.context_window) for provider in providers().values() for model in provider.models)
    for name, tokens in (*sold, *((name, max(sizes.values())) for name, sizes in _served().items())):
        family, version = _versioned(split_model_name(name).name)
        if tokens and len(family) > 1 and version:
            families[family] = max(families.get(family, ((), 0)), (version, tokens))
    return families


def _versioned(name: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return the name without its version, and the version: its numbers but dates."""
    parts = [part for part in _PARTS.findall(name) if part not in _STAGES]
    family = tuple(part for part in parts if not part.isdecimal())
    return family, tuple(int(part) for part in parts if part.isdecimal() and len(part) <= 2)


def _fold(model: str) -> str:
    return model.strip().lower()


def load_packaged_data() -> None:
    """Load the data of the catalog now, instead of at the first lookup."""
    providers()


@lru_cache(maxsize=1_024)
def _find(model: str) -> _CatalogEntry | None:
    """Return the entry for *model* in an agent's spelling."""
    if not 0 < len(model) <= _MAX_NAME_CHARACTERS:
        return None
    long_context = _fold(model).endswith(CLAUDE_CODE_LARGE_SUFFIX)
    reference = split_model_name(_fold(model).removesuffix(CLAUDE_CODE_LARGE_SUFFIX))
    for provider, name in _candidates(reference):
        priced = provider.find_model(name)
        if priced is not None and _is_same_version(priced, name):
            return _entry(provider, priced, long_context=long_context)
    return None


def _entry(provider: Provider, model: PricedModel, *, long_context: bool) -> _CatalogEntry:
    """Return the entry with its window; of two the larger one, which is assumed where the name has no suffix."""
    sold = model.context_window
    if "claude" in model.id and sold is not None and sold > CLAUDE_CODE_SMALL_WINDOW and not long_context:
        return _CatalogEntry(provider, model, sold, "assumed", largest_tokens=sold)
    if long_context:
        return _CatalogEntry(provider, model, CLAUDE_CODE_LARGE_WINDOW, largest_tokens=CLAUDE_CODE_LARGE_WINDOW)
    return _CatalogEntry(provider, model, sold)


def _candidates(reference: ModelName) -> Iterator[tuple[Provider, str]]:
    """Yield the providers and names to look up for *reference*: as written first, then at its vendor.

    With prefixes only the providers that they name are searched, so `acme/gpt-4o` stays unknown.
    """
    for position, prefix in enumerate(reference.prefixes):
        provider = providers().get(provider_id(prefix))
        if provider is None:
            return
        yield provider, "/".join((*reference.prefixes[position + 1 :], reference.name))
    if reference.prefixes:
        return
    if _BEDROCK_NAME.match(reference.name):
        yield providers()["aws"], reference.name
    for provider in providers().values():
        if provider.model_match is not None and provider.model_match.holds(reference.name):
            yield provider, reference.name


def _is_same_version(model: PricedModel, name: str) -> bool:
    """Return whether the version in *name* ends where the catalog's match ends.

    The catalog matches many models by the start of a name: `claude-sonnet-4-5` would match `claude-sonnet-4-50`.
    """

    def ends(match: NameMatch) -> bool:
        if match.any_of is not None:
            return any(part.holds(name) and ends(part) for part in match.any_of)
        if match.all_of is not None:
            return all(ends(part) for part in match.all_of)
        part = match.starts_with or match.contains
        if part is None:
            return True
        return not (_VERSION_END.search(part) and _VERSION_CONTINUES.match(name.partition(part)[2]))

    return not model.match.holds(name) or ends(model.match)
