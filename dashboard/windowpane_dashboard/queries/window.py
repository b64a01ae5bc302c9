"""The window at one turn: its blocks, and the removed ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pandas as pd

from windowpane.core.vocabulary import COMPONENT_OF, COMPONENTS, Component
from windowpane.report.block_life import block_name
from windowpane.report.block_sizes import scaled_to
from windowpane.report.calls import new_input_dollars
from windowpane.report.task_names import named_target
from windowpane.store.reads.project_reader import EventReader
from windowpane.store.records import BlockRow
from windowpane.text.formats import UNKNOWN
from windowpane.text.labels import COMPONENT_LABELS
from windowpane_dashboard.queries.timeline import Timeline
from windowpane_dashboard.queries.tool_use import item_name, tool_label

REMOVED_ROWS: Final = 200
"""Removed blocks that are listed at most."""
REGRET_ROWS: Final = 200
"""Removed blocks that were needed again, listed at most."""


@dataclass(frozen=True, slots=True)
class TurnWindow:
    """The window at the call of one turn."""

    turn: int
    values: pd.Series | None
    """The row of `turns_frame`; None where the turn was not measured."""
    blocks: pd.DataFrame
    """See `window_frame`."""


def read_turn_window(reader: EventReader, session_id: str, timeline: Timeline, turn: int) -> TurnWindow:
    """Read the blocks of the window at *turn*."""
    here = timeline.turns[timeline.turns["turn"] == turn]
    blocks = window_frame(reader.blocks_at(session_id, turn))
    if here.empty:
        return TurnWindow(turn, None, blocks)
    values = here.iloc[0]
    return TurnWindow(turn, values, at_measured_scale(blocks, values))


def at_measured_scale(blocks: pd.DataFrame, values: pd.Series) -> pd.DataFrame:
    """Return the blocks with the tokens of each component that the turn measured, as in the chart.

    Blocks are counted one by one, the window by its provider. A component that no block of the window belongs to
    becomes one row. What was not counted as it is shown is an estimate.
    """
    parts = []
    for component in COMPONENTS:
        of_component = blocks[blocks["component"] == component]
        measured, counted = round(float(values[component])), int(of_component["tokens"].sum())
        if measured == counted:
            parts.append(of_component)
        elif counted:
            parts.append(_scaled(of_component, measured))
        elif measured:
            parts.append(_without_blocks(component, measured, values))
    together = pd.concat([part for part in parts if len(part)]) if any(map(len, parts)) else blocks
    return together.sort_index().reset_index(drop=True)


def _scaled(blocks: pd.DataFrame, measured: int) -> pd.DataFrame:
    """Return the blocks with tokens in the same proportions that sum to *measured*."""
    return blocks.assign(tokens=scaled_to(blocks["tokens"].tolist(), measured), count="estimate")


def _without_blocks(component: Component, measured: int, values: pd.Series) -> pd.DataFrame:
    """Return the row of a component whose blocks were not recorded, at the start of the window."""
    label = COMPONENT_LABELS[component]
    row = {
        "what": label if component == "unattributed" else f"{label}, not recorded",
        "tokens": measured, "from turn": pd.NA if component == "unattributed" else values["turn"],
        "pinned": False, "preview": "",
        "block": "", "component": component, "count": "estimate",
    }  # fmt: skip
    return pd.DataFrame([row], index=[-1])


def window_frame(rows: Sequence[BlockRow]) -> pd.DataFrame:
    """Return one row per block, in the order the model saw them; it is unknown when unrecorded content came."""
    return pd.DataFrame(
        {
            "tokens": pd.array([row.tokens for row in rows], dtype="int64"),
            "what": [block_name(row) for row in rows],
            "preview": [row.preview or "" for row in rows],
            "from turn": pd.array(
                [None if row.content_type == "unattributed" else row.turn_added for row in rows], dtype="Int64"
            ),
            "pinned": [row.pinned for row in rows],
            "block": [row.block_id for row in rows],
            "component": [COMPONENT_OF[row.content_type] for row in rows],
            "count": [row.count_source for row in rows],
        }
    )


def removed_blocks(
    reader: EventReader, session_id: str, turn: int, window: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Return the blocks removed by the call of *turn*, latest first, with the reason.

    The `window_frame` of the same turn gives the names of their replacements.
    """
    rows = reader.removed_blocks(session_id, turn, limit=2 * REMOVED_ROWS)
    return removed_frame([row for row in rows if not _is_remeasured(row)][:REMOVED_ROWS], window)


