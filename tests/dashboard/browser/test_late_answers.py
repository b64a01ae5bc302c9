"""A busy server: what the browser asks before it has seen an answer must not undo what somebody did."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.browser

SESSION = "pi-managed-8k"
WATCHED = """
window.addresses = [];
const push = history.pushState;
history.pushState = function (state, title, url) {
  window.addresses.push(String(url));
  return push.apply(this, arguments);
};
"""
"""Keeps every address that the page puts into the browser's bar."""


@dataclass
class Line:
    """The connection between page and server, whose answers can be held back."""

    asked: int = 0
    holding: bool = False
    held: list[Any] = field(default_factory=list)
    browser: Any = None

    def connect(self, socket: Any) -> None:
        self.browser, server = socket, socket.connect_to_server()

        def asks(message: Any) -> None:
            self.asked += 1
            server.send(message)

        def answers(message: Any) -> None:
            if self.holding:
                self.held.append(message)
            else:
                socket.send(message)

        socket.on_message(asks)
        server.on_message(answers)

    def release(self) -> None:
        """Let through what was held, in order."""
        self.holding = False
        for message in self.held:
            self.browser.send(message)
        self.held.clear()

    def wait_until_asked(self, page: Any, times: int) -> None:
        """Wait until the page has asked that often in all; it looks for new events every few seconds."""
        for _ in range(300):
            if self.asked >= times:
                return
            page.wait_for_timeout(100)
        pytest.fail("the page asked nothing more")


def test_a_late_answer_does_not_undo_the_typed_turn(site: Callable[..., Any], demo_store: Path) -> None:
    """A look for new events that leaves before the turn is drawn still holds the slider's old value."""
    shown, line = site(demo_store), Line()
    page = shown.page
    page.route_web_socket("**/_stcore/stream*", line.connect)
    page.add_init_script(WATCHED)
    shown.open("session", session=SESSION)
    turn = page.get_by_role("spinbutton", name="Go to turn")
    turn.fill("40")
    line.holding, before = True, line.asked
    turn.press("Enter")
    line.wait_until_asked(page, before + 2)
    line.release()
    page.get_by_role("heading", name="Turn 40:").wait_for(timeout=30_000)
    line.wait_until_asked(page, line.asked + 1)

    addresses = page.evaluate("window.addresses")
    moved = next(at for at, address in enumerate(addresses) if "turn=40" in address)
    assert all(address.endswith("turn=40") for address in addresses[moved:])
    assert page.get_by_role("slider").first.get_attribute("aria-valuetext") == "turn 40"
