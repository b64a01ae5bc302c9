"""Ask the package index for which systems the libraries of the package have wheels, and write the table.

Usage: python docs/write_platforms.py          (needs uv)

uv resolves the libraries of the package, and of each extra, for each system and Python, with wheels only. Nothing
is installed. The table is of the day on which it was written.
"""

from __future__ import annotations

import re
import subprocess
import tomllib
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "install.md"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
SYSTEMS = {
    "Linux x86-64": "x86_64-manylinux_2_28",
    "Linux ARM": "aarch64-manylinux_2_28",
    "Alpine x86-64": "x86_64-unknown-linux-musl",
    "macOS ARM": "aarch64-apple-darwin",
    "macOS x86-64": "x86_64-apple-darwin",
    "Windows x86-64": "x86_64-pc-windows-msvc",
    "Windows ARM": "aarch64-pc-windows-msvc",
}
"""Name to uv's name of the system."""
_TABLE = re.compile(r"(<!-- platforms: [^>]*-->\n).*?(<!-- /platforms -->)", re.DOTALL)
_MISSING = re.compile(r"([\w.-]+)(?:\{[^}]*\})?(?:[<>=]+[\w.]+)? ha(?:s|ve) no (?:usable )?wheels")


def missing(extra: str, system: str, python: str) -> str:
    """Return the library without a wheel for a system and Python; empty where all have one."""
    command = ["uv", "pip", "compile", "pyproject.toml", "--quiet", "--no-header", "--only-binary", ":all:"]
    target = [
        "--python-platform",
        SYSTEMS[system],
        "--python-version",
        python,
        *(["--extra", extra] if extra else []),
    ]
    done = subprocess.run([*command, *target], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return ""
    text = " ".join(done.stderr.split())
    match = _MISSING.search(text)
    if match is None:
        raise SystemExit(text)
    return match[1]


def cells(extras: list[str], system: str) -> list[str]:
    """Return for each extra `yes`, or on which Pythons which library lacks a wheel."""
    with ThreadPoolExecutor(len(PYTHONS)) as pool:
        if not any(pool.map(lambda python: missing("all", system, python), PYTHONS)):
            return ["yes"] * len(extras)
        return [cell([*pool.map(partial(missing, extra, system), PYTHONS)]) for extra in extras]


def cell(names: list[str]) -> str:
    """Return the text for the libraries without a wheel, one for each Python."""
    lacking: dict[str, list[str]] = {}
    for name, python in zip(names, PYTHONS, strict=True):
        if name:
            lacking.setdefault(name, []).append(python)
    parts = [
        f"no {name}" if len(pythons) == len(PYTHONS) else f"no {name} on {', '.join(pythons)}"
        for name, pythons in lacking.items()
    ]
    return "; ".join(parts) or "yes"


def main() -> None:
    """Write the table into the page."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        optional = tomllib.load(file)["project"]["optional-dependencies"]
    extras = ["", *(name for name in optional if name not in ("all", "dev"))]
    with ThreadPoolExecutor(len(SYSTEMS)) as pool:
        columns = list(pool.map(lambda system: cells(extras, system), SYSTEMS))
    rows = [["installed", *SYSTEMS], ["---"] * (len(SYSTEMS) + 1)]
    for extra, *texts in zip(extras, *columns, strict=True):
        rows.append([f"`[{extra}]`" if extra else "the library", *texts])
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    note = f"As the index was on {datetime.now(UTC).date()}, for Python {', '.join(PYTHONS)}:"
    text, count = _TABLE.subn(
        lambda match: f"{match[1]}\n{note}\n\n{table}\n\n{match[2]}", PAGE.read_text(encoding="utf-8")
    )
    if count != 1:
        raise SystemExit(f"{PAGE} has {count} places for the table, expected 1")
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
