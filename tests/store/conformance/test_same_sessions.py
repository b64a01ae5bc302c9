"""One session recorded by several sources is listed and counted once, in whatever order they are stored."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations

import pytest
from tests.store.conftest import START, digest

from windowpane.core.events import Event, SessionDescribed, SessionIdentified, SessionStarted, Usage
from windowpane.core.limits import WindowLimits
from windowpane.core.tracking import SessionInfo, SessionTracker
from windowpane.metrics.fold import MetricState
from windowpane.store.filters import EventFilter, SessionFilter
from windowpane.store.store import Store

SOURCES = ("claude_code", "live", "proxy", "otlp")
"""The transcript, the observed client, the proxy and telemetry, the most complete first."""
CALLS = tuple(f"msg_01QXbR7c2Lz9aHd4WkT8{number:04}" for number in range(4))
TOOL_CALLS = tuple(f"toolu_01EfGh5jKm3NpQr7{number:04}" for number in range(4))


def record(
    source: str,
    session_id: str = "",
    *,
    calls: Sequence[str] = CALLS,
    tool_calls: Sequence[str] = (),
    parent: str | None = None,
    start: float = START,
    usage: bool = True,
) -> list[Event]:
    """The events of a session with a turn for each call; each costs a cent."""
    events: list[Event] = []
    session_id = session_id or f"of-{source}"
    info = SessionInfo(session_id, "claude-code", "m", source, f"{source}:{session_id}", parent)
    tracker = SessionTracker(info, emit=events.extend, digest=digest, limits=WindowLimits.of(200_000, "given"))
    tracker.start(start)
    for number in range(max(len(calls), len(tool_calls))):
        at = start + number
        tracker.add("user_message", f"question {number}", 100, at=at)
        tracker.add("assistant_response", f"answer {number}", 50, at=at)
        if tool_calls:
            tracker.add("tool_call", f"read {number}", 20, tool_call_id=tool_calls[number], at=at)
        counted = Usage(input_tokens=1_000 * (number + 1), output_tokens=70) if usage else None
        tracker.end_turn(
            counted,
            cost_dollars=0.01 if usage else None,
            response_id=calls[number] if number < len(calls) else None,
            at=at,
        )
    tracker.flush()
    return events


def save(store: Store, events: Sequence[Event]) -> None:
    """Store a recording by an import, and everything else as it happens."""
    if events[0].context.source == "claude_code":
        store.import_session(lambda: events)
    else:
        store.append(events)


def assert_counted_once(store: Store, session_id: str) -> None:
    """Only *session_id* is listed, with its four calls, and every sum has them once."""
    (row,) = store.sessions()
    assert (row.session_id, row.turns, row.cost_dollars) == (session_id, 4, pytest.approx(0.04))
    totals = store.fleet_totals(SessionFilter(), live_since=0)
    assert (totals.sessions, totals.input_tokens, totals.cost_dollars) == (1, 10_000, pytest.approx(0.04))
    (day,) = store.trends(days=7)
    assert (day.sessions, day.calls, day.input_tokens, day.cost_dollars) == (1, 4, 10_000, 0.04)
    assert store.verify().broken == ()


def test_a_session_is_one_in_whatever_order_its_records_are_stored(store: Store) -> None:
    cases = [*permutations(SOURCES, 2), *permutations(SOURCES)]
    for number, order in enumerate(cases):
        calls = [f"{call}-{number}" for call in CALLS]
        for source in order:
            save(store, record(source, f"{number}-{source}", calls=calls))

    expected = {f"{number}-{min(order, key=SOURCES.index)}" for number, order in enumerate(cases)}
    assert {row.session_id for row in store.sessions(SessionFilter(limit=1_000))} == expected
    totals = store.fleet_totals(SessionFilter(), live_since=0)
    assert (totals.sessions, totals.input_tokens) == (len(cases), 10_000 * len(cases))
    (day,) = store.trends(days=7)
    assert (day.sessions, day.calls) == (len(cases), 4 * len(cases))
    assert store.verify().broken == ()


def test_sources_that_record_at_the_same_time_are_one_session(store: Store) -> None:
    transcript, seen = record("claude_code"), record("proxy")
    for turn in range(5):
        store.append([event for event in seen if event.context.turn == turn])
        store.append([event for event in transcript if event.context.turn == turn])

    assert_counted_once(store, "of-claude_code")


def test_a_less_complete_source_in_the_first_batch_of_a_session_does_not_count(store: Store) -> None:
    events = record("proxy", "s")
    batch = [
        event._replace(context=replace(event.context, source="otlp")) if event.context.turn > 2 else event
        for event in events
    ]

    store.append(batch)

    (row,) = store.sessions()
    assert (row.source, row.turns) == ("proxy", 2)


def test_a_record_that_is_rebuilt_is_still_of_the_other(store: Store) -> None:
    for source in SOURCES:
        save(store, record(source))

    store.rebuild_projections()

    assert_counted_once(store, "of-claude_code")


def test_a_changed_recording_stays_the_one_that_counts(store: Store) -> None:
    save(store, record("proxy"))
    save(store, record("claude_code", start=START + 1))

    save(store, record("claude_code"))

    assert_counted_once(store, "of-claude_code")


def test_tool_calls_identify_a_session_without_ids_of_replies(store: Store) -> None:
    save(store, record("proxy", tool_calls=TOOL_CALLS))
    store.import_session(lambda: record("codex", calls=(), tool_calls=TOOL_CALLS))

    assert_counted_once(store, "of-codex")


def test_the_session_that_an_agent_states_is_its_recording(store: Store) -> None:
    save(store, record("proxy", "proxy:gemini_cli:17", calls=CALLS))
    store.import_session(lambda: record("gemini_cli", "gemini_cli:17", calls=("",) * 4))

    assert_counted_once(store, "gemini_cli:17")


def test_the_helpers_that_the_proxy_saw_belong_to_the_session(store: Store) -> None:
    save(store, record("proxy", "proxy:s"))
    save(store, record("proxy", "proxy:s/title", calls=("msg_01TitleOfTheSession0001",), parent="proxy:s"))
    save(store, record("claude_code", "s"))

    session = store.session("s")

    assert session is not None
    assert session.subagent_cost_dollars == pytest.approx(0.01)
    (helper,) = store.sessions(SessionFilter(parent_session_id="s"))
    assert helper.session_id == "proxy:s/title"


def test_a_call_that_repeats_the_history_of_its_session_is_not_that_session(store: Store) -> None:
    """Gemini CLI has its summary written by a call beside the conversation, which sends its tool calls again."""
    save(store, record("proxy", "proxy:s", calls=(), tool_calls=TOOL_CALLS))
    store.import_session(lambda: record("gemini_cli", "s", calls=(), tool_calls=TOOL_CALLS))
    save(store, record("proxy", "summary", calls=("response-of-the-summary-1",), tool_calls=TOOL_CALLS[:2],
                       parent="proxy:s"))  # fmt: skip

    (beside,) = store.sessions(SessionFilter(parent_session_id="s"))
    assert (beside.session_id, beside.turns) == ("summary", 2)


def test_the_records_of_a_session_are_listed_on_request(store: Store) -> None:
    for source in SOURCES:
        save(store, record(source))

    records = store.sessions(SessionFilter(same_as="of-claude_code"))

    assert {row.session_id for row in records} == {"of-live", "of-proxy", "of-otlp"}
    (event,) = store.events(EventFilter(session_id="of-proxy", types=("session.identified",)))
    assert event.event.data == SessionIdentified("of-claude_code", "call")


def test_a_recording_without_usage_does_not_count(store: Store) -> None:
    store.import_session(lambda: record("copilot_cli", usage=False))
    save(store, record("proxy"))

    assert_counted_once(store, "of-proxy")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (record("claude_code"), record("proxy", calls=[name.replace("01Q", "01R") for name in CALLS])),
        (record("claude_code", "a"), record("claude_code", "b")),
        (record("claude_code"), record("proxy", start=START + 86_400)),
        (record("claude_code", calls=("chatcmpl-123",) * 4), record("proxy", calls=("chatcmpl-123",) * 4)),
        (record("claude_code", calls=("0" * 36,) * 4), record("proxy", calls=("0" * 36,) * 4)),
    ],
    ids=["other-calls", "two-transcripts", "played-again-later", "ids-counted-up", "ids-redacted"],
)
def test_different_sessions_are_never_one(store: Store, first: list[Event], second: list[Event]) -> None:
    for events in (first, second):
        save(store, events)

    assert [row.turns for row in store.sessions()] == [4, 4]


def test_records_of_two_projects_count_each_in_its_own(store: Store) -> None:
    for source, project in (("claude_code", "shop"), ("live", "bank")):
        events = record(source)
        described = events[0]._replace(n=len(events), data=SessionDescribed(project=project))
        save(store, [events[0], described._replace(n=1), *(one._replace(n=one.n + 1) for one in events[1:])])

    assert {row.same_as for row in store.sessions()} == {""}
    assert [row.calls for row in store.trends(days=7, projects=("shop",))] == [4]


def test_a_session_under_one_id_has_the_more_complete_record(store: Store) -> None:
    telemetry, transcript = record("otlp", "s"), record("claude_code", "s", calls=CALLS[:3])
    store.append([event for event in telemetry if event.context.turn < 3])
    store.import_session(lambda: transcript)

    store.append([event for event in telemetry if event.context.turn >= 3])

    session = store.session("s")
    assert session is not None
    assert (session.source, session.turns, session.revision) == ("claude_code", 3, 2)
    assert store.import_session(lambda: telemetry).is_shorter
    assert store.verify().broken == ()


def test_telemetry_under_the_same_id_is_no_earlier_derivation_of_the_transcript(store: Store) -> None:
    """A transcript states the release that derived its events; those of telemetry state none."""
    first, *rest = record("claude_code", "s", calls=CALLS[:3])
    assert isinstance(first.data, SessionStarted)
    derived = [first._replace(data=replace(first.data, derived_by="0.1.0")), *rest]
    store.append(record("otlp", "s"))

    assert store.import_session(lambda: derived).revised

    session = store.session("s")
    assert session is not None
    assert (session.source, session.turns) == ("claude_code", 3)


@pytest.mark.parametrize("order", [SOURCES, SOURCES[::-1]], ids=["transcript-first", "transcript-last"])
def test_metrics_count_a_call_once(store: Store, order: tuple[str, ...]) -> None:
    running = MetricState()
    after = 0
    for source in order:
        save(store, record(source, tool_calls=TOOL_CALLS))
        for batch in store.scan(after_seq=after):
            for stored in batch:
                running.apply(stored.event, counted=stored.counted)
                after = stored.seq

    for state_turns in (turns_of(running), turns_of(folded(store))):
        assert state_turns == 4


def test_metrics_count_a_replayed_recording() -> None:
    """The ids of its calls are those of the recording; its times, or its kind of source, are not."""
    state = MetricState()
    for source, start in (("claude_code", START), ("demo", START), ("live", START + 3_600)):
        for event in record(source, start=start):
            state.apply(event)

    assert turns_of(state) == 12


def folded(store: Store) -> MetricState:
    """The metrics of a whole store."""
    state = MetricState()
    for batch in store.scan():
        for stored in batch:
            state.apply(stored.event, counted=stored.counted)
    return state


def turns_of(state: MetricState) -> float:
    """The counted turns of all agents and models."""
    families = state.collect(now=START, as_of="last")
    turns = next(family for family in families if family.metric.name == "context_window_turns_total")
    return sum(point.value for point in turns.points)


def test_a_record_under_another_audit_key_counts_by_itself(stores, caplog: pytest.LogCaptureFixture) -> None:
    keyed = stores.open(audit_key=b"the key of the proxy's process")
    save(keyed, record("proxy"))
    keyed.close()
    with caplog.at_level(logging.WARNING):
        save(stores.open(audit_key=b"another key, of the importer's"), record("claude_code"))

    assert len(stores.read().sessions()) == 2
    assert "under another audit key: both count" in caplog.text


def test_sessions_that_no_id_identifies_are_reported(store: Store) -> None:
    save(store, record("proxy", "other", calls=[name.replace("01Q", "01R") for name in CALLS]))
    save(store, record("goose", "without-ids", calls=("",) * 4))
    save(store, record("goose", "later", calls=("",) * 4, start=START + 86_400))
    save(store, record("claude_code", "with-ids"))

    assert store.unidentified_record("without-ids") == ("other", "proxy")
    assert store.unidentified_record("later") is None
    assert store.unidentified_record("with-ids") is None
