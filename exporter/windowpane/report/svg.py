"""The window turn by turn as an inline SVG: stacked components, limit, red line, lettered events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from windowpane.report.html_page import escape
from windowpane.text import formats
from windowpane.text.labels import COMPONENT_LABELS, MARKS
from windowpane.text.palette import STACKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windowpane.report.session_report import SessionReport
    from windowpane.store.records import TurnRow

WIDTH: Final = 1_040
HEIGHT: Final = 384
LEFT: Final = 84
RIGHT: Final = 16
TOP: Final = 16
TRACKS_HEIGHT: Final = 88
"""Height of the event tracks and the turn axis below the chart."""
TRACKS: Final = "RCNA✎"
"""Letters of the event tracks, from the top."""
TRACK_HEIGHT: Final = 16
MAXIMUM_TURNS: Final = 1_000
"""Turns drawn at most; a longer session shows the fullest turn of each bucket, so no spike is hidden."""


class TrackMark(NamedTuple):
    """A lettered event in its track."""

    turn: int
    letter: str
    text: str


def window_svg(report: SessionReport) -> str:
    """Return the chart; the page's style sheet colors it by class."""
    turns = _reduce([turn for turn in report.turns if turn.components])
    if not turns:
        return ""
    top = max(turn.limit_tokens or 0 for turn in turns) or max(sum(turn.components.values()) for turn in turns)
    scale = _Scale(turns, top * 1.02)
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(report.headline)}">',
        f"<title>{escape(report.headline)}</title>",
        *_axis(scale, top),
        *_areas(turns, scale),
        *_levels(turns, scale),
        *_tracks(report, scale),
        "</svg>",
    ]
    return "\n".join(parts)


class _Scale:
    """Maps turns to x and tokens to y."""

    def __init__(self, turns: Sequence[TurnRow], top: float) -> None:
        self.first, self.last = turns[0].turn, turns[-1].turn
        self.top = max(top, 1.0)
        self.bottom = HEIGHT - TRACKS_HEIGHT

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


def _levels(turns: Sequence[TurnRow], scale: _Scale) -> list[str]:
    limits = [(turn.turn, turn.limit_tokens) for turn in turns if turn.limit_tokens is not None]
    reds = [(turn.turn, turn.red_tokens) for turn in turns if turn.red_tokens is not None]
    return [*_level("limit", limits, scale), *_level("red", reds, scale)]


def _level(name: str, values: Sequence[tuple[int, int]], scale: _Scale) -> list[str]:
    if not values:
        return []
    points = " ".join(f"{scale.x(turn):.1f},{scale.y(tokens):.1f}" for turn, tokens in values)
    label = f"{name} {formats.tokens_short(values[0][1])}"
    return [
        f'<polyline class="line-{name}" points="{points}"/>',
        f'<text class="label-{name}" x="{LEFT + 4}" y="{scale.y(values[0][1]) - 4:.1f}">{label}</text>',
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


def _tracks(report: SessionReport, scale: _Scale) -> list[str]:
    marks = [
        *(TrackMark(item.turn, "R", item.text) for item in report.evictions),
        *(TrackMark(item.turn, "C", f"{item.strategy}: {item.outcome}") for item in report.compressions),
        *(
            TrackMark(item.turn, "N", f"{item.what}, {item.tokens:,} tokens needed again")
            for item in report.regrets
        ),
        *(TrackMark(item.turn, "✎", item.text or item.kind) for item in report.notes),
        *(TrackMark(item.fired_turn, "A", f"{item.severity}: {item.alert}") for item in report.alerts),
    ]
    names = [
        f'<text class="axis" text-anchor="end" x="{LEFT - 8}" y="{_track_y(letter, scale)}">'
        f"{MARKS[letter].label}</text>"
        for letter in TRACKS
        if any(mark.letter == letter for mark in marks)
    ]
    return names + [
        f'<text class="mark mark-{mark.letter}" text-anchor="middle" x="{scale.x(mark.turn):.1f}" '
        f'y="{_track_y(mark.letter, scale)}">{mark.letter}'
        f"<title>turn {mark.turn}: {escape(mark.text)}</title></text>"
        for mark in marks
        if scale.first <= mark.turn <= scale.last
    ]


def _track_y(letter: str, scale: _Scale) -> int:
    return scale.bottom + TRACK_HEIGHT * (TRACKS.index(letter) + 1)
