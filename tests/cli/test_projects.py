"""Projects on the command line: tokens, and commands that read one project only."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from windowpane.config.loading import load_config
from windowpane.config.projects import project_of_token
from windowpane.core.events import Event, EventContext, SessionDescribed, TurnStarted
from windowpane.store.embedded import SqliteStore

Run = Callable[..., Result]


@pytest.fixture
def filled(store: Path) -> Path:
    """A session of each of two projects."""
    opened = SqliteStore(store)
    for project in ("shop", "bank"):
        context = EventContext(f"one-of-{project}", "agent", "gpt-5", 1, 1, "live", f"{project}/stream")
        described = SessionDescribed(title=f"work for {project}", project=project)
        opened.append([Event(context, 0, 1e9, described), Event(context, 1, 1e9, TurnStarted())])
    opened.close()
    return store


def test_a_new_token_is_that_of_the_printed_configuration(run: Run, tmp_path: Path) -> None:
    first, second = (run("token", "new", "--project", "shop").output for _ in range(2))
    token = re.search(r"WINDOWPANE_INGEST_TOKEN=(\S+)", first)
    assert token is not None
    settings = first[first.index("projects:") : first.index("To replace")]
    file = tmp_path / "config.yml"
    file.write_text("\n".join(line.removeprefix("  ") for line in f"  {settings}".splitlines()))

    assert project_of_token(load_config(file, environ={}).projects, token[1]) == "shop"
    assert token[1] not in file.read_text()
    assert token[1] not in second
    assert "is not the name of a project" in run("token", "new", "--project", "a b", code=1).output
    run("token", "new", "--project", "", code=2)


def test_commands_read_one_project(run: Run, filled: Path, tmp_path: Path) -> None:
    report = run("report", "one-of", "--project", "shop").output
    assert "work for shop" in report
    assert "project shop" in report
    assert "no session starts with" in run("report", "one-of-bank", "--project", "shop", code=1).output
    assert (
        "no session starts with"
        in run("search", "x", "--session", "one-of-bank", "--project", "shop", code=1).output
    )

    file = tmp_path / "events.jsonl"
    run("audit", "export", "--output", file, "--project", "bank")
    exported = [json.loads(line)["event"]["session_id"] for line in file.read_text().splitlines()]
    assert exported == ["one-of-bank"] * 2
