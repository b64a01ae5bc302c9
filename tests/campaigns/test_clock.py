"""Campaign: the system's clock jumps back and forth between any two readings."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.campaigns.conftest import Campaign
from tests.campaigns.faulted_agent import LONGEST_HOOK_MS, TimedAgent, is_complete

import windowpane
from windowpane.manager.files.checkpoints import FileCheckpoints

JUMPS_SECONDS = (0.0, 1.0, -1.0, 3_600.0, -3_600.0, 86_400.0, -86_400.0, 400 * 86_400.0, -10 * 365 * 86_400.0)


@pytest.fixture(autouse=True)
def stopped() -> Iterator[None]:
    """No outputs run after a test."""
    yield
    windowpane.stop()


def test_jumping_clocks(campaign: Campaign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried, held, chance = campaign.attempts(sample=1, whole=60), 0, random.Random(5)
    during, without = [], []
    real_time = time.time
    for number in range(tried):
        store, session = tmp_path / f"{number}.db", f"clock-{number}"
        running = windowpane.start(port=0, store=store, notify=[])
        steady = TimedAgent(tmp_path / "data", f"steady-{number}")
        without.append(steady.longest_hook_ms(12))
        steady.close()
        with monkeypatch.context() as jumping:
            jumping.setattr(time, "time", lambda: real_time() + chance.choice(JUMPS_SECONDS))
            agent = TimedAgent(tmp_path / "data", session)
            during.append(agent.longest_hook_ms(12))
            flushed = running.flush(20)
            agent.close()
            at_end = running.flush(20)
            running.close()
        saved = FileCheckpoints(tmp_path / "data" / "checkpoints", redact=str).load(session).document
        newest = saved is not None and saved["version"] >= 5
        held += flushed and at_end and newest and is_complete(store, session)

    campaign.record(
        "clock that jumps", tried=tried, held=held, hook_ms=max(during), hook_ms_without=max(without),
        note="up to ten years back and 400 days ahead, between any two readings",
    )  # fmt: skip
    assert held == tried
    assert max(during) < LONGEST_HOOK_MS
