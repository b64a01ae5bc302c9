"""The table of docs/observing.md names no class that no test runs."""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).parent
PAGE = FOLDER.parents[1] / "docs" / "observing.md"
TABLE_START = "| you call your model with | the line to add | seen | not seen |"


def test_every_class_of_the_table_is_run_against_the_scripted_provider() -> None:
    table = PAGE.read_text(encoding="utf-8").split(TABLE_START)[1].split("\n\n")[0]
    cells = [cell for row in table.splitlines() for cell in row.split("|")[1:3]]
    names = set(re.findall(r"`(?:\w+\.)?([A-Z]\w+)[^`]*`", " ".join(cells)))
    run = "".join(path.read_text(encoding="utf-8") for path in FOLDER.rglob("*.py") if path != Path(__file__))

    assert {"AzureOpenAI", "AnthropicBedrock", "ChatBedrockConverse", "Router"} <= names
    assert {name for name in names if not re.search(rf"\b{name}\(", run)} == set()
