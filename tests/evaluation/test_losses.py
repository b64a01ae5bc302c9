"""Losses of the compactions of a recording, and of any summary."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from windowpane.cli.fidelity import command

BEFORE = """\
User: Port the client in src/client/api.py to httpx. Keep the number of retries at 17. Never push to main unasked.
User: Set the timeout to 30 seconds, in src/client/settings.py too.
Assistant: I decided to use httpx instead of requests because the rest of the service is async.
"""
SUMMARY = """\
Port the client in src/client/api.py to httpx; retries stay at 19.
Push to main unasked.
The next step is to update the"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str, str]:
    texts = {
        "before.txt": BEFORE,
        "summary.md": SUMMARY,
        "after.txt": "We use httpx instead of requests, rest async.",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    before, summary, after = (str(tmp_path / name) for name in texts)
    return before, summary, after


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(command, arguments)
    return result.exit_code, result.output


def test_a_summary_of_any_text_is_measured_worst_first(files: tuple[str, str, str]) -> None:
    before, summary, after = files
    code, shown = run(before, "--summary", summary, "--after", after)
    lines = [line.strip() for line in shown.splitlines()]

    assert code == 0
    assert lines[0] == "summary.md: 1 of 5 facts kept, 2 lost, 2 contradicted"
    assert lines[1] == "2 statements contradicted; it ends within a sentence"
    assert lines[2].startswith("reversed: “Push to main unasked.” where it was “Never push")
    assert lines[3].startswith("wrong number 19 for 17: ")
    assert "where it was “Keep the number of retries at 17.”" in lines[3]
    assert lines[4].startswith("lost decision: I decided to use httpx")
    assert lines[4].endswith("(needed again)")
    assert lines[6] == "and 1 fact recoverable or kept: --all lists them"
    assert "kept request: Port the client" in run(before, "--summary", summary, "--all")[1]


def test_a_score_below_the_minimum_fails(files: tuple[str, str, str]) -> None:
    before, summary, _ = files

    assert run(before, "--summary", summary, "--min-score", "0.5")[0] == 1
    assert run(before, "--summary", summary, "--min-score", "0.2")[0] == 0


def test_the_data_have_both_sides_of_a_contradiction(files: tuple[str, str, str]) -> None:
    before, summary, _ = files
    (data,) = json.loads(run(before, "--summary", summary, "--json")[1])
    wrong = next(fact for fact in data["facts"] if fact["kind"] == "wrong number")

    assert wrong["text"].split("\n")[0] == "Keep the number of retries at 17."
    assert "retries stay at 19" in wrong["text"].split("\n")[1]


def test_a_recording_has_its_own_compactions(tmp_path: Path) -> None:
    rows = [
        {"type": "user", "uuid": "u1", "sessionId": "s",
         "message": {"role": "user", "content": "Fix src/auth/session.py"}},
        {"type": "assistant", "uuid": "a1", "parentUuid": "u1", "sessionId": "s", "message": {
            "id": "m1", "role": "assistant", "model": "claude-sonnet-4-5",
            "content": [{"type": "text", "text": "I will fix it."}],
            "usage": {"input_tokens": 10, "output_tokens": 5}}},
        {"type": "system", "subtype": "compact_boundary", "uuid": "b1", "sessionId": "s", "content": "compacted",
         "compactMetadata": {"trigger": "manual", "preTokens": 100}},
        {"type": "user", "uuid": "u2", "parentUuid": "b1", "sessionId": "s", "isCompactSummary": True,
         "message": {"role": "user", "content": "Nothing was done."}},
    ]  # fmt: skip
    path = tmp_path / "session.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")

    assert "lost request: Fix src/auth/session.py" in run(str(path))[1]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("before.txt",), "expected a recording"),
        (("before.txt", "--after", "after.txt"), "--after requires --summary"),
        (("before.txt", "--summary", "summary.md", "--compressor", "a:b"), "require a suite"),
        (("before.txt", "--summary", "empty.md"), "is empty"),
    ],
)
def test_what_is_missing_is_named(
    files: tuple[str, str, str], tmp_path: Path, arguments: tuple[str, ...], problem: str
) -> None:
    (tmp_path / "empty.md").write_text("\n", encoding="utf-8")
    paths = [str(tmp_path / one) if "." in one else one for one in arguments]

    code, shown = run(*paths)

    assert code != 0
    assert problem in shown
