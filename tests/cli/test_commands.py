"""The command line as a user meets it: real files in, real output and exit codes out."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import Result

from windowpane.cli import COMMANDS, main
from windowpane.cli.documents import document_of
from windowpane.cli.options import EXIT_ALERTS, EXIT_FAILED, EXIT_PARTIAL
from windowpane.cli.output import print_json
from windowpane.report.context_health import Change
from windowpane.store.search.content import Snippet

Run = Callable[..., Result]

FILE_TEXT = "The service reads config.yaml, then opens port 8443 and fails with ECONNREFUSED. " * 120


def conversation(*, rounds: int) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "You are a careful engineer."},
        {"role": "user", "content": "Find out why the service does not start."},
    ]
    for number in range(rounds):
        call = {
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": "read", "arguments": f'{{"n":{number}}}'},
        }
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"call_{number}", "content": f"{number} {FILE_TEXT}"})
    messages.append({"role": "assistant", "content": "The port is taken."})
    return messages


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "conversation.json"
    path.write_text(json.dumps(conversation(rounds=8)), encoding="utf-8")
    return path


@pytest.fixture
def imported(run: Run, recording: Path) -> str:
    """The id of a session that was imported into a window it fills."""
    output = run("import", recording, "--limit", "16000", "--json").stdout
    session = json.loads(output)[0]["sessions"][0]["session_id"]
    assert isinstance(session, str)
    return session


class TestHelp:
    @pytest.mark.parametrize("name", sorted(COMMANDS))
    def test_every_command_explains_itself_with_an_example(self, run: Run, name: str) -> None:
        output = run(name, "--help").output
        group = main.get_command(click.Context(main), name)

        assert "Usage:" in output
        for word in group.commands if isinstance(group, click.Group) else ():
            output = run(name, word, "--help").output
            assert "Example:" in output
        assert "Example:" in output


class TestStatedTotals:
    def test_lists_and_reports_mark_the_total_of_a_whole_session(self, run: Run, tmp_path: Path) -> None:
        totals = {"instance_cost": 3.21, "tokens_sent": 1_234_567, "tokens_received": 8_901, "api_calls": 1}
        history = [{"role": "user", "content": "Go on."}, {"role": "assistant", "content": "Done."}]
        path = tmp_path / "run.traj"
        path.write_text(json.dumps({"history": history, "info": {"model_stats": totals}}), encoding="utf-8")
        output = run("import", path, "--json").stdout
        session = json.loads(output)[0]["sessions"][0]["session_id"]

        stated = "stated by the recording for the whole session"
        assert "$3.21*" in run("sessions").stdout
        assert f"* {stated}" in run("sessions").stderr
        report = " ".join(run("report", session).stdout.split())
        assert f"Cost $3.21* {stated}: sent 1,234,567 tokens, written 8,901, cost $3.21" in report
        assert "no usage" not in report
        page = tmp_path / "report.html"
        run("report", session, "--html", page)
        assert "$3.21*" in page.read_text(encoding="utf-8")


class TestImport:
    def test_it_prints_what_it_found(self, run: Run, recording: Path) -> None:
        output = run("import", recording).output

        assert "conversation.json" in output
        assert "1 session" in output

    def test_the_user_may_name_the_model_a_recording_does_not(self, run: Run, recording: Path) -> None:
        run("import", recording, "--model", "gpt-4o")

        (row,) = json.loads(run("sessions", "--json").stdout)
        assert row["model"] == "gpt-4o"
        assert row["limit_source"] == "catalogue"

    def test_importing_twice_changes_nothing(self, run: Run, recording: Path) -> None:
        run("import", recording)

        assert "0 new events" in run("import", recording).output

    def test_a_broken_file_beside_a_good_one_is_partial(self, run: Run, recording: Path, tmp_path: Path) -> None:
        broken = tmp_path / "broken.json"
        broken.write_bytes(b"\x00\x01\x02 not a recording")

        result = run("import", recording, broken, code=EXIT_PARTIAL)

        assert "broken.json" in result.output
        assert "1 session" in result.output

    def test_nothing_readable_is_a_failure(self, run: Run, tmp_path: Path) -> None:
        unknown = tmp_path / "notes.txt"
        unknown.write_text("shopping list")

        assert "expected a recording" in run("import", unknown, code=EXIT_FAILED).output

    def test_skipped_files_of_a_folder_are_named(self, run: Run, recording: Path) -> None:
        (recording.parent / "empty.jsonl").touch()
        (recording.parent / "noise.jsonl").write_bytes(bytes(range(256)))

        output = run("import", recording.parent).output

        assert "empty.jsonl: skipped: the file is empty" in output
        assert "noise.jsonl: skipped: binary data" in output

    def test_a_folder_without_anything_readable_is_a_failure(self, run: Run, tmp_path: Path) -> None:
        """Nothing was imported, so the command fails; the reason is stated for each file."""
        folder = tmp_path / "project"
        folder.mkdir()
        (folder / "package.json").write_text('{"name": "shop"}')

        output = run("import", folder, code=1).output

        assert "package.json: skipped: JSON of no known format; expected a recording of" in output
        assert "0 sessions" in output

    def test_a_path_that_does_not_exist_is_a_usage_error(self, run: Run, tmp_path: Path) -> None:
        assert "does not exist" in run("import", tmp_path / "nowhere", code=2).output


class TestReport:
    def test_it_answers_first(self, run: Run, imported: str) -> None:
        output = run("report", imported).output

        assert "highest" in output
        assert "tool results" in output
        assert "Turns by zone" in output
        assert "Alerts" in output

    def test_a_prefix_is_enough_and_lines_fit_80_columns(self, run: Run, imported: str) -> None:
        output = run("report", imported[:20]).output

        assert imported in output
        assert max(len(line) for line in output.splitlines()) <= 80

    def test_html_is_one_file_that_fetches_nothing(self, run: Run, imported: str, tmp_path: Path) -> None:
        page = tmp_path / "report.html"

        run("report", imported, "--html", page)
        text = page.read_text(encoding="utf-8")

        assert "<svg" in text
        assert "<script" not in text
        assert "http://" not in text.replace("http://www.w3.org", "")
        assert "https://" not in text

    def test_an_unknown_session_is_a_plain_error(self, run: Run, imported: str) -> None:
        assert "windowpane sessions" in run("report", "nothing-like-it", code=1).output

    def test_without_a_store_the_error_names_the_next_step(self, run: Run) -> None:
        assert "windowpane import" in run("report", "x", code=1).output


class TestSessionsAndCheck:
    def test_sessions_lists_what_was_imported(self, run: Run, imported: str) -> None:
        rows = json.loads(run("sessions", "--json").stdout)

        assert [row["session_id"] for row in rows] == [imported]
        assert rows[0]["limit_tokens"] == 16_000

    def test_check_fails_on_alerts_of_the_given_severity(self, run: Run, imported: str) -> None:
        assert "critical" in run("check", imported, "--fail-on", "critical", code=EXIT_ALERTS).output

    def test_check_passes_where_nothing_that_bad_fired(self, run: Run, tmp_path: Path) -> None:
        path = tmp_path / "short.json"
        path.write_text(json.dumps(conversation(rounds=1)), encoding="utf-8")
        session = json.loads(run("import", path, "--limit", "200000", "--json").stdout)[0]["sessions"][0][
            "session_id"
        ]

        assert "passed" in run("check", session).output


class TestAudit:
    def test_an_untouched_store_verifies(self, run: Run, imported: str) -> None:
        assert "chain intact" in run("audit", "verify").output

    def test_heads_kept_elsewhere_verify_too(self, run: Run, imported: str, tmp_path: Path) -> None:
        heads = tmp_path / "heads.jsonl"
        run("audit", "heads", "--output", heads)

        assert "chain intact" in run("audit", "verify", "--heads", heads).output

    def test_export_writes_every_event(self, run: Run, imported: str, tmp_path: Path) -> None:
        out = tmp_path / "events.jsonl"
        run("audit", "export", imported, "--output", out)
        rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]

        assert len(rows) > 20
        assert all("hash" in row and "seq" in row for row in rows)


class TestDoctor:
    def test_it_names_what_is_there(self, run: Run, imported: str) -> None:
        findings = {finding["subject"]: finding for finding in json.loads(run("doctor", "--json").stdout)}

        assert findings["tokenizer"]["verdict"] == "ok"
        assert findings["models"]["verdict"] == "ok"
        assert findings["store"]["verdict"] == "ok"

    def test_a_store_that_is_no_store_is_a_problem(self, run: Run, tmp_path: Path) -> None:
        bad = tmp_path / "bad.db"
        bad.write_bytes(b"this is not a database, but somebody named it so" * 50)

        output = run("doctor", "--store", bad, code=EXIT_FAILED).output

        assert "problem" in output
        assert bad.read_bytes().startswith(b"this is not")


class TestPrune:
    def test_old_sessions_go_and_leave_a_valid_chain(self, run: Run, imported: str) -> None:
        assert "deleted" in run("prune", "--older-than", "1").output
        assert "chain intact" in run("audit", "verify").output


class TestAdvise:
    def test_too_little_to_compare_is_stated(self, run: Run, imported: str) -> None:
        assert imported

        output = run("advise").output

        assert output.startswith("Too few sessions to compare: 0 with 10 calls")
        assert "No level can be compared" in output

    def test_the_data_has_the_missteps_of_the_sessions_that_match(self, run: Run, imported: str) -> None:
        assert imported

        health = json.loads(run("advise", "--json").stdout)["health"]

        assert (health["sessions"], health["calls"]) == (1, 9)
        assert sum(row["calls"] for row in health["by_tenth"]) == health["calls"]
        assert json.loads(run("advise", "--agent", "another", "--json").stdout)["health"]["sessions"] == 0

    def test_an_interval_without_ends_is_null_in_the_data(self, capsys: pytest.CaptureFixture[str]) -> None:
        """Of one session; JSON has no infinite numbers."""
        change = Change("error", None, sessions=1, before=2.0, after=3.0, low=-math.inf, high=math.inf)
        print_json(document_of(Change, is_evident=bool).of(change))

        data = json.loads(capsys.readouterr().out)
        assert (data["before"], data["low"], data["high"], data["is_evident"]) == (2.0, None, None, False)

    def test_a_character_that_cannot_be_encoded_is_a_question_mark_in_the_data(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        print_json(Snippet("“", "\ud800", "…"), Snippet)

        assert json.loads(capsys.readouterr().out) == ["“", "?", "…"]
