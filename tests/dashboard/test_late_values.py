"""What the browser sends before it has seen a move undoes nothing, whatever it was that moved."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from windowpane.store.sqlite import SqliteStore

OpenPage = Callable[..., AppTest]


def turn_of(app: AppTest) -> int:
    """The turn that everything below the picture is about."""
    heading = next(found.value for found in app.subheader if found.value.startswith("Turn "))
    return int(heading.removeprefix("Turn ").partition(":")[0])


def address_of(app: AppTest) -> dict[str, str]:
    return {name: value[0] if isinstance(value, list) else value for name, value in app.query_params.items()}


def select(app: AppTest, label: str) -> Any:
    return next(found for found in app.selectbox if found.label == label)


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


def test_the_slider_that_was_late_stays_where_the_field_went(app: AppTest) -> None:
    """The turn is typed, and the next message still has the slider's old place."""
    late = Late(app)
    app.number_input[0].set_value(12)
    late.keep()
    app.run()
    assert_stays(app, 12)
    late.send()

    assert_stays(app, 12)


def test_the_field_that_was_late_stays_where_the_slider_went(app: AppTest) -> None:
    """The slider is moved, and the next message still has the field's old number."""
    late = Late(app)
    app.slider[0].set_value(12)
    late.keep()
    app.run()
    assert_stays(app, 12)
    late.send()

    assert_stays(app, 12)


def test_both_stay_where_an_event_was_chosen(app: AppTest) -> None:
    """The button beside the slider moves both; a message without the click comes after it."""
    late = Late(app)
    late.keep()
    next(button for button in app.button if button.label == "Event after").click().run()
    assert_stays(app, 14)
    late.send()

    assert_stays(app, 14)


def test_a_control_can_be_moved_again_and_again(app: AppTest) -> None:
    """Ignoring what is late does not make a control deaf, whichever was moved last."""
    for turn in (12, 9, 12):
        app.number_input[0].set_value(turn).run()
        assert_stays(app, turn)
        app.slider[0].set_value(turn - 1).run()
        assert_stays(app, turn - 1)


def test_back_is_not_undone(app: AppTest) -> None:
    """Another address comes, and then values from before it."""
    app.slider[0].set_value(12).run()
    late = Late(app)
    late.keep()
    app.query_params["turn"] = "9"
    app.run()
    assert_stays(app, 9)
    late.send()

    assert_stays(app, 9)


def test_the_scale_and_the_listed_events_follow_the_address(app: AppTest) -> None:
    """Of both choices an older value comes after another address."""
    late = Late(app)
    late.keep()
    app.query_params["scale"], app.query_params["events"] = "content", "noteworthy"
    app.run()
    late.send()

    assert {group.value for group in app.segmented_control} == {"content", "noteworthy"}
    assert address_of(app)["scale"] == "content"
    assert address_of(app)["events"] == "noteworthy"


def test_the_session_that_was_left_does_not_come_back(app: AppTest) -> None:
    """A link opens another session, and the next message still has the selection of the first."""
    late = Late(app)
    late.keep()
    app.query_params.clear()
    app.query_params["session"] = "unknown-limit"
    app.run()
    late.send()

    assert select(app, "Session").value == "unknown-limit"
    assert address_of(app) == {"session": "unknown-limit"}


def test_a_chosen_compression_is_let_go_with_its_turn(
    empty_store: SqliteStore, open_page: OpenPage, builders: Any
) -> None:
    """Its late value does not choose it again for the other turn; chosen there, it is taken."""
    empty_store.append(builders.rich(start=time.time() - 800, compactions=(11, 15)))
    app = open_page("session", session="refactor-api", turn="18")
    choice = select(app, "Compression")
    choice.set_value(0).run()
    assert address_of(app)["compression"] == "1"
    late = Late(app)
    app.number_input[0].set_value(17)
    late.keep()
    app.run()
    late.send()
    assert "compression" not in address_of(app)
    assert select(app, "Compression").value == 1

    select(app, "Compression").set_value(0).run()

    assert address_of(app)["compression"] == "1"


