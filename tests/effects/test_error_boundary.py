"""The error boundary: exceptions are contained, and each kind is logged once a minute."""

from __future__ import annotations

import logging

import pytest

from windowpane.effects.error_boundary import MAXIMUM_KINDS, ErrorBoundary


class Clock:
    """A clock that is set by hand."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_an_exception_is_contained() -> None:
    done: list[str] = []

    with ErrorBoundary(logging.getLogger("test")).contain("work", failed=lambda: done.append("failed")):
        raise ValueError("broken")

    assert done == ["failed"]


def test_an_interrupt_is_not_contained() -> None:
    with pytest.raises(KeyboardInterrupt), ErrorBoundary(logging.getLogger("test")).contain("work"):
        raise KeyboardInterrupt


def test_each_kind_is_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    boundary = ErrorBoundary(logging.getLogger("test"), clock=clock)

    for _ in range(5):
        boundary.log_failure("sink store", OSError("full"))
    boundary.log_failure("sink store", ValueError("bad"))
    clock.now = 61.0
    boundary.log_failure("sink store", OSError("full"))

    assert [record.message for record in caplog.records] == [
        "sink store failed: OSError: full",
        "sink store failed: ValueError: bad",
        "sink store failed: OSError: full",
        "4 similar messages since the last one",
    ]


def test_errors_are_logged_after_any_number_of_kinds(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    boundary = ErrorBoundary(logging.getLogger("test"), clock=clock)

    for number in range(2_000):
        boundary.log_failure(f"work {number}", OSError("full"))
    assert len(caplog.records) == MAXIMUM_KINDS
    caplog.clear()
    clock.now = 61.0
    boundary.log_failure("other work", OSError("full"))

    assert [record.message for record in caplog.records] == [
        "other work failed: OSError: full",
        "1900 other messages were not logged: there were too many",
    ]


def test_a_failure_of_the_programs_logging_is_contained() -> None:
    class Broken(logging.Filter):
        def filter(self, record: logging.LogRecord) -> bool:
            raise RuntimeError(record.name)

    logger = logging.Logger("broken")  # noqa: LOG001  # not shared with other tests
    logger.addFilter(Broken())

    with ErrorBoundary(logger).contain("work"):
        raise ValueError("broken")
