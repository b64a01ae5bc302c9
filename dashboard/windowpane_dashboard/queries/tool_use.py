"""The content of a window summed: its blocks by tool, and file or command."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pandas as pd

from windowpane.store.records import BlockRow, ToolUse
from windowpane.text.labels import CONTENT_LABELS, is_id

TOP: Final = 10
TARGET_CHARACTERS: Final = 28
"""Characters of a file or command that fit into its column on a narrow page."""


def fill_frame(window: pd.DataFrame, blocks: Sequence[BlockRow]) -> pd.DataFrame:
    """Return the tokens of a window by tool or type of content, and file or command, most first.

    The tokens are those of *window*, a `window_frame` at the scale of the chart; *blocks* name tools and files.
    `block` is the largest block of each row, empty where no block was recorded.
    """
    tools = {block.block_id: tool_label(block) for block in blocks}
    targets = {block.block_id: block.target for block in blocks}
    frame = window[["tokens", "block"]].assign(
        tool=[tools.get(block, what) for block, what in zip(window["block"], window["what"], strict=True)],
        target=[targets.get(block) or "" for block in window["block"]],
    )
    largest_first = frame.sort_values("tokens", ascending=False, kind="stable")
    summed = largest_first.groupby(["tool", "target"], as_index=False).agg(
        tokens=("tokens", "sum"), blocks=("tokens", "size"), block=("block", "first")
    )
    return summed.sort_values(["tokens", "tool", "target"], ascending=[False, True, True], ignore_index=True)


def tool_label(block: BlockRow) -> str:
    """Return `bash` for a result of the tool, `bash call` for a call; else the type of the content."""
    if block.tool_name is None:
        return CONTENT_LABELS[block.content_type]
    return f"{block.tool_name} call" if block.content_type == "tool_call" else block.tool_name


def top_frame(fill: pd.DataFrame) -> pd.DataFrame:
    """Return the ten largest rows of a `fill_frame`, with their share of its sum."""
    top = fill.head(TOP)
    return pd.DataFrame(
        {
            "what": [item_name(tool, target) for tool, target in zip(top["tool"], top["target"], strict=True)],
            "tokens": top["tokens"],
            "share": top["tokens"] / max(fill["tokens"].sum(), 1),
            "items": top["blocks"],
        }
    )


def item_name(tool: str, target: str | None) -> str:
    """Return a tool with its file or command, not with an id: `Read …/strategy/cleanup.go`."""
    return tool if not target or is_id(target) else f"{tool} {end_of(target)}"


def end_of(target: str) -> str:
    """Return the end of a long path, where its file is named, or the start of a long command or task."""
    if len(target) <= TARGET_CHARACTERS:
        return target
    return f"{target[: TARGET_CHARACTERS - 1]}…" if " " in target else f"…{target[1 - TARGET_CHARACTERS :]}"


def uses_frame(uses: Sequence[ToolUse]) -> pd.DataFrame:
    """Return one row per tool, and file or command, with the tokens and dollars of all calls."""
    return pd.DataFrame(
        {
            "what": [item_name(use.tool, use.target) for use in uses],
            "≈ cost": pd.array([use.dollars for use in uses], dtype="Float64"),
            "tokens in all calls": [use.carried_tokens for use in uses],
            "tokens entered": [use.tokens for use in uses],
            "items": [use.blocks for use in uses],
            "sessions": [use.sessions for use in uses],
        }
    )
