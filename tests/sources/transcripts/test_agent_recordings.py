"""Recordings of Gemini CLI, Copilot CLI and opencode give the values that were computed independently."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from reads import Read

from windowpane.sources.transcripts.discovery import all_readers, reader_for

FILES = (
    "copilot_cli/events_no_shutdown_26-9e1b9e5502-0.jsonl",
    "copilot_cli/events_tiny_with_usage_4f-8edb57e3d1-0.jsonl",
    "gemini_cli/session_small2_51-3fab7adf0b-0.json",
    "gemini_cli/session_small_12-cbfeaa512b-0.json",
    "gemini_cli/session_warning_only_ec-38b74f08e3-2.json",
    "opencode/export_pruned_37-364f83fa16-0.json",
    "opencode/export_small_redacted_parent_a6-f07388c421-8.json",
)


def flat_usage(usage: dict[str, Any] | None) -> dict[str, int]:
    """Return the manifest's usage with the sums of all models beside the others."""
    sums = dict(usage or {})
    for metrics in sums.pop("modelMetrics", {}).values():
        sums |= metrics
    return sums


@pytest.mark.parametrize("name", FILES)
def test_values_are_those_of_the_manifest(sessions_dir: Path, name: str) -> None:
    entries = json.loads((sessions_dir / "MANIFEST.json").read_text())
    expected = next(entry["stats"] for entry in entries if entry["file"] == name)
    path = sessions_dir / name
    for complete in (True, None):
        reader = reader_for(path, all_readers(complete=complete))
        stats = Read(reader, path).stats

        assert reader.format == name.partition("/")[0]
        assert (stats.messages, stats.tool_calls, stats.user_turns) == (
            expected["messages"], expected["tool_calls"], expected["turns"],
        )  # fmt: skip
        assert (stats.content_chars, stats.max_tool_output_chars) == (
            expected["content_chars"], expected["max_tool_output_chars"],
        )  # fmt: skip
        assert (stats.compactions, stats.evictions, stats.bad_lines, stats.odd_lines) == (
            expected["compactions"], expected["evictions"], expected["bad_lines"], 0,
        )  # fmt: skip
        usage = flat_usage(expected["usage"])
        assert stats.api_calls == usage.pop("api_msgs", stats.api_calls)
        assert stats.peak_context == usage.pop("peak_context", stats.peak_context)
        assert {key: stats.usage.get(key) for key in usage} == usage
