"""Finds the clients inside what frameworks hand out: chat models, providers and agents.

A framework calls a model by a client of the provider that it makes and holds. That client is watched, so a call
is recorded as the client sends it. Where a framework makes a client for each call, the method that makes it is
replaced on the one object. Only the names of attributes are known here; no framework is imported.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any, Final

from windowpane.sources.clients.calls import boundary
from windowpane.sources.clients.methods import WATCHED

MAXIMUM_DEPTH: Final = 6
"""An agent holds a model, which wraps another, which holds a provider, which holds a client."""

Watch = Callable[[object], bool]
"""Watches an object and returns True if it is one that can be watched."""


@dataclass(frozen=True, slots=True)
class Framework:
    """The names under which the objects of one framework hold what they call a model with."""

    holders: tuple[str, ...]
    """Attributes with a client, or with an object that holds one."""
    factories: tuple[str, ...] = ()
    """Methods that return a client, or a context manager of one."""


_LANGCHAIN: Final = Framework(("root_client", "root_async_client", "_client", "_async_client", "client", "bound"))
FRAMEWORKS: Final = {
    "agents": Framework(("model", "_client"), ("_get_client",)),
    "agno": Framework(("model",), ("get_client", "get_async_client")),
    "autogen_agentchat": Framework(("_model_client",)),
    "autogen_ext": Framework(("_client",)),
    "langchain": _LANGCHAIN,
    "langchain_anthropic": _LANGCHAIN,
    "langchain_aws": _LANGCHAIN,
    "langchain_core": _LANGCHAIN,
    "langchain_google_genai": _LANGCHAIN,
    "langchain_openai": _LANGCHAIN,
    "llama_index": Framework(("_llm", "llm", "_client", "_aclient"), ("_get_client", "_get_aclient")),
    "pydantic_ai": Framework(("model", "wrapped", "models", "client", "_provider")),
    "smolagents": Framework(("model", "client")),
    "strands": Framework(("model", "client", "_custom_client"), ("_get_client",)),
}
"""Frameworks by the name of their package."""


def watch_framework(holder: object, watch: Watch) -> bool:
    """Watch the clients that *holder* holds or makes by *watch*; return whether there are any."""
    return _watch_held(holder, watch, MAXIMUM_DEPTH, set())


def _watch_held(holder: object, watch: Watch, depth: int, seen: set[int]) -> bool:
    framework = _framework_of(holder)
    if framework is None or depth == 0 or id(holder) in seen:
        return False
    seen.add(id(holder))
    made = [_watch_factory(holder, name, watch) for name in framework.factories]
    held = [watch(one) or _watch_held(one, watch, depth - 1, seen) for one in _held(holder, framework)]
    return any((*made, *held))


def _framework_of(holder: object) -> Framework | None:
    """Return the framework that defines the class of *holder*, or one of its bases."""
    packages = (kind.__module__.partition(".")[0] for kind in type(holder).__mro__)
    return next((FRAMEWORKS[package] for package in packages if package in FRAMEWORKS), None)


def _held(holder: object, framework: Framework) -> Iterator[object]:
    for name in framework.holders:
        try:
            value = getattr(holder, name, None)
        except Exception as error:  # noqa: BLE001  # a client that cannot be made yet, such as without a key
            boundary.log_failure(f"reading {type(holder).__name__}.{name}", error)
            continue
        yield from value if isinstance(value, list | tuple) else (value,)


def _watch_factory(holder: Any, name: str, watch: Watch) -> bool:
    """Watch each client that a method of *holder* returns."""
    factory = getattr(holder, name, None)
    if not callable(factory):
        return False
    if getattr(factory, WATCHED, False):
        return True

    def watched(client: Any) -> Any:
        with boundary.contain("observing a client that was made for a call"):
            watch(client)
        return client

    replacement: Callable[..., Any]
    if inspect.isasyncgenfunction(inspect.unwrap(factory)):

        @asynccontextmanager
        async def opened(*args: Any, **kwargs: Any) -> Any:
            async with factory(*args, **kwargs) as client:
                yield watched(client)

        replacement = wraps(factory)(opened)
    else:

        @wraps(factory)
        def made(*args: Any, **kwargs: Any) -> Any:
            return watched(factory(*args, **kwargs))

        replacement = made
    vars(replacement)[WATCHED] = True
    object.__setattr__(holder, name, replacement)  # a model of Pydantic refuses names that are not its fields
    return True
