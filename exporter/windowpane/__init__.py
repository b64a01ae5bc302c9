"""Observability for the context windows of LLM agents.

`start()` sets up the outputs of a process; `ContextWindowManager` keeps one session's window healthy and reports
everything that happens to it. Names are loaded when they are first used, so importing costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from windowpane.exceptions import IrreducibleContextError, WindowpaneError
    from windowpane.fidelity.judge.sampling import Sample, SampledJudge
    from windowpane.observer.clients.api import observe, session
    from windowpane.runtime.managers import AsyncContextWindowManager, ContextWindowManager
    from windowpane.runtime.start import start, stop

    __version__: str

__all__ = [
    "AsyncContextWindowManager",
    "ContextWindowManager",
    "IrreducibleContextError",
    "Sample",
    "SampledJudge",
    "WindowpaneError",
    "__version__",
    "observe",
    "session",
    "start",
    "stop",
]

_HOMES: Final = {
    "AsyncContextWindowManager": "windowpane.runtime.managers",
    "ContextWindowManager": "windowpane.runtime.managers",
    "IrreducibleContextError": "windowpane.exceptions",
    "Sample": "windowpane.fidelity.judge.sampling",
    "SampledJudge": "windowpane.fidelity.judge.sampling",
    "WindowpaneError": "windowpane.exceptions",
    "observe": "windowpane.observer.clients.api",
    "session": "windowpane.observer.clients.api",
    "start": "windowpane.runtime.start",
    "stop": "windowpane.runtime.start",
}
"""Public name to the module that defines it."""


def __getattr__(name: str) -> Any:
    """A public name, from its module; the version, from the installed package."""
    if name == "__version__":
        from windowpane.core.version import package_version

        return package_version()
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)
