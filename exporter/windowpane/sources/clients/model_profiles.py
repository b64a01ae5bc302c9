"""The profile of a model by the packaged vocabularies and catalog, for calls that are recorded as they happen."""

from __future__ import annotations

import time
from functools import lru_cache
from typing import Final

from windowpane.core.agents import window_of
from windowpane.core.events import Usage
from windowpane.core.limits import WindowLimits
from windowpane.models.catalog import packaged_catalog
from windowpane.sources.conversations.diff import ModelProfile

CACHED_MODELS: Final = 256


@lru_cache(maxsize=CACHED_MODELS)
def packaged_profile(model: str, agent: str = "") -> ModelProfile:
    """Return a model's profile by the packaged vocabularies and catalog, in the window that *agent* gives it."""
    from windowpane.models.tokens import counter_for, image_tokens

    window = window_of(packaged_catalog(), model, agent)

    def cost_of(usage: Usage) -> float | None:
        return packaged_catalog().cost_dollars(model, usage, time.time())

    return ModelProfile(
        counter_for(model),
        None if window is None else WindowLimits.of(*window),
        image_tokens(model),
        cost_of,
    )
