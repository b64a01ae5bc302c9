"""The section on estimated outputs: recordings with the final usage, read as if they had that of the start."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from truth.recordings import Session, sessions_of
from windowpane.core.events import TurnEnded

LAST_RELEASE: Final = (2, 1, 49)
"""Later releases always record the final usage, and no text of the reasoning within it."""


class Output(NamedTuple):
    """The output of one call."""

    is_early: bool
    """Of a release that may lack the final usage."""
    recorded: int
    estimated: int


def outputs_section(sessions: Sequence[Session]) -> list[str]:
    """Return the lines of the section."""
    paths = dict.fromkeys(session.path for session in sessions if session.format == "claude_code")
    outputs = [output for path in paths for output in _outputs(path)]
    release = ".".join(map(str, LAST_RELEASE))
    note = (
        f"Claude Code up to {release} often records only the usage of the start of a reply. Here the calls "
        "whose last row has the final usage are read as if they had that of the start, and the estimate is "
        "compared with the recorded output."
    )
    return [
        note,
        "",
        "| releases | calls | estimated in sum | half are within | 10th percentile | 90th percentile |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
        _row(f"up to {release}", [one for one in outputs if one.is_early]),
        _row("later, which hide reasoning", [one for one in outputs if not one.is_early]),
    ]


def _row(name: str, outputs: Sequence[Output]) -> str:
    errors = np.array([one.estimated / one.recorded - 1 for one in outputs])
    total = sum(one.estimated for one in outputs) / sum(one.recorded for one in outputs) - 1
    low, high = np.quantile(errors, [0.1, 0.9])
    half = np.median(np.abs(errors))
    return f"| {name} | {len(outputs):,} | {total:+.0%} | {half:.0%} | {low:+.0%} | {high:+.0%} |"


def _outputs(path: Path) -> Iterator[Output]:
    """Yield the outputs of the calls of one recording whose final usage it has."""
    rows = [
        json.loads(line)
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines()
        if _is_json(line)
    ]
    recorded = {
        row["message"]["id"]: (_is_early(row), row["message"]["usage"]["output_tokens"])
        for row in rows
        if _is_final(row)
    }
    for row in rows:
        message = row.get("message") if isinstance(row, dict) else None
        if isinstance(message, dict) and message.get("id") in recorded:
            message["stop_reason"] = None
            message["usage"] = {**message["usage"], "output_tokens": 1, "output_tokens_details": None}
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        copy.write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
        events = [event.data for session in sessions_of(Path(folder)) for event in session.events]
    for data in events:
        if isinstance(data, TurnEnded) and data.usage and data.recorded_output_tokens == 1:
            is_early, output = recorded.pop(data.response_id or "", (False, 0))
            if output:
                yield Output(is_early, output, data.usage.output_tokens)


def _is_final(row: Any) -> bool:
    """Return whether a row has the final usage of a call."""
    message = row.get("message") if isinstance(row, dict) and row.get("type") == "assistant" else None
    return (
        isinstance(message, dict)
        and bool(message.get("stop_reason"))
        and isinstance(message.get("usage"), dict)
        and isinstance(message.get("id"), str)
    )


def _is_early(row: dict[str, Any]) -> bool:
    version = str(row.get("version", "")).split(".")
    return all(part.isdigit() for part in version) and tuple(map(int, version)) <= LAST_RELEASE


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True
