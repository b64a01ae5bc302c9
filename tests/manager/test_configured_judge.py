"""The configured judge: found, sampled and bounded by the file's settings, one per process."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from builders import filler, talk

from windowpane.agents import managers as managing
from windowpane.agents.managers import ContextWindowManager
from windowpane.core.events import ContentCompressed, FidelityEvaluated
from windowpane.evaluation.suite.judges import load_callable
from windowpane.exceptions import ConfigurationError
from windowpane.fidelity.judge.sampling import JudgeSampling, SampledJudge
from windowpane.testing import RecordingSink, in_memory_dependencies

WAIT_SECONDS = 120
JUDGE = """
from windowpane.evaluation.suite.judges import string_match

def judge(system, user):
    return string_match(system, user)

judge.name = "a judge from a file"
"""
FILE = """
health_monitoring:
  judge:
    model: {model}
    sample_rate: 1.0
    max_calls: 5000
    questions: 3
    writes_questions: true
    replicates: 4
    capacity: 40
    timeout_seconds: 7
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a judge and a configuration that names it."""
    (tmp_path / "judges.py").write_text(JUDGE)
    (tmp_path / "windowpane.yaml").write_text(FILE.format(model=tmp_path / "judges.py:judge"))
    monkeypatch.setenv("WINDOWPANE_CONFIG", str(tmp_path / "windowpane.yaml"))
    managing.configured_judge.cache_clear()
    yield tmp_path
    managing.configured_judge.cache_clear()


def window_of(sink: RecordingSink) -> ContextWindowManager:
    return ContextWindowManager(
        agent="a", model="m", limit_tokens=8_192, dependencies=in_memory_dependencies(sink)
    )


def test_a_judge_named_in_the_file_uses_the_settings_of_the_file(folder: Path) -> None:
    sink = RecordingSink()
    with window_of(sink) as window:
        judge = window._session.dependencies.judge
        for n in range(40):
            talk(
                window,
                f"Question {n}: " + filler(100, tag=f"q{n}x"),
                f"port_{n}: {n}\n" + filler(200, tag=f"a{n}x"),
            )
        assert judge is not None
        assert judge._worker.wait(WAIT_SECONDS)
    accepted = [event for event in sink.of(ContentCompressed) if event.outcome == "accepted"]
    judged = [found for found in sink.of(FidelityEvaluated) if found.method == "judge"]

    assert len(judged) == len(accepted) > 1
    assert {found.judge for found in judged} == {"a judge from a file"}
    assert all(found.facts_total <= 3 for found in judged)
    sample = judge.sample
    assert sample == JudgeSampling(
        rate=1.0, questions=3, writes_questions=True, capacity=40, timeout_seconds=7.0, max_calls=5_000,
        replicates=4,
    )  # fmt: skip


def test_all_managers_of_a_process_share_the_judge(folder: Path) -> None:
    with window_of(RecordingSink()) as one, window_of(RecordingSink()) as two:
        assert one._session.dependencies.judge is two._session.dependencies.judge is not None


def test_an_argument_wins_over_the_judge_of_the_file(folder: Path) -> None:
    mine = SampledJudge(lambda _system, _user: "yes")
    with ContextWindowManager(
        agent="a", model="m", limit_tokens=8_192, dependencies=in_memory_dependencies(RecordingSink()), judge=mine
    ) as window:
        assert window._session.dependencies.judge is mine


@pytest.mark.parametrize("model", ["no_such_module_here:judge", "judges:judge"])
def test_the_current_folder_does_not_stay_on_the_path(
    model: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    before = list(sys.path)
    with contextlib.suppress(ConfigurationError):
        load_callable(model, option="judge")

    assert sys.path == before


def test_a_module_of_the_current_folder_replaces_no_library(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    (folder / "colorsys.py").write_text("raise SystemExit('code of the project')")

    assert load_callable("colorsys:rgb_to_hls", option="judge")(0, 0, 0) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("model", ["no_such_module_here:judge", "judges.py:nobody"])
def test_a_judge_that_is_not_there_is_an_error_with_its_key(
    model: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    (folder / "windowpane.yaml").write_text(FILE.format(model=model))

    with pytest.raises(ConfigurationError) as error:
        window_of(RecordingSink())

    assert error.value.path == "health_monitoring.judge.model"


def test_without_a_model_there_is_no_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDOWPANE_HEALTH_MONITORING__JUDGE__SAMPLE_RATE", "1.0")
    with window_of(RecordingSink()) as window:
        assert window._session.dependencies.judge is None
