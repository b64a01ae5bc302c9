"""The alerts page: firings with their end and delivery; a test message to a real endpoint."""

from __future__ import annotations

import json
import shlex
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from tests.dashboard.timelines import SESSION

from windowpane.alerts.delivery.message import message_of
from windowpane.alerts.rules import RULES_BY_NAME
from windowpane.config.loading import load_config
from windowpane.core.events import (
    AlertFired,
    AlertResolved,
    Event,
    NotificationDelivered,
    NotificationFailed,
)
from windowpane.core.times import live_since
from windowpane.report.alerts import alert_phrases, outcome_of, settings_text, silence_text
from windowpane.report.headline import sentence
from windowpane.store.embedded import SqliteStore
from windowpane.store.filters import EventFilter
from windowpane.store.records import AlertRow
from windowpane_dashboard.queries.alerts import (
    alert_frame,
    at_named_turn,
    deliveries,
    delivery_state,
    delivery_text,
    firing_key,
    read_firings,
    requested_firing,
)
from windowpane_dashboard.queries.filters import AlertFilters, SessionAddress


def with_more(events: list[Event], at: float) -> list[Event]:
    """The rich session with a second, unresolved alert, and messages of which one failed.

    Messages come late, with the context of their firing.
    """
    fired = next(event for event in events if isinstance(event.data, AlertFired))
    resolved = next(event for event in events if isinstance(event.data, AlertResolved))
    added = (
        (events[-1], AlertFired("compaction_soon", "warning", 20, 2.0, 3.0, "the agent compacts in 2 turns")),
        (fired, NotificationDelivered("utilization", 12, "log", "firing")),
        (resolved, NotificationDelivered("utilization", 12, "log", "resolved")),
        (fired, NotificationFailed("utilization", 12, "json", "firing", 4, "HTTP 503")),
    )
    more = [about._replace(n=9_000 + index, at=at, data=data) for index, (about, data) in enumerate(added)]
    return [*events, *more]


@pytest.fixture
def alert_store(empty_store: SqliteStore, builders: Any) -> SqliteStore:
    """A live session with an alert that was resolved and one that fires, and a quiet ended session."""
    now = time.time()
    empty_store.append(with_more(builders.rich(start=now - 800), now - 5))
    empty_store.append(builders.plain("quiet", start=now - 9_000, turns=2, limit_tokens=9_000, end=True))
    return empty_store


def by_name(store: SqliteStore, name: str) -> AlertRow:
    return next(row for row in store.alerts() if row.alert == name)


def test_firings_are_ordered_by_time(alert_store: SqliteStore, builders: Any) -> None:
    alert_store.append(builders.rich(start=1_700_000_000.0, session_id="last-year"))

    listed = read_firings(alert_store, AlertFilters(), live_since(time.time())).rows

    assert {row.session_id for row in listed} == {"refactor-api", "last-year"}
    assert [row.fired_at for row in listed] == sorted((row.fired_at or 0 for row in listed), reverse=True)


def test_firings_have_end_duration_and_delivery(alert_store: SqliteStore) -> None:
    now = time.time()
    listed = read_firings(alert_store, AlertFilters(), live_since(time.time()))

    frame = alert_frame(listed, now).set_index("alert")

    assert frame.loc["Window in red", "ended"] == "at turn 15"
    assert frame.loc["Window in red", "lasted"].startswith("1 turn, ")
    assert frame.loc["Window in red", "delivery"] == "failed: json; delivered: log"
    assert frame.loc["Compaction soon", "ended"] == "fires now"
    assert frame.loc["Compaction soon", "delivery"] == ""
    assert "1 warning" in sentence(alert_phrases(listed.rows, listed.firing))
    assert "1 message did not arrive" in sentence(alert_phrases(listed.rows, listed.firing))


def test_an_unresolved_firing_ends_with_its_session(alert_store: SqliteStore) -> None:
    listed = read_firings(alert_store, AlertFilters(), live_since(time.time()))
    later = time.time() + 86_400
    row = by_name(alert_store, "compaction_soon")

    outcome = outcome_of(row, listed.sessions[row.session_id], later)

    assert not outcome.now
    assert outcome.text == "until the recording stops"
    then = read_firings(alert_store, AlertFilters(), live_since(later))
    assert sentence(alert_phrases(then.rows, then.firing)).startswith("Nothing fires now; ")


