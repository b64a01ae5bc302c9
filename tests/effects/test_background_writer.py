"""Writes off the agent's thread: callbacks that fail, and the end of the interpreter."""

from __future__ import annotations

import threading

import pytest

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


def test_a_write_is_carried_out_where_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """While the interpreter shuts down the caller's thread does the work."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    writer = BackgroundWriter()

    assert writer.run(lambda: 7).value == 7
    assert writer.settle(1)
