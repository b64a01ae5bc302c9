"""Warnings before automatic compactions, and the sizes of windows, as the product states them of recordings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from truth.passages import Course
from windowpane.alerts.engine import AlertEngine
from windowpane.alerts.rules import RULES_BY_NAME
from windowpane.core.events import AlertFired, PressureMeasured

ALERT: Final = "compaction_soon"
RULE: Final = RULES_BY_NAME[ALERT]
EARLIEST: Final = 15
LATEST: Final = 2
PER_TURNS: Final = 200
CONTRADICTED_SHARE: Final = 0.60
"""An automatic compaction below this share of the limit contradicts the limit."""


@dataclass(frozen=True)
class Warned:
    """The warnings of one session: calls at whose end one fired, and the first calls after compactions."""

    course: Course
    fired: tuple[int, ...]

    @property
    def compactions(self) -> list[int]:
        """Automatic compactions with calls before them."""
        return [one.call for one in self.course.compactions if one.automatic and one.call]

    @property
    def in_time(self) -> int:
        """Automatic compactions with a warning 2 to 15 calls before the last call before them."""
        return sum(
            any(LATEST <= call - 1 - fired <= EARLIEST for fired in self.fired) for call in self.compactions
        )

    @property
    def false(self) -> int:
        """Warnings without any compaction within 15 calls."""
        calls = [one.call for one in self.course.compactions]
        return sum(not any(0 < call - fired <= EARLIEST for call in calls) for fired in self.fired)


def warned(course: Course) -> Warned:
    """Return the warnings that the product fires on a session."""
    fired: list[int] = []
    call = -1
    for event in AlertEngine().interleave(course.session.events):
        data = event.data
        if isinstance(data, PressureMeasured) and data.phase == "final" and data.count_source == "usage":
            call += 1
        elif isinstance(data, AlertFired) and data.alert == ALERT:
            fired.append(call)
    return Warned(course, tuple(fired))


def warning_lines(courses: Sequence[Course]) -> list[str]:
    """Return the table of warnings, by half and by repository."""
    every = [warned(course) for course in courses]
    groups = {
        "reporting half": [one for one in every if one.course.session.half == "reporting"],
        "tuning half": [one for one in every if one.course.session.half == "tuning"],
    }
    for source in sorted({one.course.session.source for one in every}):
        groups[source or "other recordings"] = [one for one in every if one.course.session.source == source]
    groups["all"] = every
    intro = (
        f"`{ALERT}` fires where the median forecast is at most {RULE.threshold:.0f} turns, and again "
        f"{RULE.repeat_turns} turns later. A compaction is warned of in time if it fired {LATEST} to "
        f"{EARLIEST} calls before the last call before the compaction; a warning is false if no compaction, "
        f"automatic or not, follows within {EARLIEST} calls. The threshold was chosen with a look "
        "at both halves, so only further sessions can confirm it."
    )
    return [
        intro,
        "",
        "| sessions | calls | automatic compactions | warned in time | false warnings | per 200 calls |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
        *(_row(name, group) for name, group in groups.items()),
        "",
    ]


def _row(name: str, group: Sequence[Warned]) -> str:
    calls = sum(len(one.course.totals) for one in group)
    compactions = sum(len(one.compactions) for one in group)
    in_time, false = sum(one.in_time for one in group), sum(one.false for one in group)
    share = f" ({in_time / compactions:.0%})" if compactions else ""
    return (
        f"| {name} ({len(group)}) | {calls:,} | {compactions} | {in_time}{share} | {false} "
        f"| {PER_TURNS * false / calls:.2f} |"
    )


def window_lines(courses: Sequence[Course]) -> list[str]:
    """Return the sources of the limits, and the recordings that contradict one."""
    last = Counter(course.measured[-1].limit_source or "unknown" for course in courses)
    above = sum(
        one.limit_tokens is not None and one.used_tokens > one.limit_tokens
        for course in courses
        for one in course.measured
    )
    compactions = contradicted = 0
    for course in courses:
        for compaction in course.compactions:
            before, after = course.measured[compaction.call - 1 : compaction.call + 1] or (None, None)
            if compaction.automatic and compaction.call and before is not None and after is not None:
                compactions += 1
                limit = after.limit_tokens
                contradicted += limit is not None and before.used_tokens < CONTRADICTED_SHARE * limit
    calls = sum(len(course.measured) for course in courses)
    sources = ", ".join(f"{source} {number}" for source, number in last.most_common())
    text = (
        f"Source of the limit at the last call: {sources}. Of {calls:,} calls {above} are larger than the "
        f"limit stated at their end; of {compactions} automatic compactions {contradicted} are below "
        f"{CONTRADICTED_SHARE:.0%} of the limit stated after them."
    )
    return [text, ""]
