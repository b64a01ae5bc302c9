"""The next event of a window as text: the agent's own compaction, or red where its level is unknown."""

from __future__ import annotations

import math

from windowpane.text.formats import UNKNOWN, tokens_short, turns_band, turns_until

TYPE_CHECKING = False  # the status line of a coding agent, which uses this, must not wait for typing
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Final, Literal, Protocol

    class Forecasted(Protocol):
        """A row or measurement with both forecasts."""

        @property
        def turns_until_red(self) -> float | None:
            """Median of the turns until red."""
            ...

        @property
        def turns_until_compaction(self) -> float | None:
            """Median of the turns until the agent compacts by itself; None where its level is unknown."""
            ...

    class Banded(Protocol):
        """A turn or measurement with the 10–90 bands of both forecasts."""

        @property
        def turns_until_red_p10(self) -> float | None:
            """Early end of the turns until red."""
            ...

        @property
        def turns_until_red_p90(self) -> float | None:
            """Late end of the turns until red."""
            ...

        @property
        def turns_until_compaction_p10(self) -> float | None:
            """Early end of the turns until the agent compacts by itself."""
            ...

        @property
        def turns_until_compaction_p90(self) -> float | None:
            """Late end of the turns until the agent compacts by itself."""
            ...


EVIDENCE_LABELS: Final[dict[str, str]] = {
    "stated": "by its settings",
    "recorded": "as recorded in this session",
    "earlier": "as recorded in earlier sessions",
    "documented": "as documented for this agent",
}
"""Evidence for the level at which an agent compacts by itself."""

PACE_TURNS: Final = 20
"""Latest turns that the pace of a session is measured on."""


class NextEvent:
    """The event that a forecast is about, and the median of the turns until it."""

    __slots__ = ("name", "turns")

    def __init__(self, name: Literal["compaction", "red"], turns: float | None) -> None:
        self.name = name
        self.turns = turns

    @property
    def text(self) -> str:
        """The event and its turns, such as `red in 4`, `compaction now`; empty if it is not expected."""
        if self.turns is None or not math.isfinite(self.turns):
            return ""
        turns = turns_until(self.turns)
        return f"{self.name} {turns}" if self.turns <= 0 else f"{self.name} in {turns}"

    @property
    def text_short(self) -> str:
        """The event and its turns for a narrow column: `red 4`, `compact 12`."""
        return f"{'red' if self.name == 'red' else 'compact'} {turns_until(self.turns)}"

    def band(self, measured: Banded) -> tuple[float | None, float | None]:
        """Return the 10–90 band of the turns until it, as *measured* has it."""
        if self.name == "compaction":
            return measured.turns_until_compaction_p10, measured.turns_until_compaction_p90
        return measured.turns_until_red_p10, measured.turns_until_red_p90


def next_event(forecasted: Forecasted) -> NextEvent:
    """Return the agent's own compaction where its level is known, else red."""
    if forecasted.turns_until_compaction is not None:
        return NextEvent("compaction", forecasted.turns_until_compaction)
    return NextEvent("red", forecasted.turns_until_red)


def with_band(median: float | None, early: float | None, late: float | None) -> str:
    """Return a forecast with its 10–90 band: `4 turns (3–7)`, `now`, `flat`."""
    turns, band = turns_until(median), turns_band(early, late)
    if median is None or not 0 < median < math.inf:
        return turns
    return f"{turns} {'turn' if turns == '1' else 'turns'}{f' ({band})' if band else ''}"


def time_ahead(turns: float | None, times: Sequence[float | None]) -> str:
    """Return how long *turns* take at the pace of the turns at *times*: `about 4 min`.

    The pace is the median of the latest `PACE_TURNS` distances; empty where it is not known.
    """
    from itertools import pairwise
    from statistics import median

    latest = [one for one in times if one is not None][-PACE_TURNS - 1 :]
    gaps = [later - at for at, later in pairwise(latest) if later > at]
    if turns is None or not 0 < turns < 1_000 or len(gaps) < PACE_TURNS // 4:
        return ""
    minutes = turns * median(gaps) / 60
    if minutes >= 90:
        return f"about {round(minutes / 60)} h"
    return f"about {max(1, round(minutes))} min"


def compaction_level_text(tokens: int | None, evidence: str | None) -> str:
    """Return the level at which the agent compacts and its evidence; empty where it is unknown."""
    if tokens is None:
        return ""
    if evidence == "recorded":
        return f"compacted at {tokens_short(tokens)}"
    return f"compacts at {tokens_short(tokens)} ({EVIDENCE_LABELS.get(evidence or '', UNKNOWN)})"
