"""Reduce LiteLLM's table of models to the sizes of their windows.

Usage: python docs/pack_window_sizes.py TABLE_JSON

TABLE_JSON is model_prices_and_context_window_backup.json of a release of the package litellm. Models that reply
with text are converted, except for Claude, whose windows models/catalog.py knows. NOTICE lists source, date and
licence.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parent.parent / "exporter/windowpane/models/data/window_sizes.json"
MODES = ("chat", "completion", "responses")
MAXIMUM_TOKENS = 100_000_000


def size_of(name: str, model: dict[str, Any]) -> int | None:
    """Return the window of a model; None for a row that is omitted."""
    tokens = model.get("max_input_tokens")
    if model.get("mode") not in MODES or "claude" in name.lower() or not isinstance(tokens, int):
        return None
    return tokens if 0 < tokens <= MAXIMUM_TOKENS else None


def main() -> None:
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    table = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    sizes = {name.lower(): size for name, model in table.items() if (size := size_of(name, model)) is not None}
    TARGET.write_text(json.dumps(sizes, indent=0, sort_keys=True) + "\n", encoding="utf-8")
    print(f"{len(sizes)} of {len(table)} models")


if __name__ == "__main__":
    main()
