"""What the adapters to model clients share: a client's method as `(system, user) -> text`, sync or async."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

LanguageModel = Callable[[str, str], str]
"""`(system, user) -> text`."""
AsyncLanguageModel = Callable[[str, str], Awaitable[str]]
AnyLanguageModel = LanguageModel | AsyncLanguageModel

TIMEOUT_SECONDS: Final = 60.0
"""Of one attempt; a client's own retries come on top."""


def adapted(
    create: Callable[..., Any],
    *,
    arguments: Callable[[str, str], Mapping[str, Any]],
    text: Callable[[Any], str],
    name: str,
) -> AnyLanguageModel:
    """*create* behind a callable that is async where it is; *name* is how events call the model."""

    def ask(system: str, user: str) -> str:
        return text(create(**arguments(system, user)))

    async def ask_async(system: str, user: str) -> str:
        return text(await create(**arguments(system, user)))

    model: AnyLanguageModel = ask_async if inspect.iscoroutinefunction(inspect.unwrap(create)) else ask
    model.name = name  # type: ignore[union-attr]  # functions take attributes
    return model
