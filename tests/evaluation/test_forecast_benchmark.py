"""The published benchmark of forecasts: what a forecaster sees, and how its answers are scored."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def questions() -> Iterator[ModuleType]:
    """The module that reads the data."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        from forecast import questions as module

        yield module
        for name in [name for name in sys.modules if name.partition(".")[0] in {"forecast", "truth"}]:
            sys.modules.pop(name)


def score(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, BENCHMARKS / "forecast" / "score.py", *arguments]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, timeout=300)


def test_a_question_holds_nothing_of_what_follows(questions: ModuleType) -> None:
    course = questions.Course(
        "s",
        "codex",
        "tuning",
        (10_000, 20_000, 30_000, 40_000, 60_000, 15_000, 20_000),
        ((5, True),),
        ((0, 65_000),),
    )

    cases = list(questions.cases(course))

    assert [(one.question.level, one.question.call, one.turns) for one in cases] == [
        ("50k", 3, 1), ("own", 3, 1), ("own", 4, 0),
    ]  # fmt: skip
    assert cases[0].question.totals == (10_000, 20_000, 30_000, 40_000)
    assert cases[0].question.growth == (10_000, 10_000, 10_000)
    assert cases[0].question.compactions == ()


def test_answers_are_scored_beside_the_other_forecasters(questions: ModuleType, tmp_path: Path) -> None:
    turns = [one.turns for course in questions.courses() for one in questions.cases(course)]
    answers = tmp_path / "answers.jsonl"
    answers.write_text("".join(f'{{"p10": {n}, "p50": {n}, "p90": {n}}}\n' for n in turns))

    rows = [line.split(" | ") for line in score("--answers", f"told={answers}").stdout.splitlines()[2:]]

    told = [row for row in rows if row[2] == "told"]
    assert len(told) == len(rows) / 5 == 8
    assert {row[4].split()[0] for row in told} == {"0.0"}
    assert {row[6].split()[0] for row in told} == {"1.00"}


@pytest.mark.parametrize("wrong", ['{"p10": 3, "p50": 2, "p90": 9}', "[1, 2, 3]", "{", '{"p10": 1, "p50": 2}'])
def test_a_wrong_answer_is_an_error_with_its_line(questions: ModuleType, tmp_path: Path, wrong: str) -> None:
    from forecast.score import answers_of

    answers = tmp_path / "answers.jsonl"
    answers.write_text(f'{{"p10": 1, "p50": 2, "p90": 3}}\n{wrong}')

    with pytest.raises(ValueError, match=f"{answers}: line 2"):
        answers_of(answers, 2)


def test_answers_that_cannot_be_read_end_the_program(
    questions: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from forecast.score import main

    answers = tmp_path / "answers.jsonl"
    answers.write_text("[1, 2, 3]")

    assert main(["--answers", str(answers)]) == 2
    assert f"{answers}: expected " in capsys.readouterr().err
