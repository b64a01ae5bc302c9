"""Window sizes from LiteLLM's public table, for models whose size the package `genai-prices` does not state.

A name is found as it is written, or as the end of longer names, at the providers that serve it:
`moonshotai/kimi-k2` is the end of `vercel_ai_gateway/moonshotai/kimi-k2`. Another vendor in front of a name is
another model.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

from windowpane.models.names import split_model_name

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
    """Return the sizes of *model*'s window; None for a name that is not in the table."""
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
