"""Observability for the context windows of LLM agents."""

from __future__ import annotations

__all__ = ["__version__"]


def __getattr__(name: str) -> str:
    """The version, read from the installed package only when asked for."""
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("windowpane")
        except PackageNotFoundError:
            return "0+source"  # run from a checkout that was never installed
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
