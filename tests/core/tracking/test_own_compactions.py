"""The effect of an agent's own compactions and of large calls on the size of the window and on the forecast."""

from __future__ import annotations

import pytest

from windowpane.core.agents import AgentProgram
from windowpane.core.events import ContentCompressed, Event, LimitChanged, PressureMeasured, Usage
from windowpane.core.limits import WindowLimits
from windowpane.core.tracking import SessionInfo, SessionTracker
from windowpane.core.vocabulary import LimitSource


class Agent:
    """A Claude Code session of which only the provider's totals are known."""

    def __init__(self, limit_tokens: int, source: LimitSource) -> None:
        self.events: list[Event] = []
        self.tracker = SessionTracker(
            SessionInfo("s", "claude-code", "claude-opus-4-6", "test", "stream"),
            emit=self.events.extend,
            digest=lambda text: text,
            limits=WindowLimits.of(limit_tokens, source),
            next_limit=lambda above: 200_000 if above <= 200_000 else 1_000_000,
            smaller_limit=lambda used: 200_000 if used <= 200_000 else None,
            program=AgentProgram("claude-code", "2.1.39"),
        )
        self.tracker.start()

    def call(self, total: int) -> PressureMeasured:
        """Make a call of *total* tokens."""
        self.tracker.add("user_message", "more", 100)
        return self.tracker.end_turn(Usage(total, 10))

    def compact(self, before: int, *, trigger: str = "auto") -> None:
        """Compact the window by itself, or at the request of its user."""
        self.tracker.compress(
            ContentCompressed("compaction", trigger, "accepted", before, 50_000, scope="window", method="agent"),
            window_tokens_before=before,
        )

    @property
    def limits(self) -> tuple[int, str]:
        """Size of the window and its source."""
        limits = self.tracker.limits
        assert limits is not None
        return limits.limit_tokens, limits.source


@pytest.mark.parametrize("source", ["catalogue", "assumed", "observed_floor"])
def test_an_automatic_compaction_lowers_a_window_that_it_fits(source: LimitSource) -> None:
    """A window compacted three times at 167k is not one of a million tokens."""
    agent = Agent(1_000_000, source)
    agent.call(166_000)
    agent.compact(167_100)
    after = agent.call(50_000)

    assert agent.limits == (200_000, "observed_compaction")
    assert (after.limit_tokens, after.compaction_tokens, after.compaction_evidence) == (
        200_000, 167_000, "recorded",
    )  # fmt: skip
    assert any(isinstance(event.data, LimitChanged) for event in agent.events)


@pytest.mark.parametrize("source", ["given", "provider"])
def test_a_given_window_is_not_lowered(source: LimitSource) -> None:
    agent = Agent(1_000_000, source)
    agent.call(166_000)
    agent.compact(167_100)

    assert agent.limits == (1_000_000, source)


def test_a_window_is_not_lowered_below_what_was_sent() -> None:
    """A call of 300k stays possible after a compaction at 167k, and one by the user is not evidence."""
    agent = Agent(1_000_000, "catalogue")
    agent.call(300_000)
    agent.compact(167_100)
    assert agent.limits == (1_000_000, "catalogue")

    asked = Agent(1_000_000, "catalogue")
    asked.call(100_000)
    asked.compact(100_000, trigger="manual")
    assert asked.limits == (1_000_000, "catalogue")
    assert asked.call(50_000).compaction_evidence == "documented"


def test_a_recorded_compaction_above_the_window_raises_it() -> None:
    """A recording that starts with a compaction of 998,659 tokens is not of a window of 200k."""
    agent = Agent(200_000, "assumed")
    agent.compact(998_659)
    first = agent.call(69_313)

    assert agent.limits == (1_000_000, "observed_floor")
    assert (first.compaction_tokens, first.compaction_evidence) == (967_000, "recorded")


def test_a_call_above_an_assumed_window_raises_it_and_its_level() -> None:
    """From 200k to a million, and from 167k to 967k."""
    agent = Agent(200_000, "assumed")
    agent.call(150_000)
    above = agent.call(201_000)

    assert agent.limits == (1_000_000, "observed_floor")
    assert (above.compaction_tokens, above.compaction_evidence) == (967_000, "documented")
