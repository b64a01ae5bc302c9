"""Values that the browser sends before it has seen a change undo nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from windowpane.exceptions import StoreError
from windowpane.store.embedded import SqliteStore
from windowpane_dashboard.page import store_access

OpenPage = Callable[..., AppTest]


def turn_of(app: AppTest) -> int:
    """Return the selected turn from the heading below the chart."""
    heading = next(result.value for result in app.subheader if result.value.startswith("Turn "))
    return int(heading.removeprefix("Turn ").partition(":")[0])


def address_of(app: AppTest) -> dict[str, str]:
    return {name: value[0] if isinstance(value, list) else value for name, value in app.query_params.items()}


def select(app: AppTest, label: str) -> Any:
    return next(result for result in app.selectbox if result.label == label)


@dataclass
class Late:
    """The values of all controls as a browser has them that has not seen the next answer yet."""

    app: AppTest
    values: Any = None

    def keep(self) -> None:
        self.values = self.app.main.root.get_widget_states()

    def send(self) -> None:
        """Ask something, with the values that were kept."""
        self.app._run(self.values)


def assert_stays(app: AppTest, turn: int) -> None:
    """The turn of the tables, of both controls and of the address."""
    assert not app.exception
    assert turn_of(app) == turn
    assert app.slider[0].value == turn
    assert app.number_input[0].value == turn
    assert address_of(app)["turn"] == str(turn)


@pytest.fixture
def app(small_store: SqliteStore, open_page: OpenPage) -> AppTest:
    return open_page("session", session="refactor-api", turn="9")


def draw_slider() -> None:
    import streamlit as st

    from windowpane_dashboard.page import widget_state

    st.slider("Turn", 1, 20, key=widget_state.fresh_key("turn", 9))
    if not st.session_state.get("interrupted"):
        widget_state.finish_drawing()


def test_a_new_control_is_set_until_a_drawing_is_finished() -> None:
    """A request that interrupts a drawing drops what it has not sent: the browser would start at the minimum."""
    app = AppTest.from_function(draw_slider)
    app.session_state["interrupted"] = True
    app.run()
    assert app.slider[0].proto.set_value

    app.session_state["interrupted"] = False
    app.run()
    assert app.slider[0].proto.set_value

    app.run()
    assert not app.slider[0].proto.set_value


@pytest.mark.parametrize(
    ("page", "label"), [("alerts", "Search or filter"), ("trends", "A line per"), ("session", "Go to turn")]
)
def test_another_choice_does_not_set_a_control_again(
    small_store: SqliteStore, open_page: OpenPage, page: str, label: str
) -> None:
    """The user may have chosen in it before the response arrives."""
    app = open_page(page)

    app.run()

    assert not control(app, label).proto.set_value


def test_a_page_that_ends_early_does_not_set_its_controls_again(
    small_store: SqliteStore, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise StoreError("locked")

    monkeypatch.setattr(store_access, "compared_sessions", fail)
    app = open_page("trends")

    app.run()

    assert app.error
    assert not control(app, "Range").proto.set_value


def test_a_late_slider_does_not_undo_the_number_field(app: AppTest) -> None:
    late = Late(app)
    app.number_input[0].set_value(12)
    late.keep()
    app.run()
    assert_stays(app, 12)
    late.send()

    assert_stays(app, 12)


def test_a_late_number_field_does_not_undo_the_slider(app: AppTest) -> None:
    late = Late(app)
    app.slider[0].set_value(12)
    late.keep()
    app.run()
    assert_stays(app, 12)
    late.send()

    assert_stays(app, 12)


def test_a_late_message_does_not_undo_an_event_button(app: AppTest) -> None:
    late = Late(app)
    late.keep()
    next(button for button in app.button if button.label == "Event after").click().run()
    assert_stays(app, 14)
    late.send()

    assert_stays(app, 14)


def test_a_control_can_be_moved_again_and_again(app: AppTest) -> None:
    for turn in (12, 9, 12):
        app.number_input[0].set_value(turn).run()
        assert_stays(app, turn)
        app.slider[0].set_value(turn - 1).run()
        assert_stays(app, turn - 1)


def test_late_values_do_not_undo_back(app: AppTest) -> None:
    app.slider[0].set_value(12).run()
    late = Late(app)
    late.keep()
    app.query_params["turn"] = "9"
    app.run()
    assert_stays(app, 9)
    late.send()

    assert_stays(app, 9)


def test_the_listed_events_follow_the_address(app: AppTest) -> None:
    late = Late(app)
    late.keep()
    app.query_params["events"] = "noteworthy"
    app.run()
    late.send()

    assert {group.value for group in app.segmented_control} == {"Events", "noteworthy"}
    assert address_of(app)["events"] == "noteworthy"


def test_a_late_selection_does_not_reopen_the_session(app: AppTest) -> None:
    late = Late(app)
    late.keep()
    app.query_params.clear()
    app.query_params["session"] = "unknown-limit"
    app.run()
    late.send()

    assert select(app, "Session").value == "unknown-limit"
    assert address_of(app) == {"session": "unknown-limit"}


def test_a_selected_compression_is_discarded_with_its_turn(
    empty_store: SqliteStore, open_page: OpenPage, builders: Any
) -> None:
    empty_store.append(builders.rich(start=time.time() - 800, compactions=(11, 15)))
    app = open_page("session", session="refactor-api", turn="18", tab="compressions")
    choice = select(app, "Compaction")
    choice.set_value(0).run()
    assert address_of(app)["compression"] == "1"
    late = Late(app)
    app.number_input[0].set_value(17)
    late.keep()
    app.run()
    late.send()
    assert "compression" not in address_of(app)
    assert select(app, "Compaction").value == 1

    select(app, "Compaction").set_value(0).run()

    assert address_of(app)["compression"] == "1"


def test_slider_and_field_follow_a_new_last_turn(
    empty_store: SqliteStore, open_page: OpenPage, builders: Any
) -> None:
    events = builders.plain("growing", start=time.time() - 100, turns=20, limit_tokens=90_000, end=False)
    cut = next(index for index, event in enumerate(events) if event.context.turn == 16)
    empty_store.append(events[:cut])
    app = open_page("session", session="growing")
    assert turn_of(app) == app.number_input[0].value == 15

    empty_store.append(events[cut:])
    app.run()
    assert turn_of(app) == app.slider[0].value == app.number_input[0].value == 20
    assert "turn" not in address_of(app)
    app.number_input[0].set_value(19).run()

    assert_stays(app, 19)


# -- filters --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Filters:
    """A page with two of its filters: the label of each, its part of the address, and a value."""

    page: str
    one: tuple[str, str, Any]
    other: tuple[str, str, Any]


SEARCH = "Search or filter"
FILTERS = (Filters("trends", ("Range", "days", "30"), ("A line per", "by", "model")),)


def control(app: AppTest, label: str) -> Any:
    kinds = (app.selectbox, app.multiselect, app.number_input, app.text_input)
    return next(result for kind in kinds for result in kind if result.label == label)


def in_address(*chosen: tuple[str, str, Any]) -> dict[str, str]:
    return {name: ",".join(value) if isinstance(value, list) else str(value) for _, name, value in chosen}


@pytest.fixture(params=FILTERS, ids=lambda filters: f"{filters.page}, {filters.one[0]}")
def filters(request: pytest.FixtureRequest, small_store: SqliteStore) -> Filters:
    chosen: Filters = request.param
    return chosen


def choose(app: AppTest, chosen: tuple[str, str, Any]) -> Late:
    """Return the message of a browser in which the user makes this choice, whatever it has not seen yet."""
    late = Late(app)
    control(app, chosen[0]).set_value(chosen[2])
    late.keep()
    return late


def test_two_filters_chosen_at_once_both_apply(filters: Filters, open_page: OpenPage) -> None:
    app = open_page(filters.page)
    first, second = choose(app, filters.one), choose(app, filters.other)

    first.send()
    app.query_params.clear()
    second.send()

    assert not app.exception
    assert in_address(filters.one, filters.other).items() <= address_of(app).items()
    for label, _, value in (filters.one, filters.other):
        assert control(app, label).value == value


def test_a_filter_does_not_undo_back(filters: Filters, open_page: OpenPage) -> None:
    app = open_page(filters.page)
    unchosen = control(app, filters.one[0]).value
    choose(app, filters.one).send()
    before = Late(app)
    before.keep()
    second = choose(app, filters.other)

    app.query_params.clear()
    before.send()
    second.send()

    assert not app.exception
    assert address_of(app) == in_address(filters.other)
    assert control(app, filters.one[0]).value == unchosen
    assert control(app, filters.other[0]).value == filters.other[2]


def test_a_filter_can_be_chosen_again_after_back(filters: Filters, open_page: OpenPage) -> None:
    app = open_page(filters.page)
    choose(app, filters.one).send()
    app.query_params.clear()
    app.run()
    assert address_of(app) == {}

    choose(app, filters.one).send()

    assert address_of(app) == in_address(filters.one)
    assert control(app, filters.one[0]).value == filters.one[2]


def test_paging_keeps_a_filter_chosen_just_before(small_store: SqliteStore, open_page: OpenPage) -> None:
    app = open_page("audit")
    (session,) = (option for option in app.multiselect[0].options if option == "session: refactor-api")
    choose(app, (SEARCH, "", [session])).send()
    for label in ("Later", "Verify chain"):
        app.query_params.clear()
        next(button for button in app.button if button.label == label).click().run()

        assert address_of(app)["session"] == "refactor-api"
        assert int(address_of(app)["after"]) > 90

    choose(app, (SEARCH, "", [session, "hybrid"])).send()

    assert address_of(app) == {"session": "refactor-api", "text": "hybrid"}
