"""A busy server: requests sent before a response arrives must not undo what the user did."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from windowpane.store.embedded import SqliteStore

pytest.importorskip("playwright.sync_api")
from playwright.sync_api import expect
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

pytestmark = pytest.mark.browser

WATCHED = """
window.turns = [];
new MutationObserver(() => {
  for (const heading of document.querySelectorAll("h3")) {
    const turn = /^Turn (\\d+):/.exec(heading.textContent);
    if (turn && window.turns.at(-1) !== turn[1]) window.turns.push(turn[1]);
  }
}).observe(document, { subtree: true, childList: true, characterData: true });
"""
"""Keeps every turn that the page has shown, however shortly."""


@dataclass
class Line:
    """The connection between page and server, whose answers can be held back."""

    looked: bool = False
    """Return whether the page has polled for new events."""
    holding: bool = False
    held: list[Any] = field(default_factory=list)
    answered: int = 0
    """Return the number of requests that the held messages answer."""
    browser: Any = None

    def connect(self, socket: Any) -> None:
        self.browser, server = socket, socket.connect_to_server()

        def requests(message: Any) -> None:
            self.looked |= BackMsg.FromString(message).rerun_script.is_auto_rerun
            server.send(message)

        def answers(message: Any) -> None:
            if self.holding:
                self.held.append(message)
                self.answered += ForwardMsg.FromString(message).WhichOneof("type") == "script_finished"
            else:
                socket.send(message)

        socket.on_message(requests)
        server.on_message(answers)

    def hold(self) -> None:
        """Keep the answers from now on."""
        self.holding, self.looked, self.answered = True, False, 0

    def release(self) -> None:
        """Release the held messages, in order."""
        self.holding = False
        for message in self.held:
            self.browser.send(message)
        self.held.clear()


@pytest.fixture
def line() -> Line:
    return Line()


@pytest.fixture
def over_line(site: Callable[..., Any], growing_store: SqliteStore, line: Line) -> Iterator[Any]:
    """A store seen over the line."""
    visible = site(Path(growing_store.path))
    visible.page.route_web_socket("**/_stcore/stream*", line.connect)
    yield visible
    line.release()


@pytest.fixture
def here(over_line: Any) -> Any:
    """A session at turn 9."""
    over_line.page.add_init_script(WATCHED)
    over_line.open("session", session="refactor-api", turn="9")
    over_line.page.get_by_role("heading", name="Turn 9:").wait_for()
    return over_line


def types(page: Any) -> None:
    number = page.get_by_role("spinbutton", name="Go to turn")
    number.fill("12")
    number.press("Enter")


def presses(page: Any) -> None:
    page.get_by_role("slider").first.press("ArrowRight")


def clicks(page: Any) -> None:
    page.get_by_role("button", name="Event after").click()


@dataclass(frozen=True)
class Move:
    """One way to go from turn 9 to another."""

    act: Callable[[Any], None]
    turn: int
    focused: str | None
    """The role of the control that the keyboard is on afterwards."""


MOVES = (
    pytest.param(Move(types, 12, "spinbutton"), id="types"),
    pytest.param(Move(presses, 10, "slider"), id="presses", marks=pytest.mark.matrix),
    pytest.param(Move(clicks, 14, None), id="clicks", marks=pytest.mark.matrix),
)


@pytest.mark.parametrize("move", MOVES)
def test_a_poll_sent_before_the_response_undoes_nothing(
    here: Any, line: Line, growing_store: SqliteStore, builders: Any, move: Move
) -> None:
    page = here.page
    line.hold()

    move.act(page)
    here.waits(lambda: line.answered > 0, "the server answers the move")
    new = builders.plain(f"new at {move.turn}", start=1_700_000_000.0, turns=2, limit_tokens=9_000, end=True)
    growing_store.append(new)
    line.looked, line.answered = False, 0
    here.waits(lambda: line.looked and line.answered > 0, "it answers a look that was sent before that was seen")
    line.release()
    page.get_by_role("heading", name=f"Turn {move.turn}:").wait_for()
    line.looked = False
    here.waits(lambda: line.looked, "the page looks again")
    here.settle()

    assert page.evaluate("window.turns") == ["9", str(move.turn)]
    assert page.url.endswith(f"turn={move.turn}")
    expect(page.get_by_role("slider").first).to_have_attribute("aria-valuetext", f"turn {move.turn}")
    expect(page.get_by_role("spinbutton", name="Go to turn")).to_have_value(str(move.turn))
    if move.focused:
        expect(page.get_by_role(move.focused).first).to_be_focused()

    page.get_by_role("slider").first.press("ArrowLeft")
    page.get_by_role("heading", name=f"Turn {move.turn - 1}:").wait_for()
    page.wait_for_url(f"**turn={move.turn - 1}")


def choose(page: Any, text: str) -> None:
    box = page.get_by_role("combobox", name="Search or filter")
    box.fill(text)
    box.press("Enter")


def chips(page: Any) -> Any:
    return page.locator("[data-testid=stMultiSelect] [data-tag]")


def test_two_filters_before_an_answer_stay(over_line: Any, line: Line) -> None:
    page = over_line.open("alerts")
    line.hold()

    choose(page, "alert: critical")
    over_line.waits(lambda: line.answered > 0, "the server answers the first")
    choose(page, "message: failed")
    over_line.waits(lambda: line.answered > 1, "the server answers the second")
    line.release()

    page.wait_for_url("**?severity=critical&delivery=failed")
    expect(chips(page)).to_have_text(["alert: critical", "message: failed"])


def test_a_filter_before_the_response_to_back_does_not_undo_it(over_line: Any, line: Line) -> None:
    page = over_line.open("alerts")
    choose(page, "alert: critical")
    page.wait_for_url("**?severity=critical")
    over_line.settle()
    line.hold()

    page.go_back()
    over_line.waits(lambda: line.answered > 0, "the server answers Back")
    choose(page, "message: failed")
    over_line.waits(lambda: line.answered > 1, "the server answers the filter")
    line.release()

    page.wait_for_url("**/alerts")
    expect(chips(page)).to_have_count(0)
