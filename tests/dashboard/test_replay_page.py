"""The replay page: stored comparisons, simulating beside the page, the winning configuration."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from windowpane.config.loading import load_config
from windowpane.exceptions import ConfigurationError
from windowpane.store.replays import ReplayRow, ReplayRunRow, StoredReplay
from windowpane.store.sqlite import SqliteStore
from windowpane_dashboard.charts.replays import MAXIMUM_PANES, replay_panes
from windowpane_dashboard.queries.replays import (
    best_cells,
    best_setup,
    replay_headline,
    results_by_setup,
    results_frame,
    timelines_frame,
)
from windowpane_dashboard.replay import jobs as replay_jobs
from windowpane_dashboard.replay.jobs import start_simulation
from windowpane_dashboard.replay.worker import SimulationRequest
from windowpane_dashboard.style.theme import DARK, LIGHT


def run(setup: str, session: str = "s1", *, kind: str = "managed", **measures: float) -> ReplayRunRow:
    known = {"turns": 3, "tokens_sent": 1_000, "cost_tokens": 800.0, "cached_tokens": 250, "overflows": 0}
    return ReplayRunRow(
        session, setup, kind, setup, "", 8_192, {**known, **measures}, f"eviction:\n  policy: {setup}\n",
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
    return next(found for found in app.selectbox if found.label == label)


def test_results_add_up_over_sessions() -> None:
    """Sums of what was sent and removed, means of ratios, one row a setup."""
    frame = results_frame(results_by_setup(RUNS)).set_index("under")

    assert frame.loc["hybrid", "cost tokens"] == 1_200
    assert frame.loc["hybrid", "fidelity"] == pytest.approx(0.8)
    assert frame.loc["hybrid", "cached"] == 25
    assert frame.loc["fifo", "overflows"] == 2


def test_the_best_of_a_column_is_known_and_a_tie_of_all_is_none() -> None:
    """Less is better for overflows and cost, more for fidelity; columns without a difference mark nothing."""
    frame = results_frame(results_by_setup(RUNS))

    best = best_cells(frame)

    assert best["overflows"] == {0, 2}
    assert best["fidelity"] == {0}
    assert best["cost tokens"] == {2}
    assert "tokens sent" not in best


def test_the_timelines_are_there_as_a_table() -> None:
    """A row for each kept call, a column for each setup; a shorter run ends earlier."""
    short = ReplayRunRow("s1", "short", "managed", "x", "", 8_192, {"turns": 2}, "", (1_000, 2_000))

    frame = timelines_frame([run("hybrid"), short])

    assert list(frame["call"]) == [1, 2, 3]
    assert list(frame["hybrid"]) == [3_000, 9_000, 4_000]
    assert list(frame["short"].dropna()) == [1_000, 2_000]
    assert timelines_frame([]).empty


def test_figures_that_look_the_same_are_equally_good() -> None:
    """A difference that the table does not show is not marked."""
    runs = (run("a", fidelity=0.801, cost_tokens=1_390_000.0), run("b", fidelity=0.799, cost_tokens=1_410_000.0))

    best = best_cells(results_frame(results_by_setup(runs)))

    assert "fidelity" not in best
    assert "cost tokens" not in best


def test_the_configuration_is_accepted_when_it_is_saved(
    small_store: SqliteStore, open_page: Callable[..., Any], tmp_path: Path
) -> None:
    """What the page shows to be copied is read back as the same policy, window and thresholds."""
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
    small_store: SqliteStore, open_page: Callable[..., Any], said: Callable[..., str]
) -> None:
    """A shared address shows the same timelines and configuration."""
    small_store.save_replay(stored())

    app = open_page("replay", id="abc123", session="s2", setup="fifo")

    assert choice(app, "Session").value == "s2"
    assert choice(app, "Setup").value == "fifo"
    assert "policy: fifo" in said(app)


def test_the_winner_overflows_least_and_is_no_baseline() -> None:
    """Fewest overflows come before cost; a setup that some session could not go through does not win."""
    assert best_setup(results_by_setup(RUNS)).setup == "hybrid"  # type: ignore[union-attr]
    assert replay_headline(results_by_setup(RUNS)).startswith("hybrid comes out best: no call overflows")
    partly = (*RUNS, run("greedy", cost_tokens=1.0))
    assert best_setup(results_by_setup(partly)).setup == "hybrid"  # type: ignore[union-attr]
    assert replay_headline(()) == "Nothing could be replayed."


@pytest.mark.parametrize("palette", [LIGHT, DARK])
def test_panes_share_their_axes(palette: Any) -> None:
    """Each setup has a pane of the same height and scale; only the first dozen are drawn."""
    figure = replay_panes([run(f"p{number}") for number in range(20)], palette)

    axes = [value for name, value in figure.to_dict()["layout"].items() if name.startswith("yaxis")]
    assert len(axes) == MAXIMUM_PANES
    assert len({tuple(one["range"]) for one in axes}) == 1
    assert axes[0]["range"][1] > 9_000
    assert sum(trace.name == "limit" for trace in figure.data) == MAXIMUM_PANES


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"sessions": ()}, "at least one session"),
        ({"windows": ("huge",)}, "is not a size"),
        ({"policies": ()}, "a policy, a preset or the baselines"),
        ({"thresholds": "nine"}, "threshold"),
        ({"windows": ()}, "a size such as 32k"),
    ],
)
def test_a_request_that_cannot_be_is_refused_before_it_runs(wrong: dict[str, Any], said: str) -> None:
    """The form's values are checked where they were entered."""
    given = {
        "store": "x.db", "sessions": ("s1",), "policies": ("fifo",), "presets": (), "windows": ("8k",),
    }  # fmt: skip

    with pytest.raises(ConfigurationError, match=said):
        SimulationRequest(**{**given, **wrong}).setups()


