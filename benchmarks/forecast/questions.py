"""The questions of the benchmark: how many more calls until the window of a recorded session is full?"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

DATA: Final = Path(__file__).with_name("courses.jsonl")
LEVELS: Final = (50_000, 100_000, 200_000)
FIRST_QUESTION: Final = 3
"""Calls of a session before its first question."""


@dataclass(frozen=True)
class Course:
    """The size of one session's window over its calls; no content, and no name but that of the agent."""

    id: str
    agent: str
    half: str
    """`tuning` to fit constants on, `reporting` to judge."""
    totals: tuple[int, ...]
    """Input tokens of each call, cached ones included, as the provider counted them."""
    compactions: tuple[tuple[int, bool], ...]
    """Index of the first call after each compaction, and whether the agent made it by itself."""
    own_levels: tuple[tuple[int, int | None], ...]
    """Tokens above which the agent compacts by itself, after the call from which on they were known; None where
    they were not."""

    def own_level(self, call: int) -> int | None:
        """Return the tokens above which the agent compacts by itself, as known at this call."""
        return next((tokens for first, tokens in reversed(self.own_levels) if first <= call), None)


@dataclass(frozen=True)
class Question:
    """The session up to one call, which is all a forecaster may know, and a level ahead of it."""

    session: str
    call: int
    agent: str
    totals: tuple[int, ...]
    """Up to and with this call."""
    compactions: tuple[int, ...]
    """Indexes of the calls after the compactions so far."""
    level: str
    """`50k`, `100k`, `200k`, or `own`: the one above which the agent compacts by itself."""
    level_tokens: int

    @property
    def remaining(self) -> int:
        """Tokens up to the level."""
        return self.level_tokens - self.totals[-1]

    @property
    def growth(self) -> tuple[int, ...]:
        """Growth from call to call, without that over a compaction."""
        return tuple(
            max(0, self.totals[n] - self.totals[n - 1])
            for n in range(1, len(self.totals))
            if n not in self.compactions
        )


@dataclass(frozen=True)
class Case:
    """A question with its outcome."""

    question: Question
    half: str
    turns: int
    """Calls until the level was passed; for `own`, until the last call before the compaction."""


def courses(path: Path = DATA) -> list[Course]:
    """Read the sessions of a file of the benchmark."""
    return [
        Course(**{name: _tuples(value) for name, value in json.loads(line).items()})
        for line in path.read_text(encoding="utf-8").splitlines()
    ]


def _tuples(value: Any) -> Any:
    return tuple(_tuples(one) for one in value) if isinstance(value, list) else value


def write(sessions: list[Course], path: Path = DATA) -> None:
    """Write sessions in the form that `courses` reads."""
    lines = (json.dumps(asdict(one), separators=(",", ":")) for one in sessions)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def cases(course: Course) -> Iterator[Case]:
    """Yield the questions of a session whose outcome was observed.

    A level is omitted where the session or the window ended before it was passed, `own` also where the user
    compacted first.
    """
    ends = dict(course.compactions)
    for call in range(FIRST_QUESTION, len(course.totals) - 1):
        end = min((end for end in ends if end > call), default=None)
        after = course.totals[call + 1 : end]
        so_far = tuple(index for index in ends if index <= call)

        def question(level: str, tokens: int, call: int = call, so_far: tuple[int, ...] = so_far) -> Question:
            return Question(
                course.id, call, course.agent, course.totals[: call + 1], so_far, level, tokens
            )  # fmt: skip

        for tokens in LEVELS:
            turns = next((n for n, total in enumerate(after, 1) if total >= tokens), None)
            if course.totals[call] < tokens and turns is not None:
                yield Case(question(f"{tokens // 1_000}k", tokens), course.half, turns)
        own = course.own_level(call)
        if own is not None and course.totals[call] < own and end is not None and ends[end]:
            yield Case(question("own", own), course.half, end - 1 - call)
