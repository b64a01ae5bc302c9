"""Adapters that name the agents of a framework: sessions, child sessions, and the windows of a bare client."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.providers.environments import CLAUDE_AGENT_SDK, CLIENTS, CREWAI, GOOGLE_ADK, ROOT
from tests.providers.test_frameworks import RUN_SECONDS, installed, variables
from tests.providers.windows import windows_of
from tests.sampling import EVERYTHING

from windowpane.core.events import BlockAdded
from windowpane.store.embedded import SqliteStore
from windowpane.store.filters import EventFilter
from windowpane.store.records import SessionRow

pytestmark = pytest.mark.timeout(900)  # the first run installs the frameworks
UNSEEN = ("unattributed", "memory_injection")
"""Content that no message of the SDK's transcript states word for word."""
large = pytest.mark.skipif(not EVERYTHING, reason="a large framework: make test-all")


def run(
    module: str, requirements: tuple[str, ...], folder: Path, *arguments: str | Path
) -> tuple[SqliteStore, str]:
    """Run a module in an environment; return its store and its output."""
    path = folder / "windowpane.db"
    done = subprocess.run(
        [installed(requirements), "-W", "ignore", "-m", f"tests.providers.{module}", path, *arguments],
        cwd=ROOT, env={**variables(folder), "CREWAI_DISABLE_TELEMETRY": "true"}, capture_output=True, text=True,
        timeout=RUN_SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    return SqliteStore(path), done.stdout


def sessions(store: SqliteStore, agent: str) -> list[SessionRow]:
    return sorted((row for row in store.sessions() if row.agent == agent), key=lambda row: row.started_at or 0)


@pytest.mark.parametrize(
    ("framework", "requirements", "is_handed_over"),
    [
        pytest.param("openai_agents", CLIENTS, True),
        pytest.param("google_adk", GOOGLE_ADK, True, marks=large),
        pytest.param("crewai", CREWAI, False, marks=large),
    ],
    ids=["openai_agents", "google_adk", "crewai"],
)
def test_agents_have_sessions_of_their_names(
    framework: str, requirements: tuple[str, ...], is_handed_over: bool, tmp_path: Path
) -> None:
    store, _ = run("named_runs", requirements, tmp_path, framework)
    (triage,), billing = sessions(store, "triage"), sessions(store, "billing")
    bare = sessions(store, "bare")

    assert (triage.turns, sum(row.turns for row in billing)) == (1, 3)
    if is_handed_over:
        assert [row.parent_session_id for row in billing] == [triage.session_id]
    assert windows_of(store, [triage, *billing]) == windows_of(store, bare)
    store.close()


@pytest.mark.parametrize(
    ("framework", "requirements"),
    [
        pytest.param("openai_agents_tool", CLIENTS),
        pytest.param("google_adk_tool", GOOGLE_ADK, marks=large),
        pytest.param("crewai_coworker", CREWAI, marks=large),
    ],
    ids=["openai_agents", "google_adk", "crewai"],
)
def test_an_agent_that_works_for_another_one_has_a_child_session(
    framework: str, requirements: tuple[str, ...], tmp_path: Path
) -> None:
    store, _ = run("named_runs", requirements, tmp_path, framework)
    (triage,), (billing,) = sessions(store, "triage"), sessions(store, "billing")

    assert (triage.turns, billing.turns) == (2, 2)
    assert (triage.parent_session_id, billing.parent_session_id) == (None, triage.session_id)
    assert windows_of(store, [triage, billing]) == windows_of(store, sessions(store, "bare"))
    store.close()


@large
def test_sessions_of_the_claude_agent_sdk_are_imported(tmp_path: Path) -> None:
    """Its hooks import the transcripts while it runs: the calls, the tool and its result, and the sub-agent.

    Token for token it is the window of a bare client that sends what the transcript holds, and all that it does
    not hold is unattributed.
    """
    store, output = run("claude_agent_run", CLAUDE_AGENT_SDK, tmp_path, tmp_path)
    (row,) = (one for one in store.sessions() if one.parent_session_id is None and one.session_id != "bare")
    (child,) = (one for one in store.sessions() if one.parent_session_id is not None)
    events = store.events(EventFilter(session_id=row.session_id))
    kinds = {one.event.data.block.content_type for one in events if isinstance(one.event.data, BlockAdded)}

    assert (row.session_id, row.agent, child.parent_session_id) == (
        output.split()[0],
        "claude-code",
        row.session_id,
    )
    assert row.turns >= 3
    assert {"user_message", "tool_call", "tool_result", "assistant_response"} <= kinds
    assert visible(store, row) == visible(store, *sessions(store, "agent"))
    store.close()


def visible(store: SqliteStore, row: SessionRow) -> list[tuple[object, ...]]:
    """Return the content and totals of a window, with one number for all that a transcript does not hold.

    Without estimates before a total and the sizes of calls: a transcript's are counted as one text, those of
    a client as name and arguments, which differs by a token.
    """
    rows = windows_of(store, [row])
    unseen = sum(one[3] for one in rows if one[2] in UNSEEN)
    measured = [one for one in rows if one[1] not in ("before", "next") and one[2] not in UNSEEN]
    return [
        ("unseen", unseen),
        *(one[:3] if one[1] == "usage" or one[2] == "tool_call" else one for one in measured),
    ]
