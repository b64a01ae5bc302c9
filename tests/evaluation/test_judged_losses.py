"""A judge for recordings: a recorded run of a model, replayed by a provider on loopback."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from windowpane.cli.fidelity import command

RUN = Path(__file__).with_name("judge_run.jsonl")
BEFORE = """\
User: Port the client in src/client/api.py to httpx. Keep the number of retries at 17. Never push to main unasked.
Assistant: I decided to use httpx instead of requests because the rest of the service is async.
"""
SUMMARY = "Port the client in src/client/api.py to httpx; retries stay at 19."
JUDGE = """\
import openai

from windowpane import openai_model

client = openai.OpenAI(base_url="{url}", api_key="none", max_retries=0)
judge = openai_model(client, model="recorded")
"""


class Replay(BaseHTTPRequestHandler):
    """Gives the recorded replies in their order, as long as the recorded questions are asked."""

    def do_POST(self) -> None:
        user = json.loads(self.rfile.read(int(self.headers["content-length"])))["messages"][1]["content"]
        row = next(self.server.rows, None)  # type: ignore[attr-defined]
        if row is None or not matches(row, user):
            self.send_error(500, "not as recorded")
            return
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": row["reply"]}}
        body = json.dumps(
            {"id": "c", "object": "chat.completion", "created": 1, "model": "recorded", "choices": [choice]}
        ).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def matches(row: dict[str, Any], user: str) -> bool:
    if "asked" in row:
        return user.endswith(f"Question: {row['asked']}")
    return user.startswith(f"Question: {row['compared']}") if "compared" in row else "Never push" in user


@pytest.fixture
def files(tmp_path: Path) -> Iterator[tuple[str, ...]]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Replay)
    server.rows = map(json.loads, RUN.read_text().splitlines())  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    (tmp_path / "before.txt").write_text(BEFORE)
    (tmp_path / "summary.md").write_text(SUMMARY)
    (tmp_path / "judges.py").write_text(JUDGE.format(url=f"http://127.0.0.1:{server.server_port}/v1"))
    config = tmp_path / "windowpane.yaml"
    config.write_text(f"health_monitoring: {{judge: {{model: '{tmp_path / 'judges.py'}:judge'}}}}")
    yield str(tmp_path / "before.txt"), "--summary", str(tmp_path / "summary.md"), str(tmp_path), str(config)
    server.shutdown()
    server.server_close()


def test_a_judge_answers_the_four_kinds_of_questions_several_times(files: tuple[str, ...]) -> None:
    *summary, folder, _ = files
    result = CliRunner().invoke(command, [*summary, "--judge", f"{folder}/judges.py:judge"])
    lines = [line.strip() for line in result.output.splitlines()]

    (at,) = [number for number, line in enumerate(lines) if line.startswith("judge ")]
    assert lines[at] == (
        "judge recorded: 0.17, spread 0.25 over 3 repetitions in 20 calls "
        "(recall 0.00, artifact 0.67, continuation 0.00, decision 0.00)"
    )
    assert lines[at + 1].split() == ["WRONG", "recall", "How", "many", "retries", "are", "allowed?"]
    assert lines[at + 2] == "expected 17; got Retries stay at 19."
    assert "not checked by a model" not in result.output


def test_the_configured_judge_answers_and_its_score_has_a_minimum(
    files: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    *summary, _, config = files
    monkeypatch.setenv("WINDOWPANE_CONFIG", config)
    result = CliRunner().invoke(command, [*summary, "--judge", "--json", "--min-score", "0.2"])

    (data,) = json.loads(result.output)
    assert result.exit_code == 1
    assert data["judge"]["kinds"] == {"recall": 0.0, "artifact": 2 / 3, "continuation": 0.0, "decision": 0.0}
    assert [one["outcome"] for one in data["judge"]["questions"]] == ["contradicted", "kept", "lost", "lost"]


def test_a_judge_that_is_not_configured_is_an_error(
    files: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINDOWPANE_CONFIG", str(Path(files[3]) / "none.yaml"))
    (Path(files[3]) / "none.yaml").write_text("{}")
    result = CliRunner().invoke(command, [*files[:3], "--judge"])

    assert result.exit_code == 2
    assert "health_monitoring.judge.model: is not set" in result.output
