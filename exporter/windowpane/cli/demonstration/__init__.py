"""The demo: recorded sessions from the package, played into a fresh store with times of today."""

from __future__ import annotations

from windowpane.cli.demonstration.play import LoadedSession, load

__all__ = ["LoadedSession", "load"]
