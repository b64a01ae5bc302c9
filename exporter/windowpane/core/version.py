"""The names of the package and of its distribution, and the installed version."""

from __future__ import annotations

from functools import cache
from typing import Final

PACKAGE: Final = "windowpane"
"""Name that is imported, of the command, and of OpenTelemetry's service and scope."""
DISTRIBUTION: Final = "windowpane-observability"
"""Name that pip installs. On the package index `windowpane` is another project."""


@cache
def package_version() -> str:
    """Return the installed version, or `0+source` for a checkout that was never installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return "0+source"


def install_command(extra: str) -> str:
    """Return the command that installs the optional libraries of *extra*."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"
