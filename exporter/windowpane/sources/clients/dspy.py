"""Reports the calls that DSPy sends by its own client, which are not observed."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any, Final

from windowpane.sources.clients.calls import WatchedClient, boundary
from windowpane.sources.clients.methods import Restore, watch_class

BASE_MODULE: Final = "dspy.clients.engines.lm15_engine"
"""The module of DSPy's own client, since release 3.4; earlier ones send all calls by LiteLLM."""


def report_dspy(module: ModuleType, _watched: WatchedClient) -> list[Restore]:
    """Log the first call that is sent by DSPy's own client, and what the user can do."""

    def report(_args: tuple[Any, ...], _kwargs: Mapping[str, Any]) -> None:
        boundary.warn_once(
            "calls of dspy",
            "calls that DSPy sends by its own client are not observed: make the model with "
            'dspy.LM(..., engine="litellm"), or start the program with windowpane run',
        )

    kinds = (module.LM15Engine, module.AsyncLM15Engine)
    return [watch_class(kind, ("complete", "stream"), report, lambda _call, result: result) for kind in kinds]
