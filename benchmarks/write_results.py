"""Run every benchmark and write what each printed to RESULTS.md, with the command that made it.

Usage: python benchmarks/write_results.py [NAME…]     (names without `bench_`; default: all)

Figures are ratios against a floor of the same run; absolute times are this machine's and move with its load.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from policies_results import policies_section

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "RESULTS.md"
SLOW = {"dashboard", "policies"}
"""Studies with a report or a store of their own; run when named."""

HEAD = """# Benchmark results

Written by `python benchmarks/write_results.py` on {when}: Python {python}, {cores} cores, {system}.
Each figure is a ratio against a floor of the same run where it says so; absolute times move with the machine.
"""


def names() -> list[str]:
    asked = sys.argv[1:]
    found = sorted(path.stem.removeprefix("bench_") for path in FOLDER.glob("bench_*.py"))
    return [name for name in found if name in asked] if asked else [name for name in found if name not in SLOW]


def run(name: str) -> str:
    script = FOLDER / f"bench_{name}.py"
    summary = script.read_text(encoding="utf-8").split('"""')[1].strip().splitlines()[0]
    started = time.perf_counter()
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    took = time.perf_counter() - started
    print(done.stdout, end="")
    if done.returncode:
        print(done.stderr, file=sys.stderr)
    said = done.stdout.rstrip() if done.returncode == 0 else f"failed with exit code {done.returncode}"
    return f"## {name}\n\n{summary}\n\n`python benchmarks/bench_{name}.py` ({took:.0f} s)\n\n```\n{said}\n```\n"


def main() -> None:
    sections = []
    for name in names():
        print(f"== {name}", flush=True)
        sections.append(run(name))
    if sys.argv[1:]:
        return
    head = HEAD.format(
        when=f"{datetime.now(UTC):%Y-%m-%d}",
        python=platform.python_version(),
        cores=os.cpu_count(),
        system=f"{platform.system()} {platform.machine()}",
    )
    if policies := policies_section():
        sections.append(policies)
    RESULTS.write_text("\n".join([head, *sections]), encoding="utf-8")
    print(f"wrote {RESULTS.name}")


if __name__ == "__main__":
    main()
