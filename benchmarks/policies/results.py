"""The part of the study of the policies that stands in RESULTS.md: the verdicts, and a table a window.

Taken from POLICIES.md as it stands, so that other benchmarks can be run again without that study.
"""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).parents[1]
POLICIES = FOLDER / "POLICIES.md"
RESULTS = FOLDER / "RESULTS.md"
HEADING = "## policies"

INTRODUCTION = """Recorded sessions managed again under every policy and preset, beside truncation and keeping
the last N groups. Differences are default less other; what is measured, and how: [POLICIES.md](POLICIES.md).

`WINDOWPANE_SESSIONS_DIR=… python benchmarks/bench_policies.py`
"""


def policies_section() -> str:
    """Return the section of RESULTS.md; empty if the study was never made."""
    if not POLICIES.exists():
        return ""
    text = POLICIES.read_text(encoding="utf-8")
    lines = [HEADING, "", INTRODUCTION]
    for title, body in _sections(text, "## Regret of the default"):
        lines += [f"### {title}", "", body, ""]
    for chapter in ("# All sessions", "# Joined end to end"):
        for title, body in _sections(text.partition(f"\n{chapter}\n")[2].partition("\n# ")[0], "## "):
            table = re.search(r"(?:^\|.*\n)+", f"{body}\n", re.MULTILINE)
            if table is not None:
                lines += [f"### {title}", "", table.group().strip(), ""]
    return "\n".join(lines)


def refresh_results() -> None:
    """Replace the section in RESULTS.md."""
    section = policies_section()
    if not section or not RESULTS.exists():
        return
    text = RESULTS.read_text(encoding="utf-8")
    before, found, after = text.partition(f"\n{HEADING}\n")
    rest = re.search(r"^## ", after, re.MULTILINE) if found else None
    parts = [before.rstrip(), section.rstrip(), after[rest.start() :].rstrip() if rest else ""]
    RESULTS.write_text("\n\n".join(part for part in parts if part) + "\n", encoding="utf-8")


def _sections(text: str, prefix: str) -> list[tuple[str, str]]:
    """Return the titles that start with *prefix*, and the text below each."""
    found = re.findall(rf"^{re.escape(prefix)}(.*)\n((?:(?!^#).*\n?)*)", text, re.MULTILINE)
    retained = prefix.removeprefix("## ")
    return [(f"{retained}{title}".strip(), body.strip()) for title, body in found]
