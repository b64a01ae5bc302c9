"""Values of wrong types at any path of the agents' recordings: rows, documents, folders and databases."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import built_recordings
import pytest
from test_fuzz import mutated, survives

WRONG = (
    None, True, False, -1, 0, 10**30, 1e308, float("nan"), float("inf"), "", "\x00", "\ud800", "x" * 5_000,
    [], {}, [[]], [None], {"a": None}, [{"type": "text"}], "REDACTED", "2026-13-45T99:99:99Z",
)  # fmt: skip


MAXIMUM_DEPTH = 12


def paths_in(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Return the paths of all values within *value*, down to a depth."""
    if len(path) > MAXIMUM_DEPTH:
        return []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, item in items for found in ((*path, key), *paths_in(item, (*path, key)))]


def with_wrong_types(value: object, random: Random) -> object:
    """Return a copy with up to four values replaced by odd ones, nested deeply, removed or doubled."""
    changed = copy.deepcopy(value)
    for _ in range(random.randint(1, 4)):
        *outer, last = random.choice(paths_in(changed) or [("none",)])
        holder = changed
        for key in outer:
            holder = holder[key]  # type: ignore[index]
        if not isinstance(holder, dict | list) or last not in (
            holder if isinstance(holder, dict) else range(len(holder))
        ):
            continue
        match random.randrange(8):
            case 0:
                del holder[last]  # type: ignore[arg-type]
            case 1 if isinstance(holder, list) and isinstance(last, int):
                holder.append(copy.deepcopy(holder[last]))
            case 2:
                nested: object = 1
                for _ in range(random.choice((20, 200))):
                    nested = [nested] if random.random() < 0.5 else {"a": nested}
                holder[last] = nested  # type: ignore[index]
            case _:
                holder[last] = copy.deepcopy(random.choice(WRONG))  # type: ignore[index]
    return changed


def write_rows(path: Path, rows: object) -> Path:
    values = rows if isinstance(rows, list) else [rows]
    path.write_text("".join(json.dumps(row) + "\n" for row in values))
    return path


MADE: dict[str, Callable[[], Any]] = {
    "gemini_cli": built_recordings.gemini_rows,
    "goose": built_recordings.goose_rows,
    "opencode": built_recordings.opencode_document,
    "qwen_code": built_recordings.qwen_rows,
}
DATABASES = {"goose": built_recordings.goose_database, "opencode": built_recordings.opencode_database}


def write_made(folder: Path, source: str, random: Random) -> Path:
    """Write one changed recording that was made of *source*; returns the path to read."""
    if source == "cline":
        for name, value in built_recordings.cline_files().items():
            (folder / name).write_text(json.dumps(with_wrong_types(value, random)))
        return folder
    made = with_wrong_types(MADE[source](), random)
    if source in DATABASES and random.random() < 0.3:
        return _database(folder, DATABASES[source], made, random)
    if source == "opencode":
        (folder / "a.json").write_text(json.dumps(made))
        return folder / "a.json"
    return write_rows(folder / "a.jsonl", made)


def _database(folder: Path, write: Callable[[Path, Any], None], value: Any, random: Random) -> Path:
    """Write a database, half of them with damaged bytes."""
    path = folder / "a.db"
    path.unlink(missing_ok=True)
    write(path, value)
    if random.random() < 0.5:
        path.write_bytes(mutated(path.read_bytes(), random))
    return path


@pytest.mark.timeout(0)
@pytest.mark.parametrize("source", ["cline", "gemini_cli", "goose", "opencode", "qwen_code"])
def test_wrong_types_at_any_path_are_read_or_refused(campaign, tmp_path: Path, source: str) -> None:
    folder = tmp_path / "task"
    folder.mkdir()
    attempts = campaign.attempts(sample=60, whole=100_000)
    survives(campaign, tmp_path, f"wrong types: {source}", partial(write_made, folder, source), attempts)
