"""Compare what the product concludes with what the recordings show, and write benchmarks/TRUTH.md.

The recordings are those of the folder that WINDOWPANE_SESSIONS_DIR names and of the folders `corpus` and
`corpus-new` beside it. Constants are tuned on one half of the sessions by a hash of their id; the tables report
the other half.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from truth.compactions import compactions_section
from truth.money import money_section
from truth.needed_again import needed_again_section
from truth.outputs import outputs_section
from truth.recordings import Session, recorded_sessions
from truth.window import window_section

SECTIONS: dict[str, Callable[[Sequence[Session]], list[str]]] = {
    "Window, forecasts and warnings": window_section,
    "Compactions": compactions_section,
    "Content that was needed again": needed_again_section,
    "Money": money_section,
    "Estimated outputs": outputs_section,
}
"""The lines of each section of the document, by its title."""


def main() -> int:
    """Write the document; 0 also where there are no recordings."""
    sessions = recorded_sessions()
    if not sessions:
        return 0
    lines = ["# Conclusions against recordings", "", f"{__doc__}".strip(), ""]
    for title, section in SECTIONS.items():
        lines += [f"## {title}", "", *section(sessions), ""]
    Path(__file__).with_name("TRUTH.md").write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
