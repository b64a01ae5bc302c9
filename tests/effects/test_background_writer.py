"""Writes off the agent's thread: what happens when the caller's callback fails."""

from __future__ import annotations

import threading

from windowpane.effects.background_writer import BackgroundWriter
from windowpane.effects.commands import CommandResult


def test_a_callback_that_fails_does_not_stop_the_writer() -> None:
    released, written = threading.Event(), threading.Event()
    writer = BackgroundWriter()

    def fail(_: CommandResult) -> None:
        raise RuntimeError("broken callback")

    writer.run(lambda: released.wait(10), wait_seconds=0, on_late=fail)
    released.set()
    assert writer.settle(10)
    writer.run(written.set, wait_seconds=10)

    assert written.is_set()
    assert writer.settle(10)