@pytest.mark.parametrize(
    ("filters", "alerts"),
    [
        (AlertFilters(severity="critical"), {"utilization"}),
        (AlertFilters(alert="compaction_soon"), {"compaction_soon"}),
        (AlertFilters(state="resolved"), {"utilization"}),
        (AlertFilters(delivery="failed"), {"utilization"}),
        (AlertFilters(delivery="none", state="firing"), {"compaction_soon"}),
        (AlertFilters(delivery="delivered"), set()),
        (AlertFilters(session="quiet"), set()),
        (AlertFilters(text="COMPACTS in 2"), {"compaction_soon"}),
    ],
)
def test_filters_narrow_the_list(alert_store: SqliteStore, filters: AlertFilters, alerts: set[str]) -> None:
    result = {row.alert for row in read_firings(alert_store, filters, live_since(time.time())).rows}

    assert {name for name in result if name in ("utilization", "compaction_soon")} == alerts


def test_each_message_is_listed_with_its_delivery(alert_store: SqliteStore) -> None:
    row = by_name(alert_store, "utilization")

    sent = deliveries(alert_store, row)

    assert [(one.channel, one.state, one.arrived) for one in sent] == [
        ("log", "firing", True), ("log", "resolved", True), ("json", "firing", False),
    ]  # fmt: skip
    assert sent[-1].reason == "HTTP 503"
    assert delivery_state(row) == "failed"
    assert "delivered: log" in delivery_text(row)


def test_messages_are_found_among_thousands_of_others(empty_store: SqliteStore, builders: Any) -> None:
    events = builders.rich(start=time.time() - 800)
    other = NotificationDelivered("compaction_soon", 2, "log", "firing")
    early = next(event for event in events if event.context.turn == 3)
    others = [early._replace(n=20_000 + index, data=other) for index in range(2_100)]
    empty_store.append([*events, *others])
    empty_store.append(with_more(events, time.time())[len(events) :])
    requested: list[EventFilter] = []

    class Counting:
        def events_or_damage(self, query: EventFilter) -> Any:
            requested.append(query)
            return empty_store.events_or_damage(query)

    row = by_name(empty_store, "utilization")
    sent = deliveries(Counting(), row)  # type: ignore[arg-type]  # nothing else is read

    assert len(sent) == 3
    assert sum(len(empty_store.events_or_damage(query)) for query in requested) == 3


def test_the_page_explains_the_worst_firing(
    alert_store: SqliteStore, open_page: Callable[..., Any], page_text: Callable[..., str]
) -> None:
    app = open_page("alerts")

    assert not app.exception
    assert "firing now" in app.subheader[0].value
    text = page_text(app)
    assert "critical: Window in red" in text.replace("\\", "")
    assert "not delivered to json after 4 attempts" in text.replace("\\", "")
    assert "What it means." in text


def test_an_address_opens_one_firing(
    alert_store: SqliteStore, open_page: Callable[..., Any], page_text: Callable[..., str]
) -> None:
    app = open_page("alerts", state="firing", pick=firing_key(by_name(alert_store, "compaction_soon")))

    assert not app.exception
    assert app.multiselect[0].value == ["state: firing"]
    assert app.dataframe[0].proto.selection_default
    assert "warning: Compaction soon" in page_text(app).replace("\\", "")


def test_a_filter_of_the_alerts_is_written_to_the_address(
    alert_store: SqliteStore, open_page: Callable[..., Any]
) -> None:
    app = open_page("alerts", session="refactor-api", pick=firing_key(by_name(alert_store, "utilization")))
    (session,) = app.multiselect[0].value

    app.multiselect[0].set_value([session, "alert: Compaction soon", "state: firing"]).run()

    assert session.startswith("session: ")
    assert {name: "".join(value) for name, value in app.query_params.items()} == {
        "session": "refactor-api",
        "alert": "compaction_soon",
        "state": "firing",
    }


def test_filters_without_a_match_are_reported(
    alert_store: SqliteStore, open_page: Callable[..., Any], page_text: Callable[..., str]
) -> None:
    app = open_page("alerts", session="quiet")

    assert not app.exception
    assert "No alert matches" in page_text(app)


@pytest.fixture
def endpoint() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A web hook on loopback, and what it was sent."""
    got: list[dict[str, Any]] = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200 if "refuse" not in self.path else 500)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Stay quiet."""

    server = HTTPServer(("127.0.0.1", 0), Hook)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"json://127.0.0.1:{server.server_port}", got
    server.shutdown()
    server.server_close()
    thread.join(5)


def send(app: Any, channel: str) -> Any:
    app.selectbox(key="alerts_channel").set_value(channel)
    return next(button for button in app.button if button.label == "Send").click().run()


