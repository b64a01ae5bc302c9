"""The window turn by turn as an inline SVG: stacked components, levels, a row of dots for each kind of event."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from windowpane.alerts.rules import alert_title
from windowpane.report.html_page import escape
from windowpane.report.level_labels import level_label, separated
from windowpane.text import formats
from windowpane.text.labels import ALERT_MARKS, COMPONENT_LABELS, MARKS
from windowpane.text.palette import STACKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windowpane.report.session_report import SessionReport
    from windowpane.store.records import TurnRow

WIDTH: Final = 1_040
HEIGHT: Final = 384
LEFT: Final = 48
RIGHT: Final = 116
"""Room for the names of levels and of event tracks."""
TOP: Final = 16
AXIS_HEIGHT: Final = 24
"""Height of the turn axis below the event tracks."""
TRACK_HEIGHT: Final = 16
LABEL_HEIGHT: Final = 13
"""Least distance between the names of two levels."""
LEADER_WIDTH: Final = 9
"""Width of the line from a level at the edge of the chart to its label."""
MAXIMUM_TURNS: Final = 1_000
"""Turns drawn at most; a longer session shows the fullest turn of each bucket, so no spike is hidden."""


class TrackMark(NamedTuple):
    """An event in its track."""

    turn: int
    letter: str
    text: str


def window_svg(report: SessionReport) -> str:
    """Return the chart; the page's style sheet colors it by class."""
    turns = _reduce([turn for turn in report.turns if turn.components])
    if not turns:
        return ""
    top = max(turn.limit_tokens or 0 for turn in turns) or max(sum(turn.components.values()) for turn in turns)
    marks = _marks(report)
    tracks = [letter for letter in MARKS if any(mark.letter == letter for mark in marks)]
    scale = _Scale(turns, top * 1.02, tracks=len(tracks))
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(report.headline)}">',
        f"<title>{escape(report.headline)}</title>",
        *_axis(scale, top),
        *_areas(turns, scale),
        *_levels(report, turns, scale),
        *_tracks(marks, tracks, scale),
        "</svg>",
    ]
    return "\n".join(parts)


class _Scale:
    """Maps turns to x and tokens to y."""

    def __init__(self, turns: Sequence[TurnRow], top: float, *, tracks: int) -> None:
        self.first, self.last = turns[0].turn, turns[-1].turn
        self.top = max(top, 1.0)
        self.bottom = HEIGHT - AXIS_HEIGHT - TRACK_HEIGHT * tracks

    def x(self, turn: float) -> float:
        span = max(1, self.last - self.first)
        return LEFT + (turn - self.first) / span * (WIDTH - LEFT - RIGHT)

    def y(self, tokens: float) -> float:
        return TOP + (1 - min(tokens, self.top) / self.top) * (self.bottom - TOP)


