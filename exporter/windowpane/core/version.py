"""The names of the package and of its distribution, and the installed version."""

from __future__ import annotations

import re
import sys
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
    """Return the command that installs the optional libraries of *extra*; under uvx, one that runs with them."""
    requirement = f"'{DISTRIBUTION}[{extra}]'"
    return f"uvx --from {requirement} {PACKAGE}" if _is_uvx() else f"pip install {requirement}"


def _is_uvx() -> bool:
    """Return whether this environment is one that uvx made for one run, so that nothing can be added to it."""
    return re.search(r"[/\\]uv[/\\](?:cache[/\\])?archive-v\d+[/\\]", sys.prefix) is not None
