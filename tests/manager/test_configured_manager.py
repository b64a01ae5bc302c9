"""Settings of the configuration file reach the managers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from builders import filler, manager, talk

from windowpane.agents.managers import ContextWindowManager
from windowpane.core.events import ContentCompressed, PressureMeasured
from windowpane.testing import RecordingSink

FILE = """
max_context_tokens: 128000
pressure:
  thresholds: {yellow: 0.50, orange: 0.75, red: 0.90}
eviction:
  policy: hybrid
  type_ttl: {tool_result: 8, thinking: 2, memory_injection: 20}
  protected_types: [system_prompt, memory_injection]
compression:
  summarization_threshold_tokens: 700
  compaction_utilization_threshold: 0.85
  cascade:
    0.75: tool_result_summarization
    0.85: progressive_summarization
    0.92: compaction
    0.95: subagent_delegation
  notes_file: agent_notes.md
budget:
  allocations: {system_prompt: 0.06, tool_definitions: 0.04, message_history: 0.65, tool_results: 0.12,
                memory_injection: 0.08, output_reserved: 0.05}
  soft_limit_pct: 0.70
cross_window:
  state_file: agent_state.json
  progress_file: agent_progress.md
  auto_save_threshold: 0.85
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "windowpane.yaml").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WINDOWPANE_CONFIG", str(tmp_path / "windowpane.yaml"))
    return tmp_path


def test_every_key_of_the_engine_is_used(folder: Path) -> None:
    with ContextWindowManager(agent="a", model="no-such-model", data_folder=folder) as window:
        engine = window._engine
        settings, levels = engine.settings, engine.levels
        assert levels is not None
        assert levels.compact == 128_000 * 85 // 100
        assert settings.summarize_tokens == 700
        assert settings.protected_types == {"system_prompt", "memory_injection"}
        assert [step for step in settings.cascade if isinstance(step, str)] == [
            "eviction", "roll", "hard_eviction", "truncation", "last_eviction",
        ]  # fmt: skip
        assert len(settings.cascade) == 5 + 4
        assert window.status().components["message_history"].budget_tokens == int(0.65 * 128_000)
        assert window.budget.can_add("tool_results", int(0.12 * 0.72 * 128_000)).outcome == "warned"


def test_state_progress_and_notes_files_carry_the_task_on(folder: Path) -> None:
    with ContextWindowManager(agent="a", model="no-such-model", data_folder=folder) as window:
        window.add_user("go")
        window.task.add_note("api.ts:42 fails", category="bugs", importance="critical")
        window.task.complete("scan")
    with ContextWindowManager(agent="a", model="no-such-model", data_folder=folder) as window:
        assert window.task.resumed is not None
        assert window.task.subtasks == {"scan": "done"}
        assert "api.ts:42 fails" in window.task.notes

    assert json.loads((folder / "agent_state.json").read_text())["task_id"] == "agent_state"
    assert "[x] scan" in (folder / "agent_progress.md").read_text()
    assert "[critical] api.ts:42 fails" in (folder / "agent_notes.md").read_text()


@pytest.mark.parametrize(("threshold", "begins"), [(None, 80_000), ("0.88", 88_000)])
def test_the_conversation_is_compacted_from_the_threshold_on(
    threshold: str | None, begins: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if threshold is not None:
        monkeypatch.setenv("WINDOWPANE_COMPRESSION__COMPACTION_UTILIZATION_THRESHOLD", threshold)
    sink = RecordingSink()
    with manager(sink, limit=100_000, policy="type_based") as window:
        for n in range(26):
            talk(window, f"question {n}", filler(4_000, tag=f"a{n}x"))
    first = next(at for at, event in enumerate(sink.events) if isinstance(event.data, ContentCompressed))
    before = [
        event.data.used_tokens
        for event in sink.events[:first]
        if isinstance(event.data, PressureMeasured) and event.data.phase == "before"
    ]

    assert begins <= before[-1] < begins + 4_200
    assert all(used < begins for used in before[:-1])
