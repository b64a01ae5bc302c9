"""The difference between the windows of two turns: blocks that stayed, were added and were removed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pandas as pd

from windowpane.core.vocabulary import COMPONENT_OF, COMPONENTS
from windowpane.report.block_life import block_name
from windowpane.report.block_sizes import window_blocks
from windowpane.store.reads.project_reader import EventReader
from windowpane.store.records import BlockRow
from windowpane.text.labels import COMPONENT_LABELS
from windowpane_dashboard.queries.window import removal_cause, removal_text

STAYED: Final = "stayed"
ADDED: Final = "added"
REPLACEMENT: Final = "replacement"
MEASURED_HIGHER: Final = "measured higher"
MEASURED_LOWER: Final = "measured lower"
"""The part by which the later call measured the same blocks as more or fewer tokens."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A block of a window, or what a component holds without a recorded block, at the scale of the chart."""

    what: str
    component: str
    tokens: int
    row: BlockRow | None = None


def turn_flow(reader: EventReader, session_id: str, first: int, last: int) -> pd.DataFrame:
    """Return one row per block of either window: `what`, `component`, `tokens`, `before`, `flow` and `why`.

    `flow` is `stayed`, `added`, `replacement`, or the cause of the removal. Tokens are those of the later window
    that has the block, at the scale of the chart; `before` those of a block that stayed in the earlier one.
    """
    before, after = (_parts(reader, session_id, turn) for turn in (first, last))
    rows = [
        _record(after.get(key, part), _flow_from(part, stayed=key in after), part) for key, part in before.items()
    ]
    rows += [_record(part, _flow_to(part), part) for key, part in after.items() if key not in before]
    return pd.DataFrame(rows, columns=list(_COLUMNS))


_COLUMNS: Final = ("what", "component", "tokens", "flow", "why", "preview", "block", "before")


def _parts(reader: EventReader, session_id: str, turn: int) -> dict[str, _Part]:
    measured = next((row.components for row in reader.turns(session_id, first=turn, last=turn)), {})
    parts = {
        one.block.block_id: _Part(
            block_name(one.block), COMPONENT_LABELS[COMPONENT_OF[one.block.content_type]], one.tokens, one.block
        )
        for one in window_blocks(reader.blocks_at(session_id, turn), measured)
    }
    with_tokens = {part.component for part in parts.values() if part.tokens}
    for component, tokens in measured.items():
        label = COMPONENT_LABELS[component]
        if tokens and label not in with_tokens:
            parts[f" {component}"] = _Part(f"{label}, not recorded", label, tokens)
    return parts


def _flow_from(part: _Part, *, stayed: bool) -> str:
    if stayed:
        return STAYED
    return "not recorded" if part.row is None else removal_cause(part.row)


def _flow_to(part: _Part) -> str:
    row = part.row
    is_replacement = row is not None and (row.replaces or row.content_type in ("summary", "placeholder"))
    return REPLACEMENT if is_replacement else ADDED


def _record(part: _Part, flow: str, before: _Part) -> tuple[object, ...]:
    row = part.row
    why = "" if row is None or flow in (STAYED, ADDED, REPLACEMENT) else removal_text(row)
    preview, block = ("", "") if row is None else (row.preview or "", row.block_id)
    return part.what, part.component, part.tokens, flow, why, preview, block, before.tokens


def flow_sums(flow: pd.DataFrame) -> pd.DataFrame:
    """Return the blocks and tokens of each component and flow, in the order of the components.

    What stayed was measured twice: the smaller of the two stayed, the difference is a flow for itself. So the
    flows of a component sum to its tokens in the chart at both turns.
    """
    order = {COMPONENT_LABELS[component]: at for at, component in enumerate(COMPONENTS)}
    sums = flow.groupby(["component", "flow"], as_index=False).agg(
        blocks=("tokens", "size"), tokens=("tokens", "sum"), before=("before", "sum")
    )
    stayed = sums[sums["flow"] == STAYED]
    change = stayed["tokens"] - stayed["before"]
    names = change.gt(0).map({True: MEASURED_HIGHER, False: MEASURED_LOWER})
    remeasured = stayed.assign(flow=names, tokens=change.abs())[change != 0]
    sums.loc[stayed.index, "tokens"] = stayed[["tokens", "before"]].min(axis=1)
    sums = pd.concat([sums, remeasured]).drop(columns="before")
    return sums.sort_values("component", key=lambda names: names.map(order), kind="stable", ignore_index=True)


def is_arrival(flow: str) -> bool:
    """Return whether blocks of this flow are only in the later window."""
    return flow in (ADDED, REPLACEMENT, MEASURED_HIGHER)
