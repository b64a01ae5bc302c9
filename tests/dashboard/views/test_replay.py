"""The replay page: stored comparisons, simulations in a separate process, the best configuration."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from windowpane.config.loading import load_config
from windowpane.exceptions import ConfigurationError
from windowpane.manager.plans.policies import POLICIES
from windowpane.store.embedded import SqliteStore
from windowpane.store.replays import ReplayRow, ReplayRunRow, StoredReplay
from windowpane.text.labels import POLICY_LABELS
from windowpane_dashboard.charts.replays import MAXIMUM_PANES, replay_panes
from windowpane_dashboard.queries.replays import (
    best_setup,
    replay_headline,
    results_by_setup,
    results_frame,
    timelines_frame,
)
from windowpane_dashboard.replay import jobs as replay_jobs
from windowpane_dashboard.replay.jobs import start_simulation
from windowpane_dashboard.replay.worker import SimulationRequest
from windowpane_dashboard.sections.simulate import trial_windows
from windowpane_dashboard.style.theme import DARK, LIGHT


def run(setup: str, session: str = "s1", *, kind: str = "managed", **measures: float) -> ReplayRunRow:
    defaults = {"turns": 3, "tokens_sent": 1_000, "cost_tokens": 800.0, "cached_tokens": 250, "overflows": 0}
    return ReplayRunRow(
        session, setup, kind, setup, "", 8_192, {**defaults, **measures}, f"eviction:\n  policy: {setup}\n",
        (3_000, 9_000, 4_000),
    )  # fmt: skip


RUNS = (
    run("hybrid", fidelity=0.9, cost_tokens=700.0),
    run("fifo", fidelity=0.5, cost_tokens=650.0, overflows=2),
    run("truncation", kind="truncate", cost_tokens=100.0),
    run("hybrid", "s2", fidelity=0.7, cost_tokens=500.0),
    run("fifo", "s2", fidelity=0.5, cost_tokens=450.0),
    run("truncation", "s2", kind="truncate", cost_tokens=100.0),
)


def stored(name: str = "two policies") -> StoredReplay:
    return StoredReplay(ReplayRow("abc123", name, 1_700_000_000.0, 2, len(RUNS), ("s3: no content",)), RUNS)


def choice(app: Any, label: str) -> Any:
    return next(result for result in app.selectbox if result.label == label)


def test_results_add_up_over_sessions() -> None:
    frame = results_frame(results_by_setup(RUNS)).set_index("what removes content")

    assert list(frame) == ["still visible", "needed again", "overflows", "sessions"]
    assert frame.loc["least useful first", "still visible"] == pytest.approx(0.8)
    assert frame.loc["oldest first", "overflows"] == 2


def test_every_policy_has_a_plain_label() -> None:
    assert list(POLICY_LABELS) == list(POLICIES)


def test_a_trial_has_a_window_in_which_content_must_be_removed(small_store: SqliteStore) -> None:
    row = small_store.sessions()[0]

    assert trial_windows(replace(row, limit_tokens=200_000, peak_utilization=0.77), None) == ["200k", "100k"]
    assert trial_windows(replace(row, limit_tokens=1_000_000, peak_utilization=0.1), None) == ["1000k", "62500"]
    assert trial_windows(replace(row, limit_tokens=258_400, peak_utilization=0.9), None) == ["258400", "129200"]
    assert trial_windows(replace(row, limit_tokens=None, peak_utilization=None), "8192") == ["8k"]


def test_timelines_are_available_as_a_table() -> None:
    short = ReplayRunRow("s1", "short", "managed", "x", "", 8_192, {"turns": 2}, "", (1_000, 2_000))

    frame = timelines_frame([run("hybrid"), short])

    assert list(frame["call"]) == [1, 2, 3]
    assert list(frame["least useful first"]) == [3_000, 9_000, 4_000]
    assert list(frame["short"].dropna()) == [1_000, 2_000]
    assert timelines_frame([]).empty


def test_the_configuration_is_accepted_when_it_is_saved(
    small_store: SqliteStore, open_page: Callable[..., Any], tmp_path: Path
) -> None:
    job = start_simulation(
        SimulationRequest(str(small_store.path), ("refactor-api",), ("fifo",), (), ("8k",), "0.5/0.7/0.9")
    )
    job.wait(60)
    assert job.error == ""
    app = open_page("replay", id=job.replay)
    assert not app.exception
    file = tmp_path / "windowpane.yaml"
    file.write_text(app.code[0].value, encoding="utf-8")

    config = load_config(file, environ={})

    assert config.max_context_tokens == 8_192
    assert config.eviction.policy == "fifo"
    zones = config.pressure.thresholds
    assert (zones.yellow, zones.orange, zones.red) == (0.5, 0.7, 0.9)


def test_the_address_chooses_session_and_setup(
    small_store: SqliteStore, open_page: Callable[..., Any], page_text: Callable[..., str]
) -> None:
    small_store.save_replay(stored())

    app = open_page("replay", id="abc123", session="s2", setup="fifo")

    assert choice(app, "Session").value == "s2"
    assert choice(app, "Setup").value == "fifo"
    assert "policy: fifo" in page_text(app)


def test_the_winner_overflows_least_and_is_no_baseline() -> None:
    assert best_setup(results_by_setup(RUNS)).setup == "hybrid"  # type: ignore[union-attr]
    assert replay_headline(results_by_setup(RUNS)).startswith("Least useful first comes out best: 2k tokens")
    alone = (run("compaction only", s, kind="compact", fidelity=0.9, cost_tokens=9.0) for s in ("s1", "s2"))
    assert replay_headline(results_by_setup((*RUNS, *alone))).startswith(
        "Compaction only comes out best: 2k tokens"
    )
    partly = (*RUNS, run("greedy", cost_tokens=1.0))
    assert best_setup(results_by_setup(partly)).setup == "hybrid"  # type: ignore[union-attr]
    assert replay_headline(()) == "Nothing could be replayed."


def test_a_setup_that_keeps_less_is_never_best_because_it_costs_less() -> None:
    runs = (run("keeps", fidelity=0.9, cost_tokens=2_000.0), run("saves", fidelity=0.8, cost_tokens=10.0))

    assert best_setup(results_by_setup(runs)).setup == "keeps"  # type: ignore[union-attr]


@pytest.mark.parametrize("palette", [LIGHT, DARK])
def test_panes_share_their_axes(palette: Any) -> None:
    figure = replay_panes([run(f"p{number}") for number in range(20)], palette)

    axes = [value for name, value in figure.to_dict()["layout"].items() if name.startswith("yaxis")]
    assert len(axes) == MAXIMUM_PANES
    assert len({tuple(one["range"]) for one in axes}) == 1
    assert axes[0]["range"][1] > 9_000
    assert sum(trace.name == "limit" for trace in figure.data) == MAXIMUM_PANES


@pytest.mark.parametrize(
    ("wrong", "page_text"),
    [
        ({"sessions": ()}, "at least one session"),
        ({"windows": ("huge",)}, "is not a size"),
        ({"thresholds": "nine"}, "threshold"),
        ({"windows": ()}, "a size such as 32k"),
    ],
)
def test_a_request_that_cannot_be_is_refused_before_it_runs(wrong: dict[str, Any], page_text: str) -> None:
    given = {
        "store": "x.db", "sessions": ("s1",), "policies": ("fifo",), "presets": (), "windows": ("8k",),
    }  # fmt: skip

    with pytest.raises(ConfigurationError, match=page_text):
        SimulationRequest(**{**given, **wrong}).setups()


def test_a_request_survives_the_way_to_its_process() -> None:
    request = SimulationRequest("a b.db", ("s'1", "ü"), ("fifo",), (), ("8k", "32k"), "0.7", name="n")

    assert SimulationRequest.from_json(request.to_json()) == request


def test_a_simulation_runs_in_its_own_process_and_is_stored(small_store: SqliteStore) -> None:
    before = small_store.size().events
    request = SimulationRequest(str(small_store.path), ("refactor-api",), ("fifo", "lru"), (), ("8k",))

    job = start_simulation(request)
    job.wait(60)

    assert job.error == ""
    assert job.done == job.total == 1
    result = small_store.replay(job.replay)
    assert result is not None
    assert {one.kind for one in result.runs} == {"managed", "compact"}
    assert small_store.size().events == before


def test_a_simulation_that_cannot_start_reports_the_reason(small_store: SqliteStore) -> None:
    job = start_simulation(SimulationRequest(str(small_store.path), ("nobody",), ("fifo",), (), ("8k",)))
    job.wait(60)

    assert job.replay == ""
    assert "nobody" in job.error


def test_output_of_libraries_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    printed = (
        "import sys; sys.stdin.read(); print('Downloading …'); print('[1]'); print('{\"done\": 1}'); "
        'print(\'{"session": "s", "done": 1, "total": 2}\'); print(\'{"replay": "abc"}\')'
    )
    monkeypatch.setattr(replay_jobs, "WORKER", (sys.executable, "-c", printed))

    job = start_simulation(SimulationRequest("store", ("s",), ("fifo",), (), ("8k",)))
    job.wait(30)

    assert (job.replay, job.error, job.done, job.total) == ("abc", "", 1, 2)


def test_a_simulation_can_be_stopped(small_store: SqliteStore) -> None:
    """A stopped simulation stores nothing."""
    job = start_simulation(
        SimulationRequest(str(small_store.path), ("refactor-api",), ("all",), (), ("8k", "16k", "32k"))
    )

    job.stop()
    job.wait(60)

    assert job.error.startswith("Stopped")
    assert not small_store.replays()


def test_the_page_compares_stored_setups(
    small_store: SqliteStore, open_page: Callable[..., Any], page_text: Callable[..., str]
) -> None:
    small_store.save_replay(stored())

    app = open_page("replay")

    assert not app.exception
    assert "Least useful first comes out best" in app.subheader[0].value
    assert list(app.dataframe[0].value["what removes content"]) == [
        "least useful first",
        "oldest first",
        "truncation",
    ]
    assert "policy: hybrid" in page_text(app)
    assert "s3: no content" in page_text(app)
    choice(app, "Setup").select("fifo").run()
    assert "policy: fifo" in page_text(app)


def test_without_a_replay_the_form_is_open(
    small_store: SqliteStore, open_page: Callable[..., Any], page_text: Callable[..., str]
) -> None:
    app = open_page("replay")
    assert not app.exception
    assert "No level of compaction can be compared" in app.subheader[0].value

    next(button for button in app.button if button.label == "Simulate").click().run()

    assert not app.exception
    assert "Not simulated" in app.warning[0].value
    assert "at least one session" in page_text(app)


def test_simulating_from_the_page_opens_the_result(
    small_store: SqliteStore, open_page: Callable[..., Any], wait_until: Callable[..., None]
) -> None:
    app = open_page("replay")
    app.multiselect(key="replay_sessions").select("refactor-api")
    next(button for button in app.button if button.label == "Simulate").click().run()

    wait_until(lambda: bool(small_store.replays()), timeout_seconds=60, what="the replay in the store")
    wait_until(lambda: bool(app.run() and app.dataframe), what="the result on the page")

    assert not app.exception
    assert app.query_params["id"] in (small_store.replays()[0].id, [small_store.replays()[0].id])


def test_an_unknown_replay_shows_the_latest(small_store: SqliteStore, open_page: Callable[..., Any]) -> None:
    small_store.save_replay(stored("[link](http://127.0.0.1:9/x)"))

    app = open_page("replay", id="gone")

    assert not app.exception
    assert "not in the store" in app.warning[0].value
    assert "comes out best" in app.subheader[0].value


def replayed(setup: str, session: str = "s1", **measures: float | None) -> ReplayRunRow:
    defaults = {
        "tokens_sent": 1_000,
        "cost_tokens": 800.0,
        "cached_tokens": 250,
        "overflows": 0,
        "cost_dollars": 1.0,
    }
    return ReplayRunRow(session, setup, "managed", setup, "", 8_192, {**defaults, **measures}, "", (1, 2))


class TestReplays:
    def test_fidelity_decides_between_equal_setups(self) -> None:
        best = best_setup(results_by_setup([replayed("worse", fidelity=0.5), replayed("better", fidelity=0.9)]))

        assert best is not None
        assert best.setup == "better"

    def test_setups_that_come_out_alike_have_no_best(self) -> None:
        alike = results_by_setup([replayed("one"), replayed("two")])

        assert best_setup(alike) is None
        assert replay_headline(alike) == (
            "All setups come out alike: none had to remove anything. A smaller window shows how they differ."
        )

    @pytest.mark.parametrize(("dollars", "is_said"), [(2.0, True), (0.5, False)])
    def test_the_headline_reports_that_all_costs_more_than_compaction(
        self, dollars: float, *, is_said: bool
    ) -> None:
        alone = replace(replayed("compaction", fidelity=0.5), kind="compact")
        other = replayed("hybrid", fidelity=0.9, cost_dollars=dollars)

        text = replay_headline(results_by_setup([alone, other]))

        assert ("Everything else replayed costs more than" in text) == is_said

    def test_a_setup_without_all_sessions_does_not_win(self) -> None:
        runs = [replayed("whole"), replayed("whole", "s2"), replayed("half", cost_tokens=1.0)]
        best = best_setup(results_by_setup(runs))

        assert best is not None
        assert best.setup == "whole"

    def test_dollars_need_a_price_for_every_session(self) -> None:
        frame = results_frame(
            results_by_setup([
                replayed("a"), replayed("a", "s2", cost_dollars=None), replayed("b"), replayed("b", "s2"),
            ])
        ).set_index("what removes content")  # fmt: skip

        assert pd.isna(frame.loc["a", "cost"])
        assert frame.loc["b", "cost"] == 2.0
