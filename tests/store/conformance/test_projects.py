"""A session belongs to a project: stated by its agent, by the setting of an import, or assigned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from windowpane.core.events import Event, SessionDescribed
from windowpane.exceptions import ConfigurationError, StoreError
from windowpane.store.filters import SessionFilter
from windowpane.store.store import Store

Session = Callable[..., list[Event]]


def described(session: list[Event], project: str) -> list[Event]:
    """Return a session whose agent states its project at the end."""
    last = session[-1]
    return [*session, last._replace(n=last.n + 1, data=SessionDescribed(project=project))]


def projects_of(store: Store) -> dict[str, str]:
    return {row.session_id: row.project for row in store.sessions()}


def test_the_agent_states_the_project(store: Store, make_session: Session) -> None:
    store.append(described(make_session("s1"), "shop"))
    store.append(make_session("s2"))

    assert projects_of(store) == {"s1": "shop", "s2": ""}
    assert [row.session_id for row in store.sessions(SessionFilter(project="shop"))] == ["s1"]
    assert [row.session_id for row in store.sessions(SessionFilter(project=""))] == ["s2"]
    assert store.sessions(SessionFilter(project="sho")) == []
    store.rebuild_projections()
    assert projects_of(store) == {"s1": "shop", "s2": ""}
    assert store.verify().intact


def test_an_assignment_is_an_event_of_the_session(store: Store, make_session: Session) -> None:
    store.append(make_session("s1", end=False))
    before = store.session("s1")
    assert before is not None

    store.assign_project("s1", "shop")
    events = store.size().events
    store.assign_project("s1", "shop")
    after = store.session("s1")

    assert after == replace(before, project="shop", events=before.events + 1)
    assert store.size().events == events
    assert store.verify().intact
    with pytest.raises(StoreError, match="s9 is not in the store"):
        store.assign_project("s9", "shop")
    with pytest.raises(ConfigurationError, match="project"):
        store.assign_project("s1", "a shop")


def test_an_assignment_survives_the_import_of_the_recording(store: Store, make_session: Session) -> None:
    recorded = make_session("s1", end=False)
    store.import_session(lambda: recorded[:-1])
    store.assign_project("s1", "shop")

    assert store.import_session(lambda: recorded[:-1]).appended == 0
    assert store.import_session(lambda: recorded).appended == 1
    assert projects_of(store) == {"s1": "shop"}

    rewritten = make_session("s1", turns=9, start=1_700_000_500.0)
    assert store.import_session(lambda: rewritten).revised
    assert projects_of(store) == {"s1": "shop"}
    assert store.verify().intact


def test_a_stored_session_is_read_with_the_project_that_its_stream_names(
    store: Store, make_session: Session
) -> None:
    """So that reading its recording again gives the same events; an assignment is not part of the recording."""
    store.append(described(make_session("s1"), "shop"))
    store.append(make_session("s2"))
    store.assign_project("s2", "bank")

    assert (store.stored_project("s1"), store.stored_project("s2"), store.stored_project("s3")) == (
        "shop",
        "",
        None,
    )