def test_a_request_survives_the_way_to_its_process() -> None:
    """What was asked for arrives as it was."""
    request = SimulationRequest(
        "a b.db", ("s'1", "ü"), ("fifo",), (), ("8k", "32k"), "0.7", baselines=True, name="n"
    )

    assert SimulationRequest.from_json(request.to_json()) == request


def test_a_simulation_runs_in_its_own_process_and_is_stored(small_store: SqliteStore) -> None:
    """Its progress is told, its result is in the store, sessions and events are untouched."""
    before = small_store.size().events
    request = SimulationRequest(
        str(small_store.path), ("refactor-api",), ("fifo", "lru"), (), ("8k",), baselines=True
    )

    job = start_simulation(request)
    job.wait(60)

    assert job.error == ""
    assert job.done == job.total == 1
    found = small_store.replay(job.replay)
    assert found is not None
    assert {one.kind for one in found.runs} == {"managed", "truncate", "keep_last"}
    assert small_store.size().events == before


def test_a_simulation_that_cannot_start_says_why(small_store: SqliteStore) -> None:
    """A session that is not there gives a reason, not a traceback."""
    job = start_simulation(SimulationRequest(str(small_store.path), ("nobody",), ("fifo",), (), ("8k",)))
    job.wait(60)

    assert job.replay == ""
    assert "nobody" in job.error


def test_what_a_library_prints_does_not_hold_a_simulation_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines that are not the worker's own are passed over, and its end is told."""
    printed = (
        "import sys; sys.stdin.read(); print('Downloading …'); print('[1]'); print('{\"done\": 1}'); "
        'print(\'{"session": "s", "done": 1, "total": 2}\'); print(\'{"replay": "abc"}\')'
    )
    monkeypatch.setattr(replay_jobs, "WORKER", (sys.executable, "-c", printed))

    job = start_simulation(SimulationRequest("store", ("s",), ("fifo",), (), ("8k",)))
    job.wait(30)

    assert (job.replay, job.error, job.done, job.total) == ("abc", "", 1, 2)


def test_a_simulation_can_be_stopped(small_store: SqliteStore) -> None:
    """Nothing of it is stored."""
    job = start_simulation(
        SimulationRequest(str(small_store.path), ("refactor-api",), ("all",), (), ("8k", "16k", "32k"))
    )

    job.stop()
    job.wait(60)

    assert job.error.startswith("Stopped")
    assert not small_store.replays()


def test_the_page_compares_what_is_stored(
    small_store: SqliteStore, open_page: Callable[..., Any], said: Callable[..., str]
) -> None:
    """Answer, table, and the configuration of the winner to be copied."""
    small_store.save_replay(stored())

    app = open_page("replay")

    assert not app.exception
    assert "hybrid comes out best" in app.subheader[0].value
    assert list(app.dataframe[0].value["under"]) == ["hybrid", "fifo", "truncation"]
    assert "policy: hybrid" in said(app)
    assert "s3: no content" in said(app)
    choice(app, "Setup").select("fifo").run()
    assert "policy: fifo" in said(app)


def test_without_a_replay_the_form_is_open(
    small_store: SqliteStore, open_page: Callable[..., Any], said: Callable[..., str]
) -> None:
    """The page says how to begin; what cannot be simulated is refused in the form."""
    app = open_page("replay")
    assert not app.exception
    assert "No replay is stored yet" in app.subheader[0].value

    next(button for button in app.button if button.label == "Simulate").click().run()

    assert not app.exception
    assert "Not simulated" in app.warning[0].value
    assert "at least one session" in said(app)


def test_simulating_from_the_page_opens_the_result(
    small_store: SqliteStore, open_page: Callable[..., Any], wait_until: Callable[..., None]
) -> None:
    """Choose a session, press the button, and the result is there under its own address."""
    app = open_page("replay")
    app.multiselect(key="replay_sessions").select("refactor-api")
    next(button for button in app.button if button.label == "Simulate").click().run()

    wait_until(lambda: bool(small_store.replays()), timeout_seconds=60, what="the replay in the store")
    wait_until(lambda: bool(app.run() and app.dataframe), what="the result on the page")

    assert not app.exception
    assert app.query_params["id"] in (small_store.replays()[0].id, [small_store.replays()[0].id])


def test_a_stale_address_shows_the_latest(small_store: SqliteStore, open_page: Callable[..., Any]) -> None:
    """A replay that is gone is said to be, and another is shown."""
    small_store.save_replay(stored("[link](http://127.0.0.1:9/x)"))

    app = open_page("replay", id="gone")

    assert not app.exception
    assert "not in the store" in app.warning[0].value
    assert "comes out best" in app.subheader[0].value
