"""Maintenance keeps the sessions of each project for its own time."""

from __future__ import annotations

import pytest
from tests.store.conformance.conftest import Stores

from windowpane.config.projects import ProjectRetention
from windowpane.core.events import Event, EventContext, SessionDescribed, TurnStarted
from windowpane.outputs.http.maintenance import DAY_SECONDS, StoreMaintenance
from windowpane.store.store import Store

NOW = 1_800_000_000.0
AGES = (1, 10, 40, 100)
"""Days since the last event of each session."""


@pytest.fixture
def store(stores: Stores) -> Store:
    """A session of each age in `shop`, in `bank` and in no project."""
    opened = stores.open()
    for project in ("shop", "bank", ""):
        for days in AGES:
            name = f"{project or 'none'}-{days}"
            context = EventContext(name, "agent", "gpt-5", 1, 1, "live", f"{name}/stream")
            at = NOW - days * DAY_SECONDS
            opened.append([
                Event(context, 0, at, SessionDescribed(label=name, project=project)),
                Event(context, 1, at, TurnStarted()),
            ])  # fmt: skip
    return opened


def retained(store: Store, days: float, max_bytes: int = 10**12, **projects: ProjectRetention) -> set[str]:
    StoreMaintenance(store, rules=(), clock=lambda: NOW).prune(days=days, max_bytes=max_bytes, projects=projects)
    assert store.verify().intact
    return {row.session_id for row in store.sessions()}


def test_a_project_keeps_its_sessions_for_its_own_days(store: Store) -> None:
    shop, bank = ProjectRetention(days=90), ProjectRetention(days=5)
    assert retained(store, 30, shop=shop, bank=bank) == {
        "shop-1",
        "shop-10",
        "shop-40",
        "bank-1",
        "none-1",
        "none-10",
    }


def test_a_project_without_days_has_those_of_the_store(store: Store) -> None:
    rest = {f"{project}-{days}" for project in ("shop", "bank", "none") for days in (1, 10)}
    assert retained(store, 30, shop=ProjectRetention(bytes=10**12)) == rest


def test_the_oldest_sessions_of_a_project_make_room_in_its_size(store: Store) -> None:
    share = store.size().bytes * 2 // 9
    remaining = retained(store, 1_000, shop=ProjectRetention(bytes=share))

    assert {name for name in remaining if not name.startswith("shop")} == {
        f"{project}-{days}" for project in ("bank", "none") for days in AGES
    }
    assert 0 < len({name for name in remaining if name.startswith("shop")}) < len(AGES)
    assert "shop-1" in remaining
    assert "shop-100" not in remaining


def test_the_size_of_the_store_is_for_all_projects(store: Store) -> None:
    assert retained(store, 1_000, max_bytes=1, shop=ProjectRetention(days=900)) == set()


def test_an_earlier_revision_has_the_retention_of_the_current_one(store: Store) -> None:
    context = EventContext("none-100", "agent", "gpt-5", 1, 1, "live", "none-100/stream")
    at = NOW - 100 * DAY_SECONDS
    rewritten = [Event(context, n, at, TurnStarted()) for n in range(3)]
    assert store.import_session(lambda: rewritten).revised
    store.assign_project("none-100", "shop")

    assert "none-100" in retained(store, 30, shop=ProjectRetention(days=900))
