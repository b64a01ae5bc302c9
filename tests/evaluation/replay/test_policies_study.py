"""The study of the policies: halving and joining sessions, and the tables in RESULTS.md."""

from __future__ import annotations

import importlib
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from windowpane.evaluation.replay import FileSource

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that imports a module of the study."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))

    def load(name: str) -> ModuleType:
        return importlib.import_module(name)

    yield load
    for name in [name for name in sys.modules if name.partition(".")[0] in {"bench_policies", "policies"}]:
        sys.modules.pop(name)


def sized(bench: Any, sizes: list[int]) -> list[Any]:
    study = bench("bench_policies")
    return [study.Sized(FileSource(Path("x"), str(n), f"session {n}"), tokens) for n, tokens in enumerate(sizes)]


def test_the_halves_have_sessions_of_similar_sizes(bench: Any) -> None:
    study = bench("bench_policies")
    sessions = sized(bench, [10 * n for n in range(20)])
    halves = study.halves_of(sessions)

    assert Counter(halves.values()) == {"tuning": 10, "reported": 10}
    assert all(halves[f"session {n}"] != halves[f"session {n + 1}"] for n in range(0, 20, 2))
    assert study.halves_of(sessions[::-1]) == halves
    assert len({halves[f"session {n}"] for n in range(1, 20, 2)}) == 2


def test_joined_recordings_fill_their_window_and_share_no_session(bench: Any) -> None:
    study = bench("bench_policies")
    made = study.joined(sized(bench, [500, 90, 80, 70, 60, 50, 5]), 100)
    names = [part.name for source in made for part in source.parts]

    assert [len(source.parts) for source in made] == [1, 2, 2]
    assert names[0] == "session 0"
    assert len(names) == len(set(names))


def test_the_best_preset_is_the_one_of_least_regret_among_those_that_overflow_least(bench: Any) -> None:
    report = bench("policies.report")
    regrets = {"cascade": (0, 0.2), "baseagent": (3, 0.0), "picoclaw": (0, 0.1), "ai_sdk_go": (9, 0.0)}

    class Measures:
        def __init__(self, overflows: int, regret_ratio: float) -> None:
            self.overflows, self.regret_ratio = overflows, regret_ratio

    class Run:
        def __init__(self, name: str) -> None:
            self.setup = type("Setup", (), {"name": f"preset {name}"})()
            self.measures = Measures(*regrets[name])

    studied = report.Studied("one", 8_192, tuple(Run(name) for name in regrets), ())

    assert report.best_preset([studied]) == "preset picoclaw"


def test_a_session_is_drawn_with_all_its_windows(bench: Any) -> None:
    """The mean is over windows, the interval over sessions, as windows of one session are not independent."""
    clustered = bench("policies.pooled").clustered
    many = clustered([[-0.02]] * 10 + [[0.01]] * 10)
    few = clustered([[-0.02] * 10, [0.01] * 10])

    assert [many.mean, few.mean] == pytest.approx([-0.005, -0.005])
    assert (many.sessions, few.sessions) == (20, 2)
    assert few.high - few.low > 2 * (many.high - many.low)
    assert clustered([]) is None


def test_a_baseline_that_overflowed_is_compared_separately(bench: Any) -> None:
    report, pooled = bench("policies.report"), bench("policies.pooled")

    def studied(name: str, overflows: int) -> Any:
        matched = report.Matched("truncate", {"regret_ratio": 0.1}, overflows=overflows)
        return report.Studied(name, 8_192, (), (matched, report.Matched("keep_last", None)))

    sessions = [studied("failed", 2), studied("held", 0)]

    assert [pooled.matched("truncate")(one) for one in sessions] == [{"regret_ratio": 0.1}] * 2
    assert [pooled.sound("truncate")(one) for one in sessions] == [None, {"regret_ratio": 0.1}]


def test_results_contain_the_studys_verdicts_and_tables(bench: Any, tmp_path: Path, monkeypatch: Any) -> None:
    results = bench("policies.results")
    policies, target = tmp_path / "POLICIES.md", tmp_path / "RESULTS.md"
    policies.write_text(
        "# Policies\n\n## Regret of the default, all sessions\n\n- 8k: better.\n\n"
        "# All sessions\n\n## 8k window\n\n2 sessions\n\n| under | x |\n|---|--:|\n| fifo | 1 |\n\n"
        "| default against | y |\n|---|--:|\n| truncation | 2 |\n\n"
        "# Joined end to end\n\n## 128k window, joined sessions\n\n| under | x |\n|---|--:|\n| lru | 3 |\n"
    )
    target.write_text("# Results\n\n## emit\n\nfast\n\n## policies\n\nold\n\n## store\n\nsmall\n")
    monkeypatch.setattr(results, "POLICIES", policies)
    monkeypatch.setattr(results, "RESULTS", target)
    results.refresh_results()
    text = target.read_text()
    results.refresh_results()

    assert target.read_text() == text
    assert "- 8k: better." in text
    assert "| fifo | 1 |" in text
    assert "| lru | 3 |" in text
    assert "truncation | 2" not in text
    assert "old" not in text
    assert text.index("## emit") < text.index("## policies") < text.index("## store")
