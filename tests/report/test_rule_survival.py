"""Survival of the rules of many sessions by the number of compactions."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

from click.testing import CliRunner

from windowpane.cli.sessions import command
from windowpane.core.events import ContentCompressed, Event
from windowpane.core.tracking import SessionInfo, SessionTracker
from windowpane.fidelity.rule_survival import RuleFollower
from windowpane.report.rule_survival import survival_over
from windowpane.store.embedded import SqliteStore
from windowpane.store.filters import SessionFilter

RULES = ("Never push to main.", "Always write tests first.")


def session(name: str, summaries: list[str]) -> list[Event]:
    events: list[Event] = []
    tracker = SessionTracker(
        SessionInfo(name, name, "gpt-4o", "live", "stream"),
        emit=events.extend,
        digest=lambda text: f"{len(text):032x}",
    )
    follower = RuleFollower(tracker, digest=lambda text: f"{len(text):032x}")
    tracker.start(1_000.0)
    for rule in RULES:
        tracker.add("user_message", rule, 10, at=1_000.0)
    for summary in summaries:
        removed = tuple(block.id for block in tracker.window)
        result = tracker.make_replacement("summary", summary, 5, replaces=removed[0])
        compacted = ContentCompressed(
            "compaction", "auto", "accepted", 100, 5, removed=removed, results=(result.id,), method="agent"
        )
        tracker.compress(compacted, (result,), 1_001.0)
        tracker.add("assistant_response", "All right.", 5, at=1_002.0)
        tracker.end_turn(at=1_002.0)
    follower.finish(1_003.0)
    tracker.end("completed", 1_003.0)
    return events


def test_rules_survive_over_sessions_and_those_of_one_agent(tmp_path: Path) -> None:
    path = tmp_path / "windowpane.db"
    with closing(SqliteStore(path)) as store:
        store.append(session("one", [" ".join(RULES), RULES[0]]))
        store.append(session("two", [RULES[1]]))
        both = survival_over(store, SessionFilter())
        first = survival_over(store, SessionFilter(agent="one"))
        none = survival_over(store, SessionFilter(agent="three"))

    assert both == [(1, 4, 3), (2, 2, 1)]
    assert first == [(1, 2, 2), (2, 2, 1)]
    assert none == []
    shown = CliRunner().invoke(command, ["--rules", "--store", str(path)]).output.splitlines()
    assert shown == [
        "3 of 4 rules visible after 1 compaction (75%)",
        "1 of 2 rules visible after 2 compactions (50%)",
    ]
    data = json.loads(CliRunner().invoke(command, ["--rules", "--json", "--store", str(path)]).output)
    assert data[1] == {"compactions": 2, "rules": 2, "visible": 1}
