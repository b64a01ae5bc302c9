"""The content of a window summed: its blocks by component, tool, and file or command."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pandas as pd

from windowpane.store.records import BlockRow, ToolUse
from windowpane.text.labels import COMPONENT_LABELS, CONTENT_LABELS

TOP: Final = 10
TOP_TARGET_CHARACTERS: Final = 28
TARGET_CHARACTERS: Final = 58
"""Characters that fit into the columns of the page."""


def fill_frame(window: pd.DataFrame, blocks: Sequence[BlockRow]) -> pd.DataFrame:
    """Return the tokens of a window by component, tool or type of content, and file or command, most first.

    The tokens are those of *window*, a `window_frame` at the scale of the chart; *blocks* name tools and files.
    `block` is the largest block of each row, empty where no block was recorded.
    """
    tools = {block.block_id: block.tool_name or CONTENT_LABELS[block.content_type] for block in blocks}
    targets = {block.block_id: block.target for block in blocks}
    frame = window[["component", "tokens", "block"]].assign(
        tool=[tools.get(block, what) for block, what in zip(window["block"], window["what"], strict=True)],
        target=[targets.get(block) or "" for block in window["block"]],
    )
    largest_first = frame.sort_values("tokens", ascending=False, kind="stable")
    summed = largest_first.groupby(["component", "tool", "target"], as_index=False).agg(
        tokens=("tokens", "sum"), blocks=("tokens", "size"), block=("block", "first")
    )
    return summed.sort_values(["tokens", "tool", "target"], ascending=[False, True, True], ignore_index=True)


def top_frame(fill: pd.DataFrame) -> pd.DataFrame:
    """Return the ten largest rows of a `fill_frame`, their sum, and the sum of the rest."""
    total = int(fill["tokens"].sum())
    top = fill.head(TOP)
    names = top["component"].map(COMPONENT_LABELS)
    targets = [end_of(target, TOP_TARGET_CHARACTERS) for target in top["target"]]
    rows = list(zip(names, top["tool"], targets, top["blocks"], top["tokens"], strict=True))
    rest = fill.iloc[TOP:]
    if len(rest):
        rows.append(("all others", "", None, int(rest["blocks"].sum()), int(rest["tokens"].sum())))
    rows.append(("sum", "", None, int(fill["blocks"].sum()), total))
    frame = pd.DataFrame(rows, columns=["component", "tool or content", "file or command", "items", "tokens"])
    frame["share"] = frame["tokens"] / total if total else 0.0
    return frame[["tokens", "share", "component", "tool or content", "file or command", "items"]]


def end_of(target: str, characters: int) -> str | None:
    """Return the end of a long path, where its file is named, or a whole command; None without either."""
    shortened = target if len(target) <= characters else f"…{target[1 - characters :]}"
    return shortened or None


def uses_frame(uses: Sequence[ToolUse]) -> pd.DataFrame:
    """Return one row per tool, and file or command, with the tokens and dollars of all calls."""
    return pd.DataFrame(
        {
            "tool": [use.tool for use in uses],
            "file or command": [end_of(use.target, TARGET_CHARACTERS) for use in uses],
            "items": [use.blocks for use in uses],
            "tokens entered": [use.tokens for use in uses],
            "tokens in all calls": [use.carried_tokens for use in uses],
            "≈ cost": pd.array([use.dollars for use in uses], dtype="Float64"),
            "sessions": [use.sessions for use in uses],
        }
    )
