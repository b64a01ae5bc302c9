"""Run coding agents from npm with every door open and write what each door counted to AGENTS.md.

Usage: python benchmarks/write_agents.py [NAME…]     (default: all)

A provider on loopback reports the tokens of every call; a door is right that records one session with exactly
these. A section whose agent is not run stays as it was. Needs npm; an agent takes some minutes.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "exporter")]

from tests.providers.coding_agents import AGENTS, TOGETHER, Cell, cells, play, together_cell  # noqa: E402
from tests.providers.npm_programs import release  # noqa: E402

RESULTS = Path(__file__).with_name("AGENTS.md")
HEAD = """# Coding agents through every door

Written by `python benchmarks/write_agents.py`. Each agent does one task against a scripted provider: it reads
a file, runs a command, edits a file, starts a sub-agent, is compacted and continues. `run`, `watch`, `import`,
hooks and OTLP observe it at the same time, each with a separate store; *together* is one store for all.
*Right* is one session whose calls, input, cache and output are those that the provider reported, with its
compactions and its sub-agent.
"""
COLUMNS = ("door", "right", "sessions", "calls", "input", "cache", "output", "compactions", "sub-agent's calls")


def section(name: str) -> str:
    """Run one agent twice and return its section."""
    agent = AGENTS[name]
    with tempfile.TemporaryDirectory() as folder:
        found = cells(play(name, Path(folder) / "apart"))
        found[TOGETHER] = together_cell(play(name, Path(folder) / "together", together=True))
    rows = [" | ".join(row(door, cell)) for door, cell in found.items()]
    table = "\n".join(f"| {line} |" for line in (" | ".join(COLUMNS), " | ".join("---" for _ in COLUMNS), *rows))
    return f"## {name}\n\nRelease {release(agent.program)}, model {agent.model}.\n\n{table}\n"


def row(door: str, cell: Cell) -> list[str]:
    """Return a row: what was recorded, and what was reported where it differs."""
    pairs = [
        (cell.sessions, 1), *zip(cell.recorded, cell.reported, strict=True),
        (cell.compactions, cell.compactions_reported), (cell.subagents.calls, cell.subagents_reported.calls),
    ]  # fmt: skip
    return [door, "yes" if cell.is_right else "no", *(counted(*pair) for pair in pairs)]


def counted(recorded: int, reported: int) -> str:
    """Return a count."""
    return f"{recorded:,}" if recorded == reported else f"{recorded:,} of {reported:,}"


def main(names: list[str]) -> None:
    """Replace the sections of *names*."""
    text = RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else ""
    sections = {
        match[1]: match[0].strip() + "\n" for match in re.finditer(r"## (\S+)\n.*?(?=\n## |\Z)", text, re.DOTALL)
    }
    for name in names or list(AGENTS):
        sections[name] = section(name)
        RESULTS.write_text(
            "\n".join([HEAD, *(sections[one] for one in AGENTS if one in sections)]), encoding="utf-8"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
