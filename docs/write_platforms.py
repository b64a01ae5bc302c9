"""Ask the package index for which systems the libraries of the package have wheels, and write the table.

Usage: python docs/write_platforms.py

Asks pip to resolve the libraries of the package, and of each extra, for each system and Python, with wheels only.
Nothing is installed. The table is of the day on which it was written.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "install.md"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
SYSTEMS = {
    "Linux x86-64": ("Linux", "x86_64", "linux", ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")),
    "Linux ARM": ("Linux", "aarch64", "linux", ("manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64")),
    "Alpine x86-64": ("Linux", "x86_64", "linux", ("musllinux_1_2_x86_64", "musllinux_1_1_x86_64")),
    "macOS ARM": ("Darwin", "arm64", "darwin", ("macosx_14_0_arm64",)),
    "macOS x86-64": ("Darwin", "x86_64", "darwin", ("macosx_14_0_x86_64",)),
    "Windows x86-64": ("Windows", "AMD64", "win32", ("win_amd64",)),
    "Windows ARM": ("Windows", "ARM64", "win32", ("win_arm64",)),
}  # fmt: skip
"""Name to `platform_system`, `platform_machine`, `sys_platform` and the tags of its wheels."""
_TABLE = re.compile(r"(<!-- platforms: [^>]*-->\n).*?(<!-- /platforms -->)", re.DOTALL)


def requirements(project: dict[str, Any], extra: str, system: str, python: str) -> list[str]:
    """Return what an extra requires on a system, or the package alone without one; ours are followed."""
    name, machine, platform, _ = SYSTEMS[system]
    environment = {
        "platform_system": name, "platform_machine": machine, "sys_platform": platform,
        "os_name": "nt" if platform == "win32" else "posix", "python_version": python,
        "python_full_version": f"{python}.0", "implementation_name": "cpython", "extra": "",
    }  # fmt: skip
    listed = project["dependencies"] if not extra else project["optional-dependencies"][extra]
    found: list[str] = []
    for one in map(Requirement, listed):
        if one.name == project["name"]:
            found += [text for inner in one.extras for text in requirements(project, inner, system, python)]
        elif one.marker is None or one.marker.evaluate(environment):
            one.marker = None
            found.append(str(one))
    return found


def missing(needed: list[str], system: str, python: str) -> str:
    """Return the library without a wheel for a system and Python; empty where all have one."""
    if not needed:
        return ""
    tags = [argument for tag in SYSTEMS[system][3] for argument in ("--platform", tag)]
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", "--ignore-installed", "--target=unused"]
    options = ["--only-binary=:all:", f"--python-version={python}", "--implementation=cp", *tags]
    done = subprocess.run([*command, *options, *needed], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return ""
    names = re.findall(r"No matching distribution found for ([\w.-]+)", done.stderr)
    return names[-1] if names else done.stderr.strip().splitlines()[-1][:80]


def cell(project: dict[str, Any], extra: str, system: str) -> str:
    """Return `yes`, or on which Pythons which library lacks a wheel."""
    lacking: dict[str, list[str]] = {}
    for python in PYTHONS:
        name = missing(requirements(project, extra, system, python), system, python)
        if name:
            lacking.setdefault(name, []).append(python)
    if not lacking:
        return "yes"
    parts = [
        f"no {name}" if len(pythons) == len(PYTHONS) else f"no {name} on {', '.join(pythons)}"
        for name, pythons in lacking.items()
    ]
    return "; ".join(parts)


def main() -> None:
    """Write the table into the page."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    extras = ["", *(name for name in project["optional-dependencies"] if name not in ("all", "dev"))]
    cases = [(extra, system) for extra in extras for system in SYSTEMS]
    with ThreadPoolExecutor(4) as pool:
        cells = dict(zip(cases, pool.map(lambda case: cell(project, *case), cases), strict=True))
    rows = [f"| {' | '.join(['installed', *SYSTEMS])} |", f"|{' --- |' * (len(SYSTEMS) + 1)}"]
    rows += [
        f"| {f'`[{extra}]`' if extra else 'the library'} | {' | '.join(cells[extra, system] for system in SYSTEMS)} |"
        for extra in extras
    ]
    day = datetime.now(UTC).date().isoformat()
    table = "\n".join(rows)
    note = f"As the index was on {day}, for Python {', '.join(PYTHONS)}:"
    text, count = _TABLE.subn(
        lambda match: f"{match[1]}\n{note}\n\n{table}\n\n{match[2]}", PAGE.read_text(encoding="utf-8")
    )
    if count != 1:
        raise SystemExit(f"{PAGE} has {count} places for the table, expected 1")
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
