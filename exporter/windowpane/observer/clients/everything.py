"""Watches every client of the installed packages, those that exist and those that are made later."""

from __future__ import annotations

from functools import partial
from types import ModuleType, TracebackType
from typing import Final, Protocol, Self

from windowpane.observer.clients import anthropic, bedrock, google_genai, litellm, openai
from windowpane.observer.clients.calls import WatchedClient, boundary
from windowpane.observer.clients.import_hooks import ImportHooks
from windowpane.observer.clients.methods import Restore


class WatchAll(Protocol):
    """Watches all clients whose base class is in a module; returns how to undo it."""

    def __call__(self, module: ModuleType, watched: WatchedClient, /) -> list[Restore]:
        """Start watching."""
        ...


_PACKAGES: Final[dict[str, WatchAll]] = {
    openai.BASE_MODULE: openai.watch_all_openai,
    anthropic.BASE_MODULE: anthropic.watch_all_anthropic,
    google_genai.BASE_MODULE: google_genai.watch_all_google_genai,
    bedrock.BASE_MODULE: bedrock.watch_all_bedrock,
    litellm.BASE_MODULE: litellm.watch_all_litellm,
}


class ObservedEverything:
    """All clients of the process, observed until `close()`, or until the end of a `with` block."""

    def __init__(self, watched: WatchedClient) -> None:
        self._watched = watched
        self._restores: list[Restore] = []
        hooks = {name: partial(self._watch, watch) for name, watch in _PACKAGES.items()}
        self._hooks = ImportHooks(hooks)

    def close(self) -> None:
        """Observe no more calls, and give the classes of the packages their own methods back."""
        self._hooks.close()
        self._watched.close()
        while self._restores:
            with boundary.contain("no longer observing a package"):
                self._restores.pop()()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _watch(self, watch: WatchAll, module: ModuleType) -> None:
        self._restores += watch(module, self._watched)
