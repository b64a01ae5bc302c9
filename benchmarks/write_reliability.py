"""Run the fault campaigns in their long form and write RELIABILITY.md from what they recorded.

Usage: python benchmarks/write_reliability.py [PYTEST ARGUMENTS…]     (for example: -k kill)

A fault that is not tried in this run keeps its row of the last one.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

FOLDER = Path(__file__).parent
REPORT = FOLDER / "RELIABILITY.md"
CAMPAIGNS = FOLDER.parent / "tests" / "campaigns"

HEAD = """# Reliability

Written by `make campaign` (`python benchmarks/write_reliability.py`): Python {python}, {cores} cores, {system}.
One row a fault: how often it was tried, how often everything held, acknowledged events lost, and the longest
call of an agent's hook during the fault beside the same run without it. The harnesses are in `tests/campaigns`;
`make test` runs a bounded sample of each.

| fault | tried | held | lost | hook, fault | hook, none | run | note |
|---|--:|--:|--:|--:|--:|---|---|
"""


def previous_rows() -> dict[str, str]:
    """The rows of the last report by fault."""
    if not REPORT.exists():
        return {}
    lines = REPORT.read_text(encoding="utf-8").splitlines()
    table = [line for line in lines if line.startswith("| ")][1:]
    return {re.split(r"\s*\|\s*", line)[1]: line for line in table}


def milliseconds(value: float | None) -> str:
    return "" if value is None else f"{value:,.1f} ms"


def table_row(row: dict[str, object], day: str) -> str:
    cells = [
        str(row["fault"]), f"{row['tried']:,}", f"{row['held']:,}", f"{row['lost']:,}",
        milliseconds(row["hook_ms"]), milliseconds(row["hook_ms_without"]), day, str(row["note"]),
    ]  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def main() -> int:
    with tempfile.TemporaryDirectory() as scratch:
        record = Path(scratch) / "record.jsonl"
        environment = {**os.environ, "WINDOWPANE_CAMPAIGN": "1", "WINDOWPANE_CAMPAIGN_RECORD": str(record)}
        command = [sys.executable, "-m", "pytest", "--timeout=0", str(CAMPAIGNS), *sys.argv[1:]]
        code = subprocess.run(command, env=environment, check=False).returncode
        lines = record.read_text(encoding="utf-8").splitlines() if record.exists() else []
    day = datetime.now(UTC).date().isoformat()
    rows = previous_rows()
    for line in lines:
        row = json.loads(line)
        rows[row["fault"]] = table_row(row, day)
    head = HEAD.format(
        python=platform.python_version(), cores=os.cpu_count(), system=f"{platform.system()} {platform.machine()}"
    )
    table = "\n".join(rows[fault] for fault in sorted(rows))
    REPORT.write_text(f"{head}{table}\n", encoding="utf-8")
    print(table)
    return code


if __name__ == "__main__":
    sys.exit(main())