def test_a_test_message_is_sent_and_its_delivery_shown(
    alert_store: SqliteStore,
    open_page: Callable[..., Any],
    page_text: Callable[..., str],
    endpoint: tuple[str, list[dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url, got = endpoint
    monkeypatch.setenv("WINDOWPANE_NOTIFY", f"{url}/hook {url}/refuse nonsense://")
    app = send(open_page("alerts"), "1. json")
    assert not app.exception
    assert "Delivered" in app.success[0].value
    assert "Test message" in json.dumps(got[0])

    app = send(app, "2. json")
    assert "Not delivered" in app.error[0].value
    assert url not in page_text(app)

    app = send(app, "3. nonsense")
    assert "Not sent" in app.warning[0].value
    assert not app.exception


def test_a_test_message_is_only_sent_to_configured_channels(
    alert_store: SqliteStore,
    open_page: Callable[..., Any],
    endpoint: tuple[str, list[dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url, got = endpoint
    assert "alerts_address" not in {field.key for field in open_page("alerts").text_input}

    monkeypatch.setenv("WINDOWPANE_NOTIFY__TEST_ANY_ADDRESS", "true")
    app = open_page("alerts")
    app.text_input(key="alerts_address").set_value(f"{url}/hook")
    app = next(button for button in app.button if button.label == "Send").click().run()

    assert "Delivered" in app.success[0].value
    assert "Test message" in json.dumps(got[0])


class TestAlerts:
    ROW = AlertRow("s", "a", "utilization", "critical", 8, 10, 100.0, None, None, 0.95, 0.9, "full")

    def test_the_duration_of_a_firing_ends_with_its_session(self) -> None:
        session = replace(SESSION, turns=40, last_at=400.0)
        resolved = outcome_of(replace(self.ROW, resolved_turn=13, resolved_at=160.0), session, 500.0)
        live, ended = outcome_of(self.ROW, session, 500.0), outcome_of(self.ROW, session, 99_999.0)

        assert (resolved.turns, resolved.seconds, resolved.now) == (3, 60.0, False)
        assert (live.turns, live.seconds, live.now) == (30, 400.0, True)
        assert (ended.turns, ended.seconds, ended.now) == (30, 300.0, False)


def test_the_link_of_an_alert_opens_that_alert(
    alert_store: SqliteStore, open_page: Callable[..., Any], page_text: Callable[..., str]
) -> None:
    texts = {
        alert: page_text(open_page("session", session="refactor-api", turn="14", alert=alert))
        for alert in ("utilization:12", "compaction_soon:20")
    }

    assert "Window in red**" in texts["utilization:12"]
    assert "Compaction soon**" in texts["compaction_soon:20"]
    assert all("What to do." in text for text in texts.values())


@pytest.mark.parametrize("run", ["first", "second"])
def test_the_link_of_a_message_opens_the_turn_of_its_own_run(
    empty_store: SqliteStore, builders: Any, open_page: Callable[..., Any], run: str
) -> None:
    first = builders.rich(start=time.time() - 9_000)
    second = [
        event._replace(
            context=replace(event.context, stream_id=f"again/{event.context.stream_id}"),
            at=None if event.at is None else event.at + 8_000,
        )
        for event in first
    ]
    assert {event.context.stream_id for event in first}.isdisjoint(e.context.stream_id for e in second)
    empty_store.append(first)
    turns = empty_store.session("refactor-api").turns  # type: ignore[union-attr]
    empty_store.append(second)
    shift = 0 if run == "first" else turns

    for kind, state in ((AlertFired, "firing"), (AlertResolved, "resolved")):
        events = first if run == "first" else second
        event = next(one for one in events if isinstance(one.data, kind) and one.data.alert == "utilization")
        message = message_of(event, public_url="http://dashboard.example")
        assert message is not None
        assert message.state == state
        query = dict(parse_qsl(urlsplit(message.link or "").query))
        assert "turn" not in query
        app = open_page("session", **query)

        assert not app.exception
        shown = app.query_params
        assert str(event.context.turn + shift) in shown["turn"]
        assert f"utilization:{event.data.crossing_turn + shift}" in shown["alert"]  # type: ignore[union-attr]


def test_the_link_of_a_message_that_is_not_stored_yet_names_no_other_alert(alert_store: SqliteStore) -> None:
    position = SessionAddress("refactor-api", alert="utilization:12", at=5.0)

    assert at_named_turn(alert_store, "refactor-api", position) == position
    assert requested_firing(alert_store, "refactor-api", position) is None


@pytest.mark.parametrize("alert", sorted(RULES_BY_NAME))
def test_the_lines_that_change_an_alert_are_valid(
    alert: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fired = AlertRow(
        "it's; rm -rf $HOME", "agent", alert, "warning", 3, 4, None, None, None, 0.655_2, 0.5, "summary"
    )
    threshold, disable = settings_text(fired)
    path = tmp_path / "windowpane.yml"
    monkeypatch.setenv("WINDOWPANE_CONFIG", str(path))
    for text in filter(None, (threshold, disable)):
        path.write_text(text)
        load_config()

    assert bool(threshold) == (RULES_BY_NAME[alert].threshold is not None)
    assert shlex.split(silence_text(fired))[:5] == [
        "amtool", "silence", "add", f"alertname={alert}", "session=it's; rm -rf $HOME",
    ]  # fmt: skip
