"""Size of an installation without extras: what each dependency brings, for the table of docs/operating.md.

Run `python benchmarks/installed_size.py` with the interpreter of an environment that holds nothing else, after
`pip install --no-compile windowpane-observability`, or `.` in a checkout. `--write` writes the sizes into the
page.
A dependency of ours is counted alone; any other library that several require is counted with the first of them.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

OURS = "windowpane-observability"
PAGE = Path(__file__).parents[1] / "docs" / "operating.md"


def size_bytes(installed: Distribution) -> int:
    """Return the bytes of a distribution's files, compiled modules not counted."""
    paths = (installed.locate_file(file) for file in installed.files or () if file.suffix != ".pyc")
    return sum(path.stat().st_size for path in paths if path.is_file())


def required(installed: Distribution) -> list[str]:
    """Return the names that a distribution requires without its extras."""
    requirements = [text for text in installed.requires or () if "extra ==" not in text]
    names = [re.split(r"[^A-Za-z0-9._-]", text, maxsplit=1)[0] for text in requirements]
    return [re.sub(r"[-_.]+", "-", name).lower() for name in names]


def with_requirements(name: str, counted: set[str]) -> list[str]:
    """Return *name* and the libraries it brings that are not *counted*; those of other platforms are absent."""
    try:
        installed = distribution(name)
    except PackageNotFoundError:
        return []
    others = [other for other in required(installed) if other not in counted]
    counted.update(others)
    return [name, *(one for other in others for one in with_requirements(other, counted))]


def main() -> None:
    ours = distribution(OURS)
    counted = {OURS, *required(ours)}
    rows = [(OURS, [OURS])]
    rows += [(name, with_requirements(name, counted)) for name in required(ours)]
    sizes = {name: sum(size_bytes(distribution(one)) for one in brought) / 1e6 for name, brought in rows}
    page = PAGE.read_text(encoding="utf-8")
    for name, brought in sorted(rows, key=lambda row: -sizes[row[0]]):
        cells = f"| {name} | {sizes[name]:.1f} | {', '.join(brought[1:]) or '–'} |"
        print(cells)
        page = re.sub(rf"^\| {re.escape(name)} \|[^|]*\|[^|]*\|", cells, page, flags=re.MULTILINE)
    megabytes, packages = sum(sizes.values()), sum(map(len, dict(rows).values()))
    print(f"total {megabytes:.1f} MB in {packages} packages")
    if "--write" in sys.argv:
        total = f"is {megabytes:.0f} MB in {packages} packages"
        PAGE.write_text(re.sub(r"is \d+ MB in \d+ packages", total, page), encoding="utf-8")


if __name__ == "__main__":
    main()
