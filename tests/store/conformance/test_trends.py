"""Sums by day, and the content that tools put into windows."""

from __future__ import annotations

from typing import Any

import pytest

from windowpane.core.events import (
    BlocksEvicted,
    CacheBroken,
    Event,
    EvictedBlock,
    PressureMeasured,
    SessionDescribed,
    TurnEnded,
    Usage,
)
from windowpane.core.tracking import SessionInfo, SessionTracker
from windowpane.store.projections.trends import LAST_DAY, sums_of
from windowpane.store.store import Store

DAY = 86_400.0
FIRST = 1_700_006_400.0
"""A midnight (UTC)."""


def daily(store: Store) -> list[tuple[Any, ...]]:
    """Every stored sum."""
    return store._read(
        "SELECT * FROM daily WHERE sessions > 0 ORDER BY day, agent, model, release, project, pruned"
    )


def test_a_trend_is_the_sum_of_the_sessions_of_each_day(store, make_session) -> None:
    for number in range(3):
        store.append(make_session(f"s{number}", turns=8, start=FIRST + (number // 2) * DAY))

    first, second = store.trends(days=10)
    sessions = {row.session_id: row for row in store.sessions()}

    assert (first.day + 1, first.sessions, second.sessions) == (second.day, 2, 1)
    assert first.calls == sum(sessions[name].turns for name in ("s0", "s1"))
    assert first.cost_dollars == pytest.approx(sum(sessions[name].cost_dollars for name in ("s0", "s1")))
    assert first.input_tokens == sessions["s0"].input_tokens + sessions["s1"].input_tokens
    assert second.compactions == sessions["s2"].compressions
    assert second.peak_sum == pytest.approx(sessions["s2"].peak_utilization, abs=0.001)


def test_a_session_over_midnight_belongs_to_both_days(store, make_session) -> None:
    store.append(make_session("s", turns=10, start=FIRST + DAY - 4.5))

    assert [row.calls for row in store.trends(days=2)] == [4, 6]
    assert [row.sessions for row in store.trends(days=2)] == [1, 1]


@pytest.mark.parametrize(("day", "counts"), [(-1, False), (0, True), (LAST_DAY, True), (LAST_DAY + 1, False)])
def test_a_time_of_a_broken_clock_belongs_to_no_day(store, make_session, day: int, *, counts: bool) -> None:
    """It would be the last day of every trend from then on; the session itself is stored."""
    store.append(make_session("odd", start=day * DAY + 1))
    store.append(make_session("usual", start=FIRST))

    days = {row.day: row.sessions for row in store.trends(days=2 * LAST_DAY, until=LAST_DAY + 9)}
    assert days == {int(FIRST // DAY): 1} | ({day: 1} if counts else {})
    assert store.session("odd").turns == store.session("usual").turns


def test_a_day_without_a_call_has_no_session(store, make_session) -> None:
    """A window that is only measured has not been sent on that day."""
    events = make_session("s", turns=3, start=FIRST)
    preliminary = next(
        event for event in events if isinstance(event.data, PressureMeasured) and event.data.phase != "final"
    )
    store.append([*events, preliminary._replace(n=len(events), at=FIRST + DAY)])

    assert [(row.day, row.sessions) for row in store.trends(days=9)] == [(int(FIRST // DAY), 1)]


def test_sums_are_those_of_a_rebuild_in_any_batches(store, make_session) -> None:
    events = make_session("one", turns=12)
    store.append(events)
    for event in make_session("two", turns=12):
        store.append([event])
    before = daily(store)
    store.rebuild_projections()

    assert daily(store) == before
    assert store.verify().intact
    with store._writing() as writer:
        writer.connection.execute("UPDATE daily SET cost_micros = cost_micros + 1")
    (problem,) = store.verify().broken
    assert "daily" in problem.problem


def test_a_revision_replaces_the_part_of_the_session(store, make_session) -> None:
    store.import_session(lambda: make_session("s", turns=5))
    store.import_session(lambda: make_session("s", turns=6, start=1_700_000_500.0))

    (row,) = store.trends(days=5)
    assert (row.sessions, row.calls) == (1, 6)
    assert store.verify().intact


def test_retention_keeps_the_trend(store, make_session) -> None:
    for number in range(2):
        store.append(make_session(f"s{number}", turns=4, start=FIRST + number * DAY))
    before = store.trends(days=5)

    assert store.prune(before=FIRST + DAY) == 1
    assert store.trends(days=5) == before
    assert store.verify().intact
    store.rebuild_projections()
    assert store.trends(days=5) == before


def test_the_cost_of_a_trend_does_not_grow_with_its_sessions(store, make_session) -> None:
    for number in range(100):
        store.append(make_session(f"s{number}", turns=1, start=FIRST + number))

    assert len(daily(store)) == 1


def test_cache_breaks_are_counted_in_the_row_of_the_session(store, make_session) -> None:
    events = make_session("s", turns=2, end=False)
    last = events[-1]
    breaks = [
        last._replace(n=last.n + 1 + number, data=CacheBroken(9_000, 10_000, "edited", dollars=dollars))
        for number, dollars in enumerate((0.5, None, 0.25))
    ]
    store.append([*events, *breaks])

    row = store.session("s")
    assert (row.cache_breaks, row.cache_break_tokens, row.cache_break_dollars) == (3, 27_000, 0.75)
    assert store.trends(days=1)[0].cache_break_dollars == pytest.approx(0.75)


def test_carried_tokens_are_tokens_times_the_calls_that_sent_them(store, make_session) -> None:
    events = make_session("s", turns=10)
    store.append(events)
    uses = {(use.tool, use.target): use for use in store.tool_use("s")}
    ended = [event.data for event in events if isinstance(event.data, TurnEnded)]
    rows = [row for row in (*store.blocks_at("s", 99), *store.removed_blocks("s", 99)) if row.tool_name]
    calls = dict.fromkeys((row.block_id for row in rows), 0)
    for turn in range(1, 11):
        for row in store.blocks_at("s", turn):
            if row.tool_name:
                calls[row.block_id] += row.tokens

    read = uses["read", ""]
    entered = [row for row in rows if row.replaces is None]
    assert read.blocks == len(entered)
    assert read.tokens == sum(row.tokens for row in entered)
    own_call = sum(row.tokens for row in rows if row.content_type == "tool_call")
    assert read.carried_tokens == sum(calls.values()) + own_call  # written by a call, and billed by it
    assert 0 < (read.dollars or 0) < sum(one.cost_dollars or 0 for one in ended)
    assert store.tool_leaderboard()[0] == read
    assert isinstance(ended[0].usage, Usage)


def test_what_replaces_content_did_not_enter(store) -> None:
    events: list[Event] = []
    tracker = SessionTracker(SessionInfo("s", "a", "m", "test", "stream"), emit=events.extend, digest=str)
    tracker.add("tool_call", None, 20, tool_call_id="c", tool_name="read", at=FIRST)
    result = tracker.add("tool_result", None, 900, tool_call_id="c", at=FIRST)
    tracker.end_turn(Usage(1_000, 5), at=FIRST)
    placeholder = tracker.make_replacement("placeholder", None, 8, replaces=result.id)
    masked = EvictedBlock(result.id, "tool_result", 900, "mask", "old", replacement=placeholder.id)
    tracker.evict(BlocksEvicted("hybrid", (masked,), 900, 892), (placeholder,), at=FIRST)
    tracker.end_turn(Usage(100, 5), at=FIRST)
    tracker.flush()
    store.append(events)

    (use,) = store.tool_use("s")
    assert (use.tool, use.blocks, use.tokens) == ("read", 2, 920)
    assert use.carried_tokens == 2 * 20 + 900 + 8
    assert [(one.blocks, one.tokens) for one in store.tool_leaderboard()] == [(2, 920)]


def sums(store: Store, sessions: list[str]) -> list[tuple[Any, ...]]:
    """Return the sums of sessions by day, one by one."""
    added: dict[tuple[Any, ...], dict[str, int]] = {}
    for session in sessions:
        for row in store.session_days(session):
            total = added.setdefault((row.day, row.agent, row.model, row.release), {})
            for name, value in sums_of(row).items():
                total[name] = total.get(name, 0) + value
    return [(*key, total) for key, total in sorted(added.items())]


def of_project(store: Store, *projects: str) -> list[tuple[Any, ...]]:
    """Return the stored sums of projects."""
    rows = store.trends(days=50, projects=projects)
    return [(row.day, row.agent, row.model, row.release, sums_of(row)) for row in rows]


def test_the_trends_of_a_project_are_the_sums_of_its_sessions(store, make_session) -> None:
    for number in range(6):
        events = make_session(f"s{number}", turns=8, start=FIRST + (number // 2) * DAY)
        stated = SessionDescribed(project="shop" if number < 3 else "")
        described = events[0]._replace(n=len(events), data=stated)
        store.append(events[:20])
        store.append([*events[20:], described])
    store.assign_project("s2", "bank")
    store.assign_project("s5", "bank")

    for projects, sessions in ((("shop",), ["s0", "s1"]), (("bank",), ["s2", "s5"]), (("",), ["s3", "s4"])):
        assert of_project(store, *projects) == sums(store, sessions) != []
    assert of_project(store, "shop", "bank") == sums(store, ["s0", "s1", "s2", "s5"])
    assert of_project(store, "unknown") == of_project(store) == []
    assert sum(row.sessions for row in store.trends(days=50)) == 6
    before = daily(store)
    store.rebuild_projections()
    assert daily(store) == before
    assert store.verify().intact
    with store._writing() as writer:
        writer.connection.execute("UPDATE session_days SET project = 'bank' WHERE project = 'shop'")
    assert "project" in store.verify().broken[0].problem


def test_retention_keeps_the_trend_of_each_project(store, make_session) -> None:
    for number, project in enumerate(("shop", "bank", "")):
        store.append(make_session(f"s{number}", turns=4, start=FIRST))
        if project:
            store.assign_project(f"s{number}", project)
    before = {project: of_project(store, project) for project in ("shop", "bank", "")}
    whole = store.trends(days=50)

    assert store.prune(before=FIRST + DAY) == 3

    assert {project: of_project(store, project) for project in before} == before
    assert store.trends(days=50) == whole
    assert {project for project, _ in store.pruned_days()} == {"shop", "bank", ""}
