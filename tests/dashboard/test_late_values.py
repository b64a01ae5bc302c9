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
