"""Write the generated tables into the README: metrics from the catalogue, alerts from their rules.

Usage: python docs/make_tables.py
"""

from __future__ import annotations

import re
from pathlib import Path

from windowpane.alerts import table as alerts
from windowpane.metrics import table as metrics

README = Path(__file__).parent.parent / "README.md"


def with_tables(text: str) -> str:
    """*text* with what stands between each pair of markers replaced by its table."""
    for name, table in (("metrics", metrics.markdown_table()), ("alerts", alerts.markdown_table())):
        pattern = rf"(<!-- {name}: [^>]*-->\n).*?(<!-- /{name} -->)"
        text, found = re.subn(
            pattern, lambda match, table=table: f"{match[1]}\n{table}\n{match[2]}", text, flags=re.DOTALL
        )
        if found != 1:
            raise SystemExit(f"README.md has no place for the table of {name}")
    return text


if __name__ == "__main__":
    README.write_text(with_tables(README.read_text(encoding="utf-8")), encoding="utf-8")
