"""The code blocks of the README and the docs: found, and sorted by how each is checked.

`python -m tests.docs.code_blocks` prints how many blocks are run and parsed, and the reason for each other one.
A comment in the Markdown, `<!-- not run: REASON -->` on the line above a block, excuses it.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

ROOT: Final = Path(__file__).resolve().parents[2]
PAGES: Final = [
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")),
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "benchmarks").glob("*/README.md")),
]
ELSEWHERE: Final[Mapping[str, str]] = {
    "clickhouse-client": "needs a ClickHouse server",
    "createdb": "needs a PostgreSQL server; tests/store runs one",
    "curl": "needs the Prometheus of the page",
    "docker": "needs a Docker daemon",
    "helm": "needs a cluster; tests/deploy renders the chart",
    "kubectl": "needs a cluster",
    "make": "installs; a contributor and CI run it",
    "pip": "installs from a package index; tests/test_packaging.py does",
    "pytest": "the tests themselves",
    "systemctl": "needs systemd as the first process; tests/deploy verifies the units",
    "uvx": "installs from a package index; tests/test_packaging.py does",
}
"""Programs that are replaced by one that records its arguments, with the reason; the arguments are checked."""
Treatment = Literal["run", "parsed", "shown", "not run"]
TREATMENTS: Final[Mapping[str, Treatment]] = {
    "python": "run", "sh": "run", "sql": "run", "promql": "parsed", "yaml": "parsed", "text": "shown",
}  # fmt: skip
"""Language to check; output, formulas and drawings are `text`."""
_BLOCK = re.compile(
    r"^(?:<!-- not run: (?P<excuse>.+?) -->\n)?(?P<indent> *)```(?P<language>[^\n]*)\n(?P<code>.*?)^ *```$",
    re.MULTILINE | re.DOTALL,
)
_SEPARATORS = {"&&", "||", "|", ";", "&"}


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block."""

    page: str
    line: int
    language: str
    code: str
    excuse: str
    """The reason for which it is not run; empty for most."""

    def __str__(self) -> str:
        """Return its position."""
        return f"{self.page}:{self.line}"

    @property
    def treatment(self) -> Treatment:
        """The check of its language, unless it is excused; KeyError for an unknown language."""
        treatment = TREATMENTS[self.language]
        return "not run" if self.excuse else treatment


def blocks(*languages: str) -> list[Block]:
    """Return the blocks of all pages, of these languages or of every one."""
    return [block for page in PAGES for block in blocks_of(page) if block.language in languages or not languages]


def blocks_of(page: str) -> list[Block]:
    """Return the blocks of a page, from the top."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [
        Block(
            page,
            text.count("\n", 0, match.start("code")),
            match["language"],
            match["code"],
            match["excuse"] or "",
        )
        for match in _BLOCK.finditer(text)
    ]


def programs(script: str) -> Iterator[str]:
    """Yield the program of each command of a script."""
    for line in script.replace("\\\n", " ").splitlines():
        words = shlex.shlex(line, posix=True, punctuation_chars=True)
        words.whitespace_split = True
        starts = True
        for word in words:
            if word in _SEPARATORS:
                starts = True
            elif starts and not re.match(r"\w+=", word):
                yield Path(word).name
                starts = False


def summary() -> str:
    """Return the numbers of blocks by check, and the reasons for what is not run."""
    every = blocks()
    treatments = Counter(block.treatment for block in every)
    commands = Counter(
        name for block in every if block.language == "sh" and not block.excuse for name in programs(block.code)
    )
    elsewhere = {name: number for name, number in commands.items() if name in ELSEWHERE}
    lines = [
        ", ".join(f"{number} {name}" for name, number in treatments.most_common()) + f" of {len(every)} blocks"
    ]
    lines += [f"  {block}: not run: {block.excuse}" for block in every if block.excuse]
    lines.append(f"{commands.total() - sum(elsewhere.values())} commands run, {sum(elsewhere.values())} not:")
    lines += [f"  {number} {name}: {ELSEWHERE[name]}" for name, number in sorted(elsewhere.items())]
    return "\n".join(lines)


if __name__ == "__main__":
    print(summary())
