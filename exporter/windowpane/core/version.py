"""The version of the installed package."""

from __future__ import annotations

from functools import cache
from typing import Final

PACKAGE: Final = "windowpane"
"""Name of the package, and of OpenTelemetry's service and scope."""


@cache
def package_version() -> str:
    """Return the installed version, or `0+source` for a checkout that was never installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(PACKAGE)
    except PackageNotFoundError:
        return "0+source"
