"""`python -m windowpane`."""

from __future__ import annotations

from windowpane.cli import main

main()