def test_the_field_follows_a_new_last_turn(empty_store: SqliteStore, open_page: OpenPage, builders: Any) -> None:
    """Without a turn in the address slider, field and tables go on with the session, and can leave it."""
    events = builders.plain("growing", start=time.time() - 100, turns=20, limit_tokens=90_000, end=False)
    cut = next(place for place, event in enumerate(events) if event.context.turn == 16)
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


FILTERS = (
    Filters("fleet", ("Agent", "agent", "writer"), ("Zone", "zone", "green")),
    Filters("fleet", ("Session or agent", "text", "short"), ("Model", "model", "m-1")),
    Filters("alerts", ("Severity", "severity", "critical"), ("State", "state", "resolved")),
    Filters("audit", ("Session", "session", "refactor-api"), ("From turn", "turn_from", 3)),
    Filters("audit", ("Events", "types", ["turn.ended", "alert.fired"]), ("Search", "text", "hybrid")),
)


def control(app: AppTest, label: str) -> Any:
    kinds = (app.selectbox, app.multiselect, app.number_input, app.text_input)
    return next(found for kind in kinds for found in kind if found.label == label)


def in_address(*chosen: tuple[str, str, Any]) -> dict[str, str]:
    return {name: ",".join(value) if isinstance(value, list) else str(value) for _, name, value in chosen}


@pytest.fixture(params=FILTERS, ids=lambda filters: f"{filters.page}, {filters.one[0]}")
def filters(request: pytest.FixtureRequest, small_store: SqliteStore) -> Filters:
    chosen: Filters = request.param
    return chosen


def choose(app: AppTest, chosen: tuple[str, str, Any]) -> Late:
    """What the browser sends when somebody chooses this, whatever it has not seen yet."""
    late = Late(app)
    control(app, chosen[0]).set_value(chosen[2])
    late.keep()
    return late


def test_two_filters_of_one_moment_stay(filters: Filters, open_page: OpenPage) -> None:
    """The second is chosen before the browser has seen the address with the first."""
    app = open_page(filters.page)
    first, second = choose(app, filters.one), choose(app, filters.other)

    first.send()
    app.query_params.clear()
    second.send()

    assert not app.exception
    assert address_of(app) == in_address(filters.one, filters.other)
    for label, _, value in (filters.one, filters.other):
        assert control(app, label).value == value


def test_a_filter_does_not_undo_back(filters: Filters, open_page: OpenPage) -> None:
    """It is chosen after Back, with the values of all others from before it."""
    app = open_page(filters.page)
    choose(app, filters.one).send()
    before = Late(app)
    before.keep()
    second = choose(app, filters.other)

    app.query_params.clear()
    before.send()
    second.send()

    assert not app.exception
    assert address_of(app) == in_address(filters.other)
    assert not control(app, filters.one[0]).value
    assert control(app, filters.other[0]).value == filters.other[2]


def test_a_filter_is_chosen_again_after_back(filters: Filters, open_page: OpenPage) -> None:
    """Ignoring what is late does not make it deaf."""
    app = open_page(filters.page)
    choose(app, filters.one).send()
    app.query_params.clear()
    app.run()
    assert address_of(app) == {}

    choose(app, filters.one).send()

    assert address_of(app) == in_address(filters.one)
    assert control(app, filters.one[0]).value == filters.one[2]


def test_the_next_rows_are_those_of_a_filter_chosen_just_before(
    small_store: SqliteStore, open_page: OpenPage
) -> None:
    """Neither paging nor verifying nor choosing a row goes back to the address from before the filter."""
    app = open_page("audit")
    choose(app, ("Session", "session", "refactor-api")).send()
    for label in ("Later", "Verify chain"):
        app.query_params.clear()
        next(button for button in app.button if button.label == label).click().run()

        assert address_of(app)["session"] == "refactor-api"
        assert int(address_of(app)["after"]) > 90

    choose(app, ("Search", "text", "hybrid")).send()

    assert address_of(app) == {"session": "refactor-api", "text": "hybrid"}
