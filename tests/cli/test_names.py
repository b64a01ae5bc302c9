"""Sessions are found and shown by the names that people know them by."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.two_projects import SAME, played

from windowpane.cli import main
from windowpane.store.open import open_store
from windowpane.store.writes.received import ReceivedBatch

Run = Callable[..., Result]


def row(session: str, name: str, parent: str | None, **more: Any) -> str:
    common = {
        "sessionId": session, "uuid": name, "parentUuid": parent, "cwd": "/srv/shop", "gitBranch": "fix/cart",
        "version": "2.1.0", "timestamp": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    return json.dumps(common | more) + "\n"


def request(session: str, text: str, **more: Any) -> str:
    return row(session, "u1", None, type="user", message={"role": "user", "content": text}, **more)


def reply(session: str, tokens: int, **more: Any) -> str:
    message = {
        "id": f"m-{session}", "role": "assistant", "model": "claude-sonnet-4-5",
        "content": [{"type": "text", "text": "done"}], "usage": {"input_tokens": tokens, "output_tokens": 1},
    }  # fmt: skip
    return row(session, "r1", "u1", type="assistant", message=message, **more)


@pytest.fixture
def imported(run: Run, tmp_path: Path) -> str:
    """A session with a sub-agent."""
    session = "0a1b2c3d-0000-4000-8000-000000000001"
    side = {"isSidechain": True, "agentId": "helper"}
    title = json.dumps({"type": "ai-title", "aiTitle": "Repair of the cart", "sessionId": session}) + "\n"
    path = tmp_path / f"{session}.jsonl"
    path.write_text(
        request(session, "<system-reminder>be brief</system-reminder>please mend the cart")
        + reply(session, 100_000)
        + request(session, "look it up", **side).replace('"u1"', '"s1"')
        + reply(session, 50_000, **side).replace(f"m-{session}", "m-side")
        + title
    )
    os.utime(path, (0, 0))  # finished long ago, so that its last call is over
    run("import", path)
    return session


def test_sessions_are_listed_and_selected_by_their_names(run: Run, imported: str) -> None:
    listed = {row["session_id"]: row for row in json.loads(run("sessions", "--json").stdout)}
    first = listed[imported]

    assert (first["title"], first["title_source"]) == ("Repair of the cart", "agent")
    assert (first["folder"], first["branch"], first["agent_version"]) == ("/srv/shop", "fix/cart", "2.1.0")
    assert "Repair of the" in run("sessions").stdout
    assert "Repair" in run("top", "--all", "--once").stdout
    for option in ("--folder=shop", "--branch=FIX/", "--text=repair"):
        assert imported in {row["session_id"] for row in json.loads(run("sessions", option, "--json").stdout)}
    assert json.loads(run("sessions", "--folder=elsewhere", "--json").stdout) == []
    assert "No session matches" in run("sessions", "--label=other").output


def test_a_report_is_found_by_the_title_and_names_the_folder(run: Run, imported: str) -> None:
    lines = run("report", "repair of").stdout.splitlines()

    assert lines[0] == "Repair of the cart"
    assert lines[1] == imported
    assert lines[2] == "folder /srv/shop   branch fix/cart"


def test_the_cost_of_sub_agents_is_part_of_the_cost(run: Run, imported: str) -> None:
    parent = next(row for row in json.loads(run("sessions", "--json").stdout) if row["session_id"] == imported)

    assert parent["subagent_cost_dollars"] == pytest.approx(parent["cost_dollars"] / 2, rel=0.2)
    assert parent["total_cost_dollars"] == pytest.approx(parent["cost_dollars"] + parent["subagent_cost_dollars"])
    assert "with its sub-agents" in run("report", imported).stdout


def test_imported_sessions_belong_to_the_project_of_the_setting(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--project` overrides `WINDOWPANE_PROJECT`; a stored session keeps its project and its one revision."""
    paths = [tmp_path / f"{number}.jsonl" for number in range(2)]
    for path in paths:
        path.write_text(request(path.stem, "please mend it") + reply(path.stem, 1_000))
    monkeypatch.setenv("WINDOWPANE_PROJECT", "42")
    run("import", paths[0])
    run("import", paths[1], "--project", "shop")
    for path in paths:
        with path.open("a") as file:
            file.write(request(path.stem, "and more").replace('"u1"', '"u2"'))
        run("import", path, "--project", "bank")

    listed = {row["session_id"]: row for row in json.loads(run("sessions", "--json").stdout)}
    assert {name: (row["project"], row["revision"]) for name, row in listed.items()} == {
        "claude_code:0": ("42", 1), "claude_code:1": ("shop", 1)
    }  # fmt: skip
    shop = json.loads(run("sessions", "--json", "--project", "shop").stdout)
    assert [row["session_id"] for row in shop] == ["claude_code:1"]
    assert "is not the name of a project" in run("import", paths[0], "--project", "a b", code=1).output


def test_a_session_is_named_by_the_id_that_its_agent_uses(tmp_path: Path) -> None:
    store = open_store(tmp_path / "w.db")
    sent = [(SAME, "shop"), (SAME, "bank"), (f"{SAME}-too", "shop"), ("lone", "bank"), ("lone-2", "bank")]
    for session_id, project in sent:
        store.receive([ReceivedBatch(played(session_id, ""), project=project)])
    store.close()

    def report(*arguments: str) -> Result:
        return CliRunner().invoke(main, ["report", *arguments, "--store", str(tmp_path / "w.db")])

    assert report("lone").exit_code == 0
    assert report(SAME, "--project", "shop").exit_code == 0
    assert "could be any of" in report(SAME).output
