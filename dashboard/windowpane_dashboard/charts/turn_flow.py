"""The windows of two turns as a flow: blocks that stayed, came and were removed."""

from __future__ import annotations

from typing import Final

import pandas as pd
import plotly.graph_objects as go

from windowpane.core.vocabulary import COMPONENTS
from windowpane.text.formats import count, tokens, tokens_short
from windowpane.text.labels import COMPONENT_LABELS
from windowpane_dashboard.charts.layout import apply_layout, escape_label
from windowpane_dashboard.queries.turn_flow import STAYED, is_arrival
from windowpane_dashboard.style.theme import Palette, translucent

PIXELS: Final = 330


def turn_flow_chart(sums: pd.DataFrame, palette: Palette, *, first: int, last: int) -> go.Figure:
    """Draw `flow_sums` from the components at *first* to those at *last*, to and from the causes of change."""
    colors = {COMPONENT_LABELS[component]: palette.components[component] for component in COMPONENTS}
    labels: list[str] = []
    node_colors: list[str] = []
    sizes: list[float] = []

    def node(label: str, color: str) -> int:
        if label not in labels:
            labels.append(label)
            node_colors.append(color)
            sizes.append(0.0)
        return labels.index(label)

    source, target, value, link_colors, texts = [], [], [], [], []
    for row in sums.to_dict("records"):
        component, flow = str(row["component"]), str(row["flow"])
        color = colors[component]
        start = node(flow, palette.muted) if is_arrival(flow) else node(f"{component}, turn {first}", color)
        is_removed = flow != STAYED and not is_arrival(flow)
        end = node(flow, palette.zones["orange"]) if is_removed else node(f"{component}, turn {last}", color)
        source.append(start)
        target.append(end)
        value.append(row["tokens"])
        sizes[start] += row["tokens"]
        sizes[end] += row["tokens"]
        link_colors.append(translucent(palette.zones["orange"] if is_removed else color, 0.4))
        texts.append(f"{component}: {count(row['blocks'], 'block')}, {tokens(row['tokens'])} tokens {flow}")
    figure = go.Figure(
        go.Sankey(
            node={
                "label": [
                    escape_label(f"{label}: {tokens_short(size)}")
                    for label, size in zip(labels, sizes, strict=True)
                ],
                "color": node_colors,
                "pad": 12,
                "thickness": 14,
                "line": {"width": 0},
                "hovertemplate": "%{label}<extra></extra>",
            },
            link={
                "source": source,
                "target": target,
                "value": value,
                "color": link_colors,
                "customdata": [escape_label(text) for text in texts],
                "hovertemplate": "%{customdata}<extra></extra>",
            },
            textfont={"color": palette.text, "size": 12},
        )
    )
    return apply_layout(figure, palette, height=PIXELS, margin={"l": 8, "r": 8, "t": 12, "b": 12})
