"""The difference between the windows of two turns: blocks that stayed, were added and were removed."""

from __future__ import annotations

from typing import Final

import pandas as pd

from windowpane.core.vocabulary import COMPONENT_OF, COMPONENTS
from windowpane.store.interface import EventReader
from windowpane.store.records import BlockRow
from windowpane.text.labels import COMPONENT_LABELS
from windowpane_dashboard.queries.window import block_name, removal_cause, removal_text

STAYED: Final = "stayed"
ADDED: Final = "added"
REPLACEMENT: Final = "replacement"


def turn_flow(reader: EventReader, session_id: str, first: int, last: int) -> pd.DataFrame:
    """Return one row per block of either window: `what`, `component`, `tokens`, `flow` and `why`.

    `flow` is `stayed`, `added`, `replacement`, or the cause of the removal. Tokens are as counted.
    """
    before = {row.block_id: row for row in reader.blocks_at(session_id, first)}
    after = {row.block_id: row for row in reader.blocks_at(session_id, last)}
    rows = [(row, STAYED if row.block_id in after else removal_cause(row)) for row in before.values()]
    rows += [
        (row, REPLACEMENT if row.replaces or row.content_type in ("summary", "placeholder") else ADDED)
        for row in after.values()
        if row.block_id not in before
    ]
    return pd.DataFrame([_record(row, flow) for row, flow in rows], columns=list(_COLUMNS))


_COLUMNS: Final = ("what", "component", "tokens", "flow", "why", "preview", "block")


def _record(row: BlockRow, flow: str) -> tuple[object, ...]:
    why = "" if flow in (STAYED, ADDED, REPLACEMENT) else removal_text(row)
    component = COMPONENT_LABELS[COMPONENT_OF[row.content_type]]
    return block_name(row), component, row.tokens, flow, why, row.preview or "", row.block_id


def flow_sums(flow: pd.DataFrame) -> pd.DataFrame:
    """Return the blocks and tokens of each component and flow, in the order of the components."""
    order = {COMPONENT_LABELS[component]: at for at, component in enumerate(COMPONENTS)}
    sums = flow.groupby(["component", "flow"], as_index=False).agg(
        blocks=("tokens", "size"), tokens=("tokens", "sum")
    )
    return sums.sort_values("component", key=lambda names: names.map(order), ignore_index=True)


def is_arrival(flow: str) -> bool:
    """Return whether blocks of this flow are only in the later window."""
    return flow in (ADDED, REPLACEMENT)
