"""The channels of each session's alerts."""

from __future__ import annotations

import pytest

from windowpane.alerts.delivery import routes
from windowpane.alerts.delivery.routes import OTHERS, ProjectRoutes


def test_the_projects_of_the_latest_sessions_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "REMEMBERED_SESSIONS", 2)
    requested: list[str] = []

    def project_of(session_id: str) -> str:
        requested.append(session_id)
        return "shop" if session_id != "c" else "bank"

    keys = {OTHERS: frozenset({"log"}), "shop": frozenset({"shop/mail"})}
    found = ProjectRoutes(keys, project_of=project_of)

    assert [found.keys_of(name) for name in ("a", "b", "a", "c")] == [
        frozenset({"shop/mail"}), frozenset({"shop/mail"}), frozenset({"shop/mail"}), frozenset({"log"}),
    ]  # fmt: skip
    assert requested == ["a", "b", "c"]
    found.keys_of("c")
    found.keys_of("b")
    found.keys_of("a")
    assert requested == ["a", "b", "c", "a"], "of three sessions the two latest are remembered"