def _reduce(turns: Sequence[TurnRow]) -> list[TurnRow]:
    if len(turns) <= MAXIMUM_TURNS:
        return list(turns)
    size = -(-len(turns) // MAXIMUM_TURNS)
    return [
        max(turns[start : start + size], key=lambda turn: sum(turn.components.values()))
        for start in range(0, len(turns), size)
    ]


def _areas(turns: Sequence[TurnRow], scale: _Scale) -> list[str]:
    """One polygon per component, stacked in the order of every chart."""
    below = [0] * len(turns)
    polygons = []
    for component in STACKING:
        above = [base + turn.components.get(component, 0) for base, turn in zip(below, turns, strict=True)]
        if above != below:
            upper = [
                f"{scale.x(turn.turn):.1f},{scale.y(level):.1f}" for turn, level in zip(turns, above, strict=True)
            ]
            lower = [
                f"{scale.x(turn.turn):.1f},{scale.y(level):.1f}" for turn, level in zip(turns, below, strict=True)
            ]
            points = " ".join([*upper, *reversed(lower)])
            polygons.append(
                f'<polygon class="{component}" points="{points}">'
                f"<title>{COMPONENT_LABELS[component]}</title></polygon>"
            )
        below = above
    return polygons


def _levels(report: SessionReport, turns: Sequence[TurnRow], scale: _Scale) -> list[str]:
    """Return the lines of the levels, and their labels in the same order."""
    by_name: dict[str, list[tuple[int, int | None]]] = {
        "limit": [(turn.turn, turn.limit_tokens) for turn in turns],
        "compaction": [
            (turn.turn, turn.compaction_tokens)
            for turn in turns
            if (turn.compaction_tokens or 0) < (turn.limit_tokens or 0)
        ],
        "red": [(turn.turn, turn.red_tokens) for turn in turns],
        **{zone: [(turn.turn, start) for turn in turns] for zone, start in report.zone_starts.items()},
    }
    parts: list[str] = []
    labeled: dict[str, int] = {}
    for name, values in by_name.items():
        visible = [(turn, level) for turn, level in values if level is not None and level <= scale.top]
        if visible:
            points = " ".join(f"{scale.x(turn):.1f},{scale.y(level):.1f}" for turn, level in visible)
            parts.append(f'<polyline class="line line-{name}" points="{points}"/>')
            labeled[name] = visible[-1][1]
    lines = [scale.y(level) for level in labeled.values()]
    heights = separated(lines, LABEL_HEIGHT, low=TOP, high=scale.bottom)
    start, end = WIDTH - RIGHT, WIDTH - RIGHT + LEADER_WIDTH
    return parts + [
        f'<path class="line leader line-{name}" d="M{start} {line:.1f}L{end} {y:.1f}"/>'
        f'<text class="label label-{name}" x="{end + 3}" y="{y + 4:.1f}">{level_label(name, level)}</text>'
        for (name, level), line, y in zip(labeled.items(), lines, heights, strict=True)
    ]


def _axis(scale: _Scale, top: float) -> list[str]:
    lines = []
    for share in (0, 0.25, 0.5, 0.75, 1.0):
        y = scale.y(top * share)
        lines.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        label = formats.tokens_short(top * share)
        lines.append(f'<text class="axis" text-anchor="end" x="{LEFT - 8}" y="{y + 4:.1f}">{label}</text>')
    middle = (scale.first + scale.last) // 2
    anchors = {scale.first: "start", middle: "middle", scale.last: "end"}
    lines.extend(
        f'<text class="axis" text-anchor="{anchor}" x="{scale.x(turn):.1f}" y="{HEIGHT - 4}">turn {turn}</text>'
        for turn, anchor in anchors.items()
    )
    return lines


def _marks(report: SessionReport) -> list[TrackMark]:
    return [
        *(TrackMark(item.turn, "R", item.text) for item in report.evictions),
        *(TrackMark(item.turn, "C", f"{item.strategy}: {item.outcome}") for item in report.compressions),
        *(
            TrackMark(item.turn, "N", f"{item.what}, {item.tokens:,} tokens needed again")
            for item in report.regrets
        ),
        *(
            TrackMark(item.fired_turn, ALERT_MARKS[item.severity].letter, alert_title(item.alert))
            for item in report.alerts
        ),
        *(
            TrackMark(item.turn, "P", f"cache break, {item.rewritten_tokens:,} tokens")
            for item in report.cache_breaks
        ),
        *(TrackMark(item.turn, "✎", item.text or item.kind) for item in report.notes),
    ]


def _tracks(marks: Sequence[TrackMark], tracks: Sequence[str], scale: _Scale) -> list[str]:
    heights = {letter: scale.bottom + TRACK_HEIGHT * (at + 0.75) for at, letter in enumerate(tracks)}
    names = [
        f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>'
        f'<text class="axis" x="{WIDTH - RIGHT + 8}" y="{y + 4}">{MARKS[letter].label}</text>'
        for letter, y in heights.items()
    ]
    return names + [
        f'<g transform="translate({scale.x(mark.turn):.1f} {heights[mark.letter]})" '
        f'class="mark {MARKS[mark.letter].severity or ""}"><circle r="4"/>'
        f"<title>turn {mark.turn}: {escape(mark.text)}</title></g>"
        for mark in marks
        if scale.first <= mark.turn <= scale.last
    ]
