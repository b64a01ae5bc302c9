"""A session id that is used again, through the public API: the store, the commands and the dashboard."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from windowpane.cli import main
from windowpane.core.events import CheckpointSaved
from windowpane.store.filters import EventFilter
from windowpane.store.open import open_store
from windowpane_dashboard.queries.timeline import read_timeline

RUN = """
import os, sys
import windowpane
from windowpane.testing import chat_reply

store, turns, ending = sys.argv[1], [int(count) for count in sys.argv[2].split(",")], sys.argv[3]
token = os.environ.get("TEST_TOKEN")
settings = {"ingest": {"token": token}} if token else None
running = windowpane.start(store=store, port=0, notify=[], settings=settings)
for count in turns:
    window = windowpane.ContextWindowManager(agent="a", model="gpt-4o", session_id="chat")
    window.add_system("You help.")
    for turn in range(count):
        window.add_user(f"question {turn} of {count}")
        window.on_turn_start()
        window.on_turn_end(chat_reply("certainly", input_tokens=1_000 * (turn + 1), output_tokens=5))
    window.flush()
    if ending == "crash" and count == turns[-1]:
        assert running.flush(30)
        os._exit(9)
    window.close()
assert running.flush(30)
windowpane.stop()
"""


OBSERVED = """
import sys
import httpx, openai, windowpane

asked = []

def reply(request):
    asked.append(request)
    return httpx.Response(200, json={
        "id": f"chatcmpl-{len(asked)}", "object": "chat.completion", "created": 1, "model": "gpt-4o",
        "choices": [{"index": 0, "finish_reason": "stop",
                     "message": {"role": "assistant", "content": f"answer {len(asked)}"}}],
        "usage": {"prompt_tokens": 1_000 * len(asked), "completion_tokens": 5,
                  "total_tokens": 1_000 * len(asked) + 5},
    })

transport = httpx.Client(transport=httpx.MockTransport(reply))
running = windowpane.start(store=sys.argv[1], port=0, notify=[])
client = windowpane.observe(openai.OpenAI(api_key="k", base_url="http://provider.test/v1", http_client=transport))
with windowpane.session(session_id="chat", agent="a"):
    messages = [{"role": "system", "content": "You help."}]
    for turn in range(int(sys.argv[2])):
        messages.append({"role": "user", "content": f"question {turn}"})
        answer = client.chat.completions.create(model="gpt-4o", messages=messages)
        messages.append({"role": "assistant", "content": answer.choices[0].message.content})
assert running.flush(30)
windowpane.stop()
"""

RESUMED = """
import sys
import windowpane
from windowpane.testing import chat_reply

running = windowpane.start(store=sys.argv[1], port=0, notify=[])
with windowpane.ContextWindowManager(
    agent="a", model="gpt-4o", session_id="chat", task_id="migration", task_goal="Migrate the service"
) as window:
    for turn in range(int(sys.argv[2])):
        window.add_user(f"question {turn}")
        window.on_turn_start()
        window.on_turn_end(chat_reply("certainly", input_tokens=1_000 * (turn + 1), output_tokens=5))
    window.task.complete("a step")
