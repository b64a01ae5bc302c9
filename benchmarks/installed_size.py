"""Size of an installation: what each dependency and each extra brings, for the tables of docs/operating.md.

Run `python benchmarks/installed_size.py` with the interpreter of an environment that holds the extras to measure,
after `pip install --no-compile windowpane-observability[all]`. What is not installed is not listed. `--write`
writes the sizes into the page.
A dependency of ours is counted alone; any other library that several require is counted with the first of them.
An extra is counted with all it requires beyond the library alone, also what another extra brings as well.
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


def size_bytes(installed: Distribution) -> int:
    """Return the bytes of a distribution's files, compiled modules not counted."""
    paths = (installed.locate_file(file) for file in installed.files or () if file.suffix != ".pyc")
    return sum(path.stat().st_size for path in paths if path.is_file())


def megabytes(names: list[str]) -> float:
    return sum(size_bytes(distribution(name)) for name in names) / 1e6


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


def main() -> None:
    rows = library()
    alone = {name for names in rows.values() for name in names}
    page = PAGE.read_text(encoding="utf-8")
    for name, brought in sorted(rows.items(), key=lambda row: -megabytes(row[1])):
        cells = f"| {name} | {megabytes(brought):.1f} | {', '.join(brought[1:]) or '–'} |"
        print(cells)
        page = re.sub(rf"^\| {re.escape(name)} \|[^|]*\|[^|]*\|", cells, page, flags=re.MULTILINE)
    total = f"is {megabytes(sorted(alone)):.0f} MB in {len(alone)} packages"
    print(f"the library alone {total}")
    page = re.sub(r"is \d+ MB in \d+ packages", total, page)
    for name, packages in sorted(extras(alone).items()):
        largest = sorted(packages, key=lambda one: -megabytes([one]))[:5]
        cells = f"| `{name}` | {megabytes(packages):.0f} | {len(packages)} | {', '.join(largest)} |"
        print(cells)
        page = re.sub(rf"^\| `{name}` \|[^|]*\|[^|]*\|[^|]*\|", cells, page, flags=re.MULTILINE)
    if "--write" in sys.argv:
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
