"""Two turns compared, a team of agents, and the certificate of a verification."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from windowpane.store.embedded import SqliteStore
from windowpane.store.interface import SessionFilter
from windowpane_dashboard.queries.certificate import certificate
from windowpane_dashboard.queries.team import read_team, team_cost
from windowpane_dashboard.queries.turn_flow import REPLACEMENT, STAYED, turn_flow


def test_the_flow_accounts_for_both_windows(small_store: SqliteStore) -> None:
    flow = turn_flow(small_store, "refactor-api", 14, 15)

    before = {row.block_id for row in small_store.blocks_at("refactor-api", 14)}
    after = {row.block_id for row in small_store.blocks_at("refactor-api", 15)}
    by_flow = {name: set(rows["block"]) for name, rows in flow.groupby("flow")}
    came = by_flow.get("added", set()) | by_flow[REPLACEMENT]
    assert by_flow[STAYED] == before & after
    assert came == after - before
    assert by_flow["compressed"] == before - after
    assert flow.loc[flow["flow"] == "compressed", "why"].str.startswith("compressed").all()


def test_the_tab_explains_the_last_compaction(
    small_store: SqliteStore, open_page: Callable[..., Any], page_text: Callable[..., str]
) -> None:
    app = open_page("session", session="refactor-api", turn="16", tab="compare")
    assert not app.exception
    assert "From turn 13 to turn 16: " in page_text(app)

    other = open_page("session", session="refactor-api", turn="16", tab="compare", other="3")
    assert not other.exception
    assert "From turn 3 to turn 16: " in page_text(other)


def test_a_team_is_read_with_its_grandchildren(empty_store: SqliteStore, builders: Any) -> None:
    parents = {"boss": None, "helper": "boss", "helper of helper": "helper", "loop": "loop"}
    for number, (name, parent) in enumerate(parents.items()):
        events = builders.plain(name, start=1_000.0 + number, turns=1, limit_tokens=None, end=True)
        empty_store.append(
            [event._replace(context=replace(event.context, parent_session_id=parent)) for event in events]
        )
    rows = {row.session_id: row for row in empty_store.sessions(SessionFilter())}

    team = read_team(empty_store, rows["boss"])

    assert [(member.row.session_id, member.depth) for member in team] == [
        ("boss", 0), ("helper", 1), ("helper of helper", 2),
    ]  # fmt: skip
    assert len(read_team(empty_store, rows["loop"])) == 1
    assert team_cost(team) is None
    priced = [member._replace(row=replace(member.row, cost_dollars=1.5)) for member in team]
    assert team_cost(priced) == 4.5


def test_a_certificate_is_dated_and_names_the_last_head(small_store: SqliteStore) -> None:
    result, heads = small_store.verify(), small_store.heads()

    text = certificate(result, heads, store="windowpane.db", at=1_700_000_000.0)

    assert "2023-11-14 22:13:20 UTC" in text
    assert "INTACT, without a key" in text
    assert heads[-1].hash in text
    assert f"{result.events:,} events of 3 sessions" in text
