"""Size of an installation: what each dependency and each extra brings, for the tables of docs/operating.md.

Run `python benchmarks/installed_size.py` with the interpreter of an environment that holds the extras to measure,
after `pip install windowpane-observability[all]`. What is not installed is not listed. `--write` writes the sizes
into the page.
A dependency of ours is counted alone; any other library that several require is counted with the first of them.
An extra is counted with all it requires beyond the library alone, also what another extra brings as well.
Compiled modules, which pip makes and uv does not, are counted only in the column that names them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

OURS = "windowpane-observability"
PAGE = Path(__file__).parents[1] / "docs" / "operating.md"
LARGE = 2.0
"""Megabytes from which on a package of the dashboard has its own row."""


def size_bytes(installed: Distribution, *, compiled: bool) -> int:
    """Return the bytes of a distribution's files, with its *compiled* modules or without."""
    files = (file for file in installed.files or () if compiled or file.suffix != ".pyc")
    paths = map(installed.locate_file, files)
    return sum(path.stat().st_size for path in paths if path.is_file())


def megabytes(names: list[str], *, compiled: bool = False) -> float:
    return sum(size_bytes(distribution(name), compiled=compiled) for name in names) / 1e6


def required(name: str, extras: tuple[str, ...] = ()) -> Iterator[Requirement]:
    """Yield what a distribution requires on this platform, alone or with extras."""
    for requirement in map(Requirement, distribution(name).requires or ()):
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            requirement.name = re.sub(r"[-_.]+", "-", requirement.name).lower()
            yield requirement


def with_requirements(wanted: Requirement, counted: set[str]) -> list[str]:
    """Return what is installed for a requirement and is not *counted*, which it is then."""
    try:
        distribution(wanted.name)
    except PackageNotFoundError:
        return []
    names = [] if wanted.name in counted else [wanted.name]
    key = f"{wanted.name}[{','.join(sorted(wanted.extras))}]"
    if key in counted:
        return names
    counted.update((wanted.name, key))
    others = [one for one in required(wanted.name, tuple(wanted.extras)) if one.extras or one.name not in counted]
    return names + [name for one in others for name in with_requirements(one, counted)]


def library() -> dict[str, list[str]]:
    """Return our dependencies, each with itself and the libraries that it brings."""
    counted = {OURS, *(one.name for one in required(OURS))}
    rows = {OURS: [OURS]}
    for one in required(OURS):
        rows[one.name] = [one.name, *with_requirements(one, counted)]
    return rows


def extras(alone: set[str]) -> dict[str, list[str]]:
    """Return what each extra brings beyond the library *alone*, without those that bring nothing."""
    names = distribution(OURS).metadata.get_all("Provides-Extra") or []
    brought = {name: with_requirements(Requirement(f"{OURS}[{name}]"), set(alone)) for name in names}
    return {name: packages for name, packages in brought.items() if packages and name != "dev"}


def dashboard_table(alone: set[str]) -> str:
    """Return the table of what the dashboard brings: the large packages, and what Streamlit does not require."""
    streamlit = with_requirements(Requirement("streamlit"), set(alone))
    brought = extras(alone)["dashboard"]
    ours = [name for name in brought if name not in streamlit]
    large = [name for name in brought if name in ours or megabytes([name]) >= LARGE]
    small = [name for name in brought if name not in large]
    rows = [(name, [name], "Windowpane" if name in ours else "Streamlit") for name in large]
    rows.sort(key=lambda row: -megabytes(row[1]))
    rows += [
        (f"{len(small)} others", small, "Streamlit"),
        ("Streamlit with all it requires", streamlit, ""),
        ("the extra", brought, ""),
    ]
    lines = ["| package | MB | with compiled modules | required by |", "| --- | --- | --- | --- |"]
    lines += [
        f"| {name} | {megabytes(names):.0f} | {megabytes(names, compiled=True):.0f} | {by} |"
        for name, names, by in rows
    ]
    return "\n".join(lines)


def main() -> None:
    rows = library()
    alone = {name for names in rows.values() for name in names}
    page = PAGE.read_text(encoding="utf-8")
    for name, brought in sorted(rows.items(), key=lambda row: -megabytes(row[1])):
        cells = f"| {name} | {megabytes(brought):.1f} | {', '.join(brought[1:]) or '–'} |"
        print(cells)
        page = re.sub(rf"^\| {re.escape(name)} \|[^|]*\|[^|]*\|", cells, page, flags=re.MULTILINE)
    names = sorted(alone)
    total = f"{megabytes(names):.0f} MB in {len(alone)} packages, {megabytes(names, compiled=True):.0f} MB with"
    print(f"the library alone is {total} compiled modules")
    page = re.sub(r"\d+ MB in \d+ packages, \d+ MB with", total, page)
    for name, packages in sorted(extras(alone).items()):
        largest = sorted(packages, key=lambda one: -megabytes([one]))[:5]
        cells = f"| `{name}` | {megabytes(packages):.0f} | {len(packages)} | {', '.join(largest)} |"
        print(cells)
        page = re.sub(rf"^\| `{name}` \|[^|]*\|[^|]*\|[^|]*\|", cells, page, flags=re.MULTILINE)
    table = dashboard_table(alone)
    print(table)
    page = re.sub(r"\| package \| MB \|[^\n]*\n(\|[^\n]*\n)+", f"{table}\n", page)
    if "--write" in sys.argv:
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
