"""Watches every client of the installed packages, those that exist and those that are made later."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType, TracebackType
from typing import Final, Protocol, Self

from windowpane.sources.clients import anthropic, bedrock, dspy, google_adk, google_genai, litellm, openai
from windowpane.sources.clients.calls import WatchedClient, boundary
from windowpane.sources.clients.methods import Restore

Hook = Callable[[ModuleType], object]


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
    dspy.BASE_MODULE: dspy.watch_all_dspy,
    google_adk.BASE_MODULE: google_adk.watch_all_google_adk,
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


class ImportHooks(MetaPathFinder):
    """Runs hooks by the names of modules, until it is closed."""

    def __init__(self, hooks: Mapping[str, Hook]) -> None:
        self._waiting = dict(hooks)
        for name in hooks:
            module = sys.modules.get(name)
            if module is not None:
                self.run(module)
        sys.meta_path.insert(0, self)

    def close(self) -> None:
        """Run no more hooks."""
        self._waiting.clear()
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def run(self, module: ModuleType) -> None:
        """Run the hook of *module*, once; a failure is logged and never raised."""
        hook = self._waiting.pop(module.__name__, None)
        if hook is not None:
            with boundary.contain(f"observing {module.__name__}"):
                hook(module)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the description of a module by the other finders, with a loader that runs the hook too."""
        if fullname not in self._waiting:
            return None
        finders = [finder for finder in sys.meta_path if finder is not self]
        specs = (finder.find_spec(fullname, path, target) for finder in finders)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is not None and spec.loader is not None:
            spec.loader = _HookedLoader(spec.loader, self)
        return spec


class _HookedLoader(Loader):
    """Loads a module by its own loader, then runs the hook."""

    def __init__(self, loader: Loader, hooks: ImportHooks) -> None:
        self._loader = loader
        self._hooks = hooks

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader  # for what reads resources of the package by it
        self._loader.exec_module(module)
        self._hooks.run(module)