def _is_remeasured(row: BlockRow) -> bool:
    """Return whether only the size of the content that is not in the recording was measured again."""
    return row.content_type == "unattributed" and row.removed_by == "replaced"


_CAUSES: Final = {
    "eviction": "removed",
    "compression": "compaction",
    "roll": "new window",
    "replaced": "replaced",
    "discarded": "not sent back",
}


def removed_frame(rows: Sequence[BlockRow], window: pd.DataFrame | None = None) -> pd.DataFrame:
    """Return removed blocks with the policy's reason, their replacement, and when they were needed again."""
    names = {row.block_id: block_name(row) for row in rows}
    if window is not None:
        names |= dict(zip(window["block"], window["what"], strict=True))
    return pd.DataFrame(
        {
            "tokens": pd.array([row.tokens for row in rows], dtype="int64"),
            "what": [block_name(row) for row in rows],
            "preview": [row.preview or "" for row in rows],
            "removed": pd.array([row.turn_removed for row in rows], dtype="Int64"),
            "needed again": pd.array([row.regretted_turn for row in rows], dtype="Int64"),
            "why": [_with_replacement(row, names) for row in rows],
            "block": [row.block_id for row in rows],
        }
    )


def removal_text(row: BlockRow) -> str:
    """Return why a block was removed: the reason, or how it was removed."""
    cause = _CAUSES.get(row.removed_by or "", row.removed_by or UNKNOWN)
    if not row.reason or cause in ("removed", "compaction"):
        return row.reason or cause
    return f"{cause}: {row.reason}"


def _with_replacement(row: BlockRow, names: Mapping[str, str]) -> str:
    """Return why a block was removed, and what replaced it: `compaction, replaced by summary`."""
    cause, name = removal_text(row), names.get(row.replaced_by or "")
    if name is None:
        return cause
    return f"{cause} by {name}" if cause == "replaced" else f"{cause}, replaced by {name}"


def regretted_blocks(reader: EventReader, session_id: str, last: int) -> pd.DataFrame:
    """Return the blocks that were needed again up to turn *last* after their removal, the largest first.

    `dollars` is what the call paid for the block that sent it anew.
    """
    rows = reader.removed_blocks(session_id, last + 1, limit=REGRET_ROWS, regretted=True)
    again = [row.regretted_turn or 0 for row in rows]
    calls = (
        {row.turn: row for row in reader.turns(session_id, first=min(again), last=max(again))} if again else {}
    )
    targets = {target: named_target(reader, session_id, target) for target in {row.target for row in rows}}
    frame = pd.DataFrame(
        {
            "what": [item_name(tool_label(row), targets[row.target]) for row in rows],
            "tokens": pd.array([row.tokens for row in rows], dtype="int64"),
            "dollars": pd.array(
                [
                    new_input_dollars(calls[back], row.tokens) if back in calls else None
                    for row, back in zip(rows, again, strict=True)
                ],
                dtype="Float64",
            ).to_numpy("float64", na_value=float("nan")),
            "removed": pd.array([row.turn_removed for row in rows], dtype="Int64"),
            "again": pd.array(again, dtype="int64"),
            "why": [removal_text(row) for row in rows],
            "session_turn": [row.turn_removed or row.turn_added for row in rows],
        }
    )
    return frame.sort_values("tokens", ascending=False, ignore_index=True)
