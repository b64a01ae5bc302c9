"""Run benchmarks and write what each printed to RESULTS.md, with the command that made it.

Usage: python benchmarks/write_results.py [--slow] [NAME…]     (names without `bench_`; default: all but the slow)

A section whose benchmark is not run stays as it was. Values are ratios against a floor of the same run;
absolute times are this machine's and move with its load.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from policies.results import policies_section

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "RESULTS.md"
SLOW = ("dashboard",)
"""Take many minutes: run when named, or with --slow."""
ELSEWHERE = ("policies", "truth", "alerts")
"""Have their own reports; run when named."""
BESIDE = ("peers",)
"""Need a program of others; run when named."""

HEAD = """# Benchmark results

Written by `python benchmarks/write_results.py`: Python {python}, {cores} cores, {system}.
Each value is a ratio against a floor of the same run where marked so; absolute times move with the machine.
"""


def names(requested: list[str]) -> list[str]:
    available = sorted(path.stem.removeprefix("bench_") for path in FOLDER.glob("bench_*.py"))
    wanted = {*requested, *(SLOW if "--slow" in requested else ())} - {"--slow"}
    unknown = wanted - set(available)
    if unknown:
        raise SystemExit(f"no such benchmark: {', '.join(sorted(unknown))}; there are: {', '.join(available)}")
    return [name for name in available if (name in wanted if wanted else name not in SLOW + ELSEWHERE + BESIDE)]


def previous_sections() -> dict[str, str]:
    """The sections of the last results by name."""
    if not RESULTS.exists():
        return {}
    parts = RESULTS.read_text(encoding="utf-8").split("\n## ")[1:]
    return {part.split("\n", 1)[0]: f"## {part.rstrip()}\n" for part in parts}


def run(name: str) -> str:
    script = FOLDER / f"bench_{name}.py"
    summary = script.read_text(encoding="utf-8").split('"""')[1].strip().splitlines()[0]
    started = time.perf_counter()
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    took = time.perf_counter() - started
    print(done.stdout, end="")
    if done.returncode:
        print(done.stderr, file=sys.stderr)
    output = done.stdout.rstrip()
    if done.returncode:  # 1 is a goal that is missed, where something was printed
        output += f"\nfailed with exit code {done.returncode}"
    command = f"`python benchmarks/bench_{name}.py` ({took:.0f} s, {datetime.now(UTC):%Y-%m-%d})"
    return f"## {name}\n\n{summary}\n\n{command}\n\n```\n{output}\n```\n"


def main() -> None:
    sections = previous_sections()
    for name in names(sys.argv[1:]):
        print(f"== {name}", flush=True)
        sections[name] = run(name)
        head = HEAD.format(
            python=platform.python_version(),
            cores=os.cpu_count(),
            system=f"{platform.system()} {platform.machine()}",
        )
        if policies := policies_section():
            sections["policies"] = policies
        RESULTS.write_text("\n".join([head, *(sections[name] for name in sorted(sections))]), encoding="utf-8")


if __name__ == "__main__":
    main()
