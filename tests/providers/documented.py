"""The code blocks of the README and the docs, as they are printed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def printed(page: str, line: str, *, language: str = "python") -> str:
    """Return the code block of *page* that contains *line*."""
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)
    (block,) = (one for one in blocks if line in one)
    return str(block)


def execute(page: str, line: str, **names: Any) -> dict[str, Any]:
    """Run the block of *page* that contains *line* with the *names* that it presumes; return all names."""
    exec(compile(printed(page, line), page, "exec"), names)  # our own docs
    return names
