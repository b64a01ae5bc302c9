"""Sub-agents: listed with their delegations, linked to their parent and back."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from windowpane.core.events import SubagentDelegated, SubagentReturned
from windowpane.store.embedded import SqliteStore
from windowpane.store.filters import SessionFilter
from windowpane_dashboard.queries.team import children_frame, read_delegations


@pytest.fixture
def family(empty_store: SqliteStore, builders: Any) -> SqliteStore:
    """A session with three sub-agents: one came back, one was not stated when it was delegated to."""
    now = time.time()
    parent = builders.rich(start=now - 800, session_id="boss")
    delegations = (
        SubagentDelegated("helper-1"),
        SubagentReturned("helper-1", 420),
        SubagentDelegated("helper-2"),
    )
    empty_store.append(
        [*parent, *(parent[-1]._replace(n=9_000 + n, data=data) for n, data in enumerate(delegations))]
    )
    for name in ("helper-1", "helper-2", "helper-3"):
        events = builders.plain(name, start=now - 700, turns=2, limit_tokens=9_000, end=True)
        empty_store.append(
            [event._replace(context=replace(event.context, parent_session_id="boss")) for event in events]
        )
    return empty_store


def test_sub_agents_are_listed_with_their_result(family: SqliteStore) -> None:
    children = family.sessions(SessionFilter(parent_session_id="boss"))

    frame = children_frame(family, "boss", children)

    by_name = {child.session_id: frame.iloc[index] for index, child in enumerate(children)}
    assert by_name["helper-1"]["result"] == 420
    assert by_name["helper-1"]["delegated"] == "session?session=boss&turn=23"
    assert by_name["helper-1"]["returned"] == "session?session=boss&turn=23"
    assert pd.isna(by_name["helper-2"]["returned"])
    assert str(by_name["helper-2"]["result"]) == "<NA>"


def test_parent_and_child_link_to_each_other(
    family: SqliteStore, open_page: Callable[..., Any], page_text: Callable[..., str]
) -> None:
    parent = open_page("session", session="boss", tab="team")
    assert not parent.exception
    assert "3 sub-agents worked in separate windows" in page_text(parent)

    child = open_page("session", session="helper-1")
    assert not child.exception
    link = next(link for link in child.get("page_link") if "Sub-agent of" in link.label)
    assert link.label.endswith("delegated at turn 23")
    assert "turn=23" in link.proto.query_string


def test_the_turn_of_an_unstated_delegation_is_the_last_one_before_the_child(family: SqliteStore) -> None:
    """Transcripts state results only, so the time decides; a turn without a time decides nothing."""
    children = family.sessions(SessionFilter(parent_session_id="boss"))

    delegated = read_delegations(family, "boss", children).delegated

    assert delegated == {"helper-1": 23, "helper-2": 23, "helper-3": 3}
    unknown = [replace(child, started_at=None) for child in children]
    assert "helper-3" not in read_delegations(family, "boss", unknown).delegated
