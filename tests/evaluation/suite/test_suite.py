"""Fidelity suites: the file, the run, the minimum score and the command."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from windowpane.cli import main
from windowpane.cli.options import EXIT_FAILED, EXIT_USAGE
from windowpane.evaluation.suite.document import load_suite
from windowpane.evaluation.suite.judges import STRING_MATCH, load_callable, string_match
from windowpane.evaluation.suite.run import SuiteReport, SuiteSetup, run_suite
from windowpane.exceptions import ConfigurationError
from windowpane.testing import CharacterCounter, ScriptedModel

EXAMPLES = Path(__file__).parents[3] / "examples" / "fidelity"
FILLER = "\n\n".join(
    f"The output of step {n} was read and nothing in it matters for what follows." for n in range(20)
)
ORIGINAL = (
    f"Decided to use fetch because the bundle must stay small.\n\n{FILLER}\n\n"
    "The file being migrated is src/auth.ts and request_timeout_ms: 8000 holds."
)

WriteSuite = Callable[..., Path]


@pytest.fixture
def write_suite(tmp_path: Path) -> WriteSuite:
    """Write a suite with one case; keywords change the suite, `case` the case; None removes a key."""

    def write(*, case: dict[str, Any] | None = None, **changes: Any) -> Path:
        entry = {
            "name": "migration",
            "original": ORIGINAL,
            "questions": [
                {"ask": "What is the value of request_timeout_ms?", "kind": "recall", "expected": 8000},
                {"ask": "Why was fetch decided on?", "kind": "decision",
                 "expected": "Decided to use fetch because the bundle must stay small"},
            ],
            **(case or {}),
        }  # fmt: skip
        entry = {key: value for key, value in entry.items() if value is not None}
        suite = {"name": "mine", "summary_tokens": 200, "cases": [entry], **changes}
        path = tmp_path / "suite.yaml"
        path.write_text(yaml.safe_dump({key: value for key, value in suite.items() if value is not None}))
        return path

    return write


def run(path: Path, **setup: Any) -> SuiteReport:
    return run_suite(load_suite(path), path.parent, SuiteSetup(CharacterCounter(), **setup))


def command(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["fidelity", *map(str, arguments)])


class TestDocument:
    @pytest.mark.parametrize(
        ("changes", "key"),
        [
            ({"minimum": 0.9}, "minimum"),
            ({"minimum_score": 1.5}, "minimum_score"),
            ({"rounds": 0}, "rounds"),
            ({"dimensions": {"taste": 0.5}}, "dimensions"),
            ({"cases": []}, "cases"),
            ({"name": None}, "name"),
            ({"version": 2}, "version"),
        ],
    )
    def test_a_wrong_key_is_named_with_file_and_line(
        self, write_suite: WriteSuite, changes: dict[str, Any], key: str
    ) -> None:
        path = write_suite(**changes)

        with pytest.raises(ConfigurationError, match=rf"{key}") as refused:
            load_suite(path)

        assert key == "name" or str(path) in str(refused.value)

    @pytest.mark.parametrize(
        ("case", "problem"),
        [
            ({"original_file": "x.txt"}, "exactly one of"),
            ({"original": None}, "exactly one of"),
            ({"original": None, "original_file": "nowhere.txt"}, "file not found: nowhere.txt"),
            ({"original": "  "}, "is empty"),
            ({"questions": [{"ask": "Which?", "kind": "trivia"}]}, "questions.0.kind"),
            ({"questions": [{"ask": "Which?", "kind": "recall", "expected": "unknown"}]}, "not an answer"),
        ],
    )
    def test_a_wrong_case_is_refused(self, write_suite: WriteSuite, case: dict[str, Any], problem: str) -> None:
        with pytest.raises(ConfigurationError, match=problem):
            load_suite(write_suite(case=case))

    def test_two_cases_of_one_name_are_refused(self, write_suite: WriteSuite) -> None:
        case = {"name": "twice", "original": "text"}

        with pytest.raises(ConfigurationError, match="twice"):
            load_suite(write_suite(cases=[case, case]))


class TestTheRun:
    def test_what_the_summary_keeps_is_scored_by_dimension(self, write_suite: WriteSuite) -> None:
        report = run(write_suite())

        assert report.score == 1.0
        assert report.dimensions == {"key_facts": 1.0, "continuity": None, "decisions": 1.0}
        assert report.failures == ()
        assert report.judge == STRING_MATCH

    def test_a_compressor_that_loses_a_fact_fails_the_suite(self, write_suite: WriteSuite) -> None:
        model = ScriptedModel(["Decided to use fetch because the bundle must stay small."])

        report = run(write_suite(), compressor=model, prompt="Be brief.")

        assert report.dimensions["key_facts"] == 0.0
        assert any("score" in failure for failure in report.failures)
        assert model.asked[0][0].startswith("Be brief.")
        assert "request_timeout_ms: 8000" in model.asked[0][1]

    def test_a_dimension_has_a_minimum_of_its_own(self, write_suite: WriteSuite) -> None:
        report = run(write_suite(dimensions={"continuity": 0.5}))

        assert report.failures == ("continuity is unknown",)

    def test_a_case_has_a_minimum_of_its_own(self, write_suite: WriteSuite) -> None:
        model = ScriptedModel(["request_timeout_ms: 8000"])

        report = run(write_suite(case={"minimum_score": 0.9}, minimum_score=0.1), compressor=model)

        assert len(report.failures) == 1
        assert "case migration 0.67 is below 0.90" in report.failures[0]

    def test_a_summary_that_is_not_smaller_fails(self, write_suite: WriteSuite) -> None:
        report = run(write_suite(), compressor=ScriptedModel([ORIGINAL * 2]))

        assert any("not smaller" in failure for failure in report.failures)

    def test_rounds_compress_the_summary_with_the_next_part(self, write_suite: WriteSuite) -> None:
        model = ScriptedModel(["first summary", "request_timeout_ms: 8000"])

        report = run(write_suite(rounds=2), compressor=model)

        assert len(model.asked) == 2
        assert "first summary" in model.asked[1][1]
        assert report.dimensions == {"key_facts": 1.0, "continuity": None, "decisions": 0.0}

    def test_a_compressor_that_fails_is_reported_and_fails_the_suite(self, write_suite: WriteSuite) -> None:
        report = run(write_suite(), compressor=ScriptedModel([ConnectionError("no route")]))

        assert report.score is None
        assert any("ConnectionError" in failure for failure in report.failures)

    def test_without_questions_they_are_made_from_the_facts(self, write_suite: WriteSuite) -> None:
        report = run(write_suite(case={"questions": None}))

        assert len(report.cases[0].judgment.judged) >= 2

    def test_a_recorded_session_is_a_text(self, write_suite: WriteSuite, tmp_path: Path) -> None:
        messages = [
            {"role": "user", "content": "Find out why the service does not start."},
            {"role": "assistant", "content": "Decided to change the port because 8443 is taken. port: 9443"},
        ]
        (tmp_path / "chat.json").write_text(json.dumps(messages * 10))

        report = run(write_suite(case={"original": None, "questions": None, "session": {"file": "chat.json"}}))

        assert report.cases[0].judgment.score is not None
        assert report.cases[0].tokens_before > 100


class TestTheStringMatchingJudge:
    def test_it_refuses_what_is_no_judge_prompt(self) -> None:
        with pytest.raises(ValueError, match="only answers"):
            string_match("Summarise", "this")


class TestCallables:
    def test_a_function_is_found_in_a_module_and_in_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "mine.py").write_text("def judge(system, user):\n    return 'yes'\n")

        assert load_callable("windowpane.evaluation.suite.judges:string_match", option="--judge") is string_match
        assert load_callable(f"{tmp_path / 'mine.py'}:judge", option="--judge")("", "") == "yes"

    @pytest.mark.parametrize(
        "reference",
        ["judge", ":judge", "no.such.module:judge", "nowhere.py:judge", "json:no_such", "json:__name__"],
    )
    def test_a_missing_function_is_an_invalid_option(self, reference: str) -> None:
        with pytest.raises(ConfigurationError, match="--judge"):
            load_callable(reference, option="--judge")

    @pytest.mark.parametrize(
        ("code", "problem"),
        [("raise ValueError('no key')", "ValueError: no key"), ("def judge(:", "SyntaxError")],
    )
    def test_code_that_raises_is_an_invalid_option(self, tmp_path: Path, code: str, problem: str) -> None:
        (tmp_path / "mine.py").write_text(code)
        result = command(EXAMPLES / "suite.yaml", "--judge", f"{tmp_path / 'mine.py'}:judge")

        assert result.exit_code == EXIT_USAGE
        assert f"mine.py ({problem}" in result.output


class TestCommand:
    def test_the_example_runs_without_a_model(self) -> None:
        result = command(EXAMPLES / "suite.yaml", "--judge", f"{EXAMPLES / 'judges.py'}:offline")

        assert result.exit_code == 0, result.output
        assert "no model" in result.stdout
        assert "passed" in result.stdout
        assert "LOST" in result.stdout

    def test_below_the_minimum_score_it_exits_with_one(self) -> None:
        result = command(EXAMPLES / "suite.yaml", "--min-score", "0.99")

        assert result.exit_code == EXIT_FAILED
        assert "is below 0.99" in result.stdout

    def test_json_holds_every_question_with_its_outcome(self) -> None:
        document = json.loads(command(EXAMPLES / "suite.yaml", "--json").stdout)

        assert document["passed"] is True
        assert document["cases"][0]["questions"][0].keys() >= {"question", "expected", "outcome", "answers"}

    def test_an_invalid_suite_has_another_exit_code_than_a_failed_one(self, write_suite: WriteSuite) -> None:
        result = command(write_suite(rounds="many"))

        assert result.exit_code == EXIT_USAGE
        assert "rounds" in result.output

    def test_a_prompt_without_a_model_is_a_usage_error(self, write_suite: WriteSuite, tmp_path: Path) -> None:
        """The extractive summarizer takes no prompt, so it would test nothing."""
        prompt = tmp_path / "prompt.txt"
        prompt.write_text("Be brief.")

        result = command(write_suite(), "--prompt", prompt)

        assert result.exit_code == EXIT_USAGE
        assert "--compressor" in result.output

    def test_prompt_compressor_and_judge_are_used(self, write_suite: WriteSuite, tmp_path: Path) -> None:
        (tmp_path / "mine.py").write_text(
            "def squeeze(system, user):\n"
            "    return 'request_timeout_ms: 8000' if 'Keep numbers' in system else '-'\n"
            "def judge(system, user):\n    return 'yes' if 'Second answer' in user else '8000'\n"
        )
        prompt = tmp_path / "prompt.txt"
        prompt.write_text("Keep numbers.")

        result = command(
            write_suite(), "--compressor", f"{tmp_path}/mine.py:squeeze", "--judge", f"{tmp_path}/mine.py:judge",
            "--prompt", prompt, "--json",
        )  # fmt: skip

        document = json.loads(result.stdout)
        assert result.exit_code == 0, result.output
        assert (document["compressor"], document["judge"]) == ("squeeze", "judge")
        assert document["score"] == 1.0
