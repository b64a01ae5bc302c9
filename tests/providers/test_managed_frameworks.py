"""Managers inside real frameworks: windows and requests equal those of a hand-driven manager."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.providers.environments import CLIENTS, ROOT, STRANDS
from tests.providers.test_frameworks import RUN_SECONDS, installed, variables
from tests.providers.windows import windows
from tests.sampling import EVERYTHING

from windowpane.store.embedded import SqliteStore
from windowpane.store.filters import SessionFilter
from windowpane.store.records import SessionRow

FRAMEWORKS = ("langchain", "langchain_async", "openai_agents", "pydantic_ai")
pytestmark = pytest.mark.timeout(900)  # the first run installs the frameworks


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[SqliteStore, dict[str, Any]]:
    """Return the store of the runs and what was sent."""
    return run(CLIENTS, tmp_path_factory.mktemp("managed"))


def run(requirements: tuple[str, ...], folder: Path, *frameworks: str) -> tuple[SqliteStore, dict[str, Any]]:
    """Run the managed agents of an environment."""
    path = folder / "windowpane.db"
    done = subprocess.run(
        [installed(requirements), "-W", "ignore", "-m", "tests.providers.managed_runs", path, *frameworks],
        cwd=ROOT, env=variables(folder), capture_output=True, text=True, timeout=RUN_SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    return SqliteStore(path), json.loads(path.with_suffix(".json").read_text())


def session_of(store: SqliteStore, agent: str) -> SessionRow:
    """Return the only session of an agent."""
    (row,) = (row for row in store.sessions(SessionFilter()) if row.agent == agent)
    return row


def seen(messages: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Return what a model sees of messages: one entry for each part."""
    return [
        (
            message["role"],
            part,
            message.get("tool_call_id"),
            [
                (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
                for call in message.get("tool_calls") or ()
            ],
        )
        for message in messages
        for part in _parts(message.get("content"))
    ]


def _parts(content: Any) -> list[Any]:
    return [part["text"] for part in content] if isinstance(content, list) else [content]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_managed_framework_equals_a_manager_driven_by_hand(
    framework: str, runs: tuple[SqliteStore, dict[str, Any]]
) -> None:
    store, outcome = runs
    managed = windows(store, session_of(store, framework).session_id)
    by_hand = windows(store, session_of(store, f"{framework} by hand").session_id)

    assert [seen(messages) for messages in outcome[framework]["sent"]] == [
        seen(messages) for messages in outcome[framework]["by_hand"]
    ]
    assert {"blocks.evicted", "content.compressed"} <= {row[1] for row in managed}
    if framework == "pydantic_ai":  # a processor is not called after the last reply
        assert managed == by_hand[: len(managed)]
        assert [row[1] for row in by_hand[len(managed) :]].count("usage") == 1
    else:
        assert managed == by_hand


@pytest.mark.skipif(not EVERYTHING, reason="a large framework: make test-all")
def test_managed_strands_equals_a_manager_driven_by_hand(tmp_path: Path) -> None:
    store, outcome = run(STRANDS, tmp_path, "strands")
    sent = outcome["strands"]
    managed = windows(store, session_of(store, "strands").session_id)

    assert [seen(messages) for messages in sent["sent"]] == [seen(messages) for messages in sent["by_hand"]]
    assert managed == windows(store, session_of(store, "strands by hand").session_id)
    assert {"blocks.evicted", "content.compressed"} <= {row[1] for row in managed}
    assert sent["unmanaged"] == 4
    assert (session_of(store, "overflow").overflows, session_of(store, "overflow").turns) == (1, 4)


@pytest.mark.parametrize("framework", ["langchain", "openai_agents", "pydantic_ai"])
def test_after_a_failure_the_agent_sends_its_own_messages(
    framework: str, runs: tuple[SqliteStore, dict[str, Any]]
) -> None:
    assert runs[1][framework]["unmanaged"] == 4


def test_an_agent_that_is_handed_the_conversation_is_a_child(
    runs: tuple[SqliteStore, dict[str, Any]],
) -> None:
    rows = runs[0].sessions(SessionFilter())
    first, second = sorted((row for row in rows if row.agent == "triage"), key=lambda row: row.started_at)

    assert session_of(runs[0], "billing").parent_session_id == first.session_id
    assert (first.parent_session_id, second.parent_session_id) == (None, None)


def test_a_call_that_is_too_large_is_repeated_smaller(runs: tuple[SqliteStore, dict[str, Any]]) -> None:
    row = session_of(runs[0], "overflow")

    assert (row.overflows, row.turns) == (1, 4)
