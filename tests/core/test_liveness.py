"""A session is live until it ends or has been silent for fifteen minutes."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from windowpane.core.times import LIVE_SECONDS, is_live


class Session(NamedTuple):
    """A session as far as its liveness is concerned."""

    ended: bool
    last_at: float | None


@pytest.mark.parametrize(
    ("session", "live"),
    [
        (Session(ended=False, last_at=1_000.0), True),
        (Session(ended=False, last_at=999.0), False),
        (Session(ended=True, last_at=1_900.0), False),
        (Session(ended=False, last_at=None), False),
    ],
    ids=["silent for fifteen minutes", "silent for longer", "ended", "without times"],
)
def test_a_session_is_live_for_fifteen_minutes_after_its_last_event(session: Session, *, live: bool) -> None:
    assert is_live(session, now=1_000.0 + LIVE_SECONDS) is live
