"""Write the generated tables into the documentation: metrics from their catalog, alerts from their rules.

Usage: python docs/make_tables.py
"""

from __future__ import annotations

import re
from pathlib import Path

from windowpane.alerts.runbook import alert_table
from windowpane.metrics import catalog as metrics
from windowpane.text.terms import terms_table

DOCS = Path(__file__).parent
LISTED = DOCS.parent / "tests" / "goldens" / "expected" / "demo" / "demo" / "sessions.txt"


def demo_listing() -> str:
    """Return the first lines that `windowpane sessions` prints of the demo's store."""
    lines = LISTED.read_text(encoding="utf-8").splitlines()[:5]
    return "\n".join(["```text", *map(str.rstrip, lines), "…", "```"])


TABLES = {
    "metrics": metrics.markdown_table, "alerts": alert_table, "dashboard": terms_table, "tutorial": demo_listing
}  # fmt: skip
"""Name of a page, and of the markers around its table, to what makes the table."""


def with_table(name: str, text: str) -> str:
    """Return *text* with everything between the markers of *name* replaced by its table."""
    table = TABLES[name]()
    pattern = rf"(<!-- {name}: [^>]*-->\n).*?(<!-- /{name} -->)"
    text, count = re.subn(pattern, lambda match: f"{match[1]}\n{table}\n{match[2]}", text, flags=re.DOTALL)
    if count != 1:
        raise SystemExit(f"docs/{name}.md has {count} count for its table, expected 1")
    return text


if __name__ == "__main__":
    for name in TABLES:
        page = DOCS / f"{name}.md"
        page.write_text(with_table(name, page.read_text(encoding="utf-8")), encoding="utf-8")
