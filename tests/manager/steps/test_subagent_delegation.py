"""The last strategy of the cascade: a sub-agent from 95%, before a new window is opened."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from builders import filler, is_valid, manager, talk

from windowpane.core.events import ContentCompressed, SubagentDelegated, SubagentReturned, WindowRolled
from windowpane.testing import RecordingSink

LIMIT = 100_000


def report(assignment: str) -> str:
    """A sub-agent that reads what it was given."""
    return "\n".join(f"- {line}" for line in re.findall(r"decided plan_\d+ because of reason_\d+", assignment))


def full_to(window: Any, tokens: int) -> None:
    """Fill the window with one exchange after the other, without a call that could make room between them."""
    for n in range(7):
        talk(
            window, f"question {n}", f"We decided plan_{n} because of reason_{n}. " + filler(9_500, tag=f"a{n}x")
        )
    window.add_user(filler(tokens - window._engine.used(), tag="z"))


def strategies(sink: RecordingSink) -> list[str]:
    return [event.strategy for event in sink.of(ContentCompressed) if event.outcome == "accepted"]


def test_the_cascade_calls_a_sub_agent_from_95_percent() -> None:
    sink = RecordingSink()
    with manager(sink, limit=LIMIT, preset="cascade", subagent=report) as window:
        full_to(window, 96_000)
        decision = window.on_turn_start()

        assert decision.action == "compact"
        assert window.status().used_tokens <= 60_000
        assert is_valid(window)
    assert strategies(sink)[-1] == "subagent_delegation"
    assert len(sink.of(SubagentDelegated)) == len(sink.of(SubagentReturned)) == 1
    assert sink.of(WindowRolled) == []


def test_below_95_percent_no_sub_agent_is_called() -> None:
    sink = RecordingSink()
    with manager(sink, limit=LIMIT, preset="cascade", subagent=report) as window:
        full_to(window, 93_500)
        decision = window.on_turn_start()

        assert decision.action == "compact"
    assert sink.of(SubagentDelegated) == []
    assert set(strategies(sink)) <= {"progressive_summarization", "compaction"}


@pytest.mark.parametrize("subagent", [None, lambda _assignment: ""])
def test_without_a_report_a_new_window_is_opened(subagent: Any) -> None:
    sink = RecordingSink()
    with manager(sink, limit=LIMIT, preset="cascade", subagent=subagent) as window:
        full_to(window, 96_000)
        decision = window.on_turn_start()

        assert decision.action == "roll"
        assert is_valid(window)
    assert len(sink.of(WindowRolled)) == 1


def test_the_same_map_in_the_file_calls_the_sub_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "windowpane.yaml").write_text("compression: {cascade: {0.95: subagent_delegation}}")
    monkeypatch.setenv("WINDOWPANE_CONFIG", str(tmp_path / "windowpane.yaml"))
    sink = RecordingSink()
    with manager(sink, limit=LIMIT, subagent=report) as window:
        full_to(window, window._engine.levels.roll + 100)  # type: ignore[union-attr]
        window.on_turn_start()

    assert strategies(sink) == ["subagent_delegation"]
    assert sink.of(WindowRolled) == []
