"""Build the documentation site, without a network.

Usage: python docs/build_site.py [--out build/site]

The pages are those of this folder, documents of the repository, and the reference that `reference.py` generates
from the code. Zensical builds them strictly: a link or an anchor that leads nowhere ends the build. Each page is
also written as Markdown beside its HTML, and `llms.txt` lists them.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import reference

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
DOCUMENTS = {
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "CODE_OF_CONDUCT.md": "code-of-conduct.md",
    "grafana/runbook.md": "runbook.md",
    "benchmarks/forecast/README.md": "benchmarks/forecast.md",
    **{f"benchmarks/{path.name}": f"benchmarks/{path.name.lower()}" for path in ROOT.glob("benchmarks/*.md")},
    **{f"docs/{path.name}": path.name for path in DOCS.glob("*.md")},
}
"""File of the repository to page of the site."""
_LINK = re.compile(r"(!?\[[^\]]*\]\()([^)\s#]*)(#[^)\s]*)?(\))")
_CODE = re.compile(r"(^```.*?^```|`[^`\n]+`)", re.DOTALL | re.MULTILINE)


def main() -> int:
    """Build the site; return the exit code of the build."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "site")
    out = parser.parse_args().out.resolve()
    assemble(out)
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    done = subprocess.run(command, cwd=out, check=False, env={**os.environ, "NO_COLOR": "1"})
    if done.returncode == 0:
        write_twins(out / "pages", out / "site")
    return done.returncode


def assemble(out: Path) -> None:
    """Write the sources of the site into *out*."""
    pages = out / "pages"
    shutil.rmtree(pages, ignore_errors=True)
    pages.mkdir(parents=True)
    shutil.copy(DOCS / "zensical.toml", out / "zensical.toml")
    shutil.copytree(DOCS / "images", pages / "images")
    for source, page in DOCUMENTS.items():
        if (ROOT / source).exists():
            text = (ROOT / source).read_text(encoding="utf-8")
            _write(pages / page, with_site_links(text, source=source, page=page))
    for name, text in reference.files():
        _write(pages / name, text)


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def with_site_links(text: str, *, source: str, page: str) -> str:
    """Return a document with its relative links pointing at pages of the site, or at files of the repository."""

    def link(match: re.Match[str]) -> str:
        start, target, anchor, end = match[1], match[2], match[3] or "", match[4]
        if not target or "://" in target or target.startswith("mailto:"):
            return match[0]
        name = os.path.normpath(os.path.join(os.path.dirname(source), target))  # noqa: PTH118, PTH120  # not resolved
        if name.startswith("docs/images/"):
            return f"{start}{_from(page, name.removeprefix('docs/'))}{end}"
        if name in DOCUMENTS:
            return f"{start}{_from(page, DOCUMENTS[name])}{anchor}{end}"
        if name.startswith("docs/reference/"):
            return f"{start}{_from(page, name.removeprefix('docs/'))}{anchor}{end}"
        return f"{start[1:-2]} (`{name}`)"  # a file that is not a page

    parts = _CODE.split(text)  # every other part is code
    return "".join(part if number % 2 else _LINK.sub(link, part) for number, part in enumerate(parts))


def _from(page: str, target: str) -> str:
    return os.path.relpath(target, Path(page).parent)


def write_twins(pages: Path, site: Path) -> None:
    """Write the Markdown of each page beside its HTML, and the lists of them for language models."""
    with (DOCS / "zensical.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    lines = [f"# {project['site_name']}", "", f"> {project['site_description']}"]
    whole = []
    for section, title, page in listed(project["nav"]):
        text = (pages / page).read_text(encoding="utf-8")
        _write(site / page, text)
        whole.append(text)
        if section and f"## {section}" not in lines:
            lines += ["", f"## {section}", ""]
        elif not section and len(lines) == 3:
            lines.append("")
        lines.append(f"- [{title}]({page})")
    _write(site / "llms.txt", "\n".join(lines) + "\n")
    _write(site / "llms-full.txt", "\n\n".join(whole))


def listed(nav: list[Mapping[str, Any]], section: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield section, title and file of each page in the navigation."""
    for entry in nav:
        for title, value in entry.items():
            if isinstance(value, str):
                yield section, title, value
            else:
                yield from listed(value, title)


if __name__ == "__main__":
    sys.exit(main())
