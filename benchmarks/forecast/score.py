"""Score forecasts of how many more calls an agent makes before its window is full.

    python benchmarks/forecast/score.py                                 the table of README.md
    python benchmarks/forecast/score.py my_module:my_forecaster ...     also these, importable from here
    python benchmarks/forecast/score.py --questions                     write the questions, a JSON object a line
    python benchmarks/forecast/score.py --answers NAME=FILE             also these: {"p10", "p50", "p90"} a line
    python benchmarks/forecast/score.py --write                         write the table into README.md

A forecaster takes a `Question` and returns the calls at the quantiles 0.1, 0.5 and 0.9. Answers are in the order
of the questions. Exits with 2 where a forecaster or an answer is not of that form.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from truth.statistics import interval

from forecast.forecasters import (
    Band,
    bootstrap_of_own_growth,
    remaining_over_mean,
    remaining_over_mean_of_five,
    windowpane,
)
from forecast.measures import coverage, error, loss, width
from forecast.questions import Case, Question, cases, courses

README: Final = Path(__file__).with_name("README.md")
ORDER: Final = ("50k", "100k", "200k", "own")
FORECASTERS: Final[dict[str, Callable[[Question], Band]]] = {
    "remaining / mean of all calls": remaining_over_mean,
    "remaining / mean of the last 5": remaining_over_mean_of_five,
    "bootstrap of own growth": bootstrap_of_own_growth,
    "Windowpane": windowpane,
}
_TABLE: Final = re.compile(r"(<!-- scores: [^>]*-->\n).*?(<!-- /scores -->)", re.DOTALL)


def table(questions: Sequence[Case], answers: dict[str, Sequence[Band]]) -> list[str]:
    """Return the row of each half, level and forecaster; intervals are of a bootstrap by session."""
    lines = [
        "| half | level | forecaster | questions (sessions) | loss | median error | 10–90 holds | median width |",
        "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for half in ("reporting", "tuning"):
        for level in ORDER:
            chosen = [n for n, one in enumerate(questions) if one.half == half and one.question.level == level]
            for name, bands in answers.items() if chosen else ():
                by_session: dict[str, list[tuple[float, ...]]] = {}
                for n in chosen:
                    by_session.setdefault(questions[n].question.session, []).append(
                        (questions[n].turns, *bands[n])
                    )
                blocks = [[np.array(rows)] for rows in by_session.values()]
                losses, errors, held, widths = (
                    interval(blocks, lambda some, measure=measure: measure(np.concatenate(some)))  # type: ignore[misc]
                    for measure in (loss, error, coverage, width)
                )
                lines.append(
                    f"| `{half}` | {level} | {name} | {len(chosen):,} ({len(blocks)}) | {losses.text(1)} "
                    f"| {errors.text(1)} | {held.text()} | {widths.value:.0f} |"
                )
    return lines


def checked(band: object, where: str) -> Band:
    """Return the three numbers of a forecast. Raises `ValueError` where they are not three in ascending order."""
    match band:
        case [int() | float() as early, int() | float() as median, int() | float() as late]:
            if all(map(math.isfinite, (early, median, late))) and 0 <= early <= median <= late:
                return float(early), float(median), float(late)
    message = f"{where}: expected three finite numbers of calls in ascending order, got {band!r}"
    raise ValueError(message)


def answers_of(path: Path, count: int) -> list[Band]:
    """Read the answers of a file. Raises `ValueError` naming the line that is wrong."""
    lines = path.read_text(encoding="utf-8").splitlines()
    if len(lines) != count:
        message = f"{path}: expected {count:,} answers, one for each question, got {len(lines):,}"
        raise ValueError(message)
    found = []
    for number, line in enumerate(lines, 1):
        where = f"{path}: line {number}"
        try:
            row = json.loads(line)
            band = [row["p10"], row["p50"], row["p90"]]
        except (json.JSONDecodeError, KeyError, TypeError) as problem:
            message = f'{where}: expected {{"p10": …, "p50": …, "p90": …}}'
            raise ValueError(message) from problem
        found.append(checked(band, where))
    return found


def function_of(text: str) -> Callable[[Question], Band]:
    """Return the function that `module:function` names. Raises `ValueError` where there is none."""
    module, _, name = text.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as problem:
        message = f"{text}: expected module:function, importable from here ({problem})"
        raise ValueError(message) from problem
    return found  # type: ignore[no-any-return]


def main(arguments: Sequence[str]) -> int:
    """Print the scores; 2 where a forecast cannot be read."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("forecasters", nargs="*", metavar="MODULE:FUNCTION")
    parser.add_argument("--questions", action="store_true")
    parser.add_argument("--answers", action="append", default=[], metavar="NAME=FILE")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args(arguments)
    questions = [one for course in courses() for one in cases(course)]
    if options.questions:
        for one in questions:
            print(json.dumps(asdict(one.question)))
        return 0
    sys.path.insert(0, ".")
    try:
        scored = {}
        for text in options.answers:
            name, _, file = text.rpartition("=")
            scored[name or file] = answers_of(Path(file), len(questions))
        forecasters = FORECASTERS | {text: function_of(text) for text in options.forecasters}
        answers: dict[str, Sequence[Band]] = {
            name: [
                checked(
                    list(forecast(one.question)),
                    f"{name}: session {one.question.session}, call {one.question.call}",
                )
                for one in questions
            ]
            for name, forecast in forecasters.items()
        }
    except (ValueError, OSError) as problem:
        print(problem, file=sys.stderr)
        return 2
    lines = table(questions, answers | scored)
    print("\n".join(lines))
    if options.write:
        text = README.read_text(encoding="utf-8")
        README.write_text(
            _TABLE.sub(lambda match: f"{match[1]}\n" + "\n".join(lines) + f"\n\n{match[2]}", text),
            encoding="utf-8",
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