assert running.flush(30)
windowpane.stop()
"""


def run_script(script: str, store: Path, turns: int) -> None:
    """Record turns of the session `chat` in a process."""
    environment = os.environ | {"XDG_DATA_HOME": str(store.parent)}
    command = [sys.executable, "-c", script, str(store), str(turns)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr


def run(store: str | Path, turns: str, folder: Path, *, ending: str = "ended", token: str = "") -> None:
    """Record runs of the session `chat` in a process."""
    environment = os.environ | {"XDG_DATA_HOME": str(folder)} | ({"TEST_TOKEN": token} if token else {})
    command = [sys.executable, "-c", RUN, str(store), turns, ending]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == (9 if ending == "crash" else 0), done.stderr
    assert "Traceback" not in done.stderr


def check_story(store: Path | str, session_id: str = "chat") -> None:
    """Three turns of one run, then two of the next, on every surface."""
    with closing(open_store(store)) as reader:
        turns = reader.turns(session_id)
        assert [(turn.turn, turn.window_id, turn.input_tokens) for turn in turns] == [
            (1, 1, 1_000), (2, 1, 2_000), (3, 1, 3_000), (4, 2, 1_000), (5, 2, 2_000),
        ]  # fmt: skip
        row = reader.session(session_id)
        assert row is not None
        assert (row.turns, row.windows, row.exchanges, row.ended) == (5, 2, 5, True)
        assert (row.input_tokens, row.peak_used_tokens) == (9_000, 3_000)
        now = reader.blocks_at(session_id, 5)
        assert {block.turn_added for block in now} == {4, 5}
        assert reader.verify().intact

        timeline = read_timeline(reader, session_id)
        assert list(timeline.turns["turn"]) == [1, 2, 3, 4, 5]
        assert list(timeline.marks["turn"][timeline.marks["letter"] == "W"]) == [3]
        assert len(reader.blocks_at(session_id, 5)) == len(now)
        gone = [one for turn in range(1, 6) for one in reader.removed_blocks(session_id, turn)]
        assert ("roll", "session continued") in {(block.removed_by, block.reason) for block in gone}
    listed = json.loads(CliRunner().invoke(main, ["sessions", "--json", "--store", str(store)]).output)
    assert [(one["session_id"], one["turns"], one["revision"]) for one in listed] == [(session_id, 5, 1)]
    report = CliRunner().invoke(main, ["report", session_id, "--store", str(store)]).output
    assert "5 turns, 5 exchanges, 2 windows" in report


def test_runs_of_one_process_continue(tmp_path: Path) -> None:
    run(tmp_path / "w.db", "3,2", tmp_path)

    check_story(tmp_path / "w.db")


@pytest.mark.parametrize("ending", [pytest.param("ended", marks=pytest.mark.matrix), "crash"])
def test_runs_of_two_processes_continue(tmp_path: Path, ending: str) -> None:
    run(tmp_path / "w.db", "3", tmp_path, ending=ending)
    run(tmp_path / "w.db", "2", tmp_path)

    check_story(tmp_path / "w.db")


@pytest.mark.server
def test_runs_continue_on_postgresql(tmp_path: Path, postgres_url: str) -> None:
    run(postgres_url, "3", tmp_path)
    run(postgres_url, "2", tmp_path)

    check_story(postgres_url)


def test_an_observed_session_continues_in_another_process(tmp_path: Path) -> None:
    pytest.importorskip("openai")
    for turns in (3, 2):
        run_script(OBSERVED, tmp_path / "w.db", turns)

    check_story(tmp_path / "w.db")


def test_a_resumed_task_continues_its_session(tmp_path: Path) -> None:
    for turns in (3, 2):
        run_script(RESUMED, tmp_path / "w.db", turns)

    check_story(tmp_path / "w.db")
    with closing(open_store(tmp_path / "w.db")) as reader:
        now = {block.content_type: block for block in reader.blocks_at("chat", 5)}
        assert (now["summary"].turn_added, now["summary"].window_id) == (4, 2)
        saved = [one.event for one in reader.events(EventFilter(session_id="chat", limit=1_000))
                 if isinstance(one.event.data, CheckpointSaved)]  # fmt: skip
    assert [(event.context.turn, event.context.window_id) for event in saved] == [(3, 1)] * 2 + [(5, 2)] * 2
    assert [event.data.version for event in saved] == [1, 2, 3, 4]  # type: ignore[union-attr]


def test_runs_of_other_hosts_continue(tmp_path: Path, free_port, run_server) -> None:
    store, port = tmp_path / "server.db", free_port()
    config = tmp_path / "server.yml"
    config.write_text('projects: {alpha: {tokens: ["alpha-token-0123456789"]}}\n')

    def ready() -> bool:
        try:
            return bool(urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=2).status == 200)
        except OSError:
            return False

    command = [
        "env", f"WINDOWPANE_CONFIG={config}", sys.executable, "-m", "windowpane", "serve", "--ingest",
        "--port", str(port), "--store", store,
    ]  # fmt: skip
    run_server(command, ready=ready)
    for turns in ("3", "2"):
        run(f"http://127.0.0.1:{port}", turns, tmp_path / turns, token="alpha-token-0123456789")

    check_story(store, "chat@alpha")
