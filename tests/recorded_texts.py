"""The texts of recorded sessions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path


def strings(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for part in value.values():
                yield from strings(part)
        case list():
            for part in value:
                yield from strings(part)


def recorded_texts(folder: Path) -> Iterator[str]:
    """Yield every text of the recordings once."""
    seen: set[int] = set()
    for path in sorted(folder.rglob("*.json*")):
        content = path.read_text(errors="replace")
        for line in content.splitlines() if path.suffix == ".jsonl" else [content]:
            try:
                record = json.loads(line)
            except ValueError:
                record = line
            for text in strings(record):
                if hash(text) not in seen:
                    seen.add(hash(text))
                    yield text
