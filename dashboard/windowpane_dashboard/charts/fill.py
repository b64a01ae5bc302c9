"""The treemap of a window: component, tool or type of content, file or command."""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

import pandas as pd
import plotly.graph_objects as go

from windowpane.core.vocabulary import COMPONENTS
from windowpane.text.formats import percent, tokens
from windowpane.text.labels import COMPONENT_LABELS
from windowpane_dashboard.charts.layout import apply_layout, escape_label
from windowpane_dashboard.style.theme import Palette, text_on

MAXIMUM_TARGETS: Final = 40
"""Files and commands with an area; those of a tool beyond share one."""
LABEL_CHARACTERS: Final = 36
SMALLEST_TEXT: Final = 10
"""Pixels; smaller areas have their text in the tooltip alone."""


def fill_treemap(fill: pd.DataFrame, palette: Palette) -> go.Figure:
    """Draw a `fill_frame`; areas are tokens."""
    ids, labels, parents, values, colors, texts = [], [], [], [], [], []
    total = int(fill["tokens"].sum()) or 1

    def add(key: str, label: str, parent: str, size: int, color: str) -> None:
        ids.append(key)
        labels.append(escape_label(_short(label), width=LABEL_CHARACTERS))
        parents.append(parent)
        values.append(size)
        colors.append(color)
        texts.append(escape_label(f"{label}\n{tokens(size)} tokens, {percent(size / total)}"))

    for component in COMPONENTS:
        of_component = fill[fill["component"] == component]
        if of_component.empty:
            continue
        color = palette.components[component]
        add(component, COMPONENT_LABELS[component], "", int(of_component["tokens"].sum()), color)
        for tool in of_component["tool"].unique():
            of_tool = of_component[of_component["tool"] == tool]
            key = area_id(component, tool)
            add(key, tool, component, int(of_tool["tokens"].sum()), color)
            largest = of_tool[of_tool["target"] != ""].head(MAXIMUM_TARGETS)
            for target, size in zip(largest["target"], largest["tokens"], strict=True):
                add(area_id(component, tool, target), target, key, int(size), color)
    figure = go.Figure(
        go.Treemap(
            ids=ids, labels=labels, parents=parents, values=values, branchvalues="total", hovertext=texts,
            hovertemplate="%{hovertext}<extra></extra>", texttemplate="%{label}<br>%{value:,}", sort=True,
            marker={"colors": colors, "line": {"color": palette.background, "width": 1}},
            textfont={"color": [text_on(color) for color in colors], "size": 12}, pathbar={"visible": False},
            tiling={"pad": 2},
        )
    )  # fmt: skip
    figure.update_layout(uniformtext={"minsize": SMALLEST_TEXT, "mode": "hide"})
    return apply_layout(figure, palette, height=360, margin={"l": 0, "r": 0, "t": 0, "b": 0})


def area_id(component: str, tool: str, target: str = "") -> str:
    """Return the id of an area; without a target, that of the tool.

    A digest: names that an agent gives have any length and any character.
    """
    names = "\n".join((component, tool, target) if target else (component, tool))
    return blake2b(names.encode(errors="replace"), digest_size=12).hexdigest()


def area_blocks(fill: pd.DataFrame) -> dict[str, str]:
    """Return the largest block of each area that holds no other area."""
    rows = list(zip(fill["component"], fill["tool"], fill["target"], fill["block"], strict=True))
    divided = {(component, tool) for component, tool, target, _ in rows if target}
    return {
        area_id(component, tool, target): block
        for component, tool, target, block in rows
        if target or (component, tool) not in divided
    }


def _short(label: str) -> str:
    return label if len(label) <= LABEL_CHARACTERS else f"…{label[1 - LABEL_CHARACTERS :]}"
