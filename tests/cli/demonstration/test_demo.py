"""The demo: one command from packaged recordings to metrics a real Prometheus can query."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote
from urllib.request import urlopen

import pytest
from click.testing import CliRunner

from windowpane.cli import main
from windowpane.core.events import (
    BlockAdded,
    BlocksEvicted,
    ContentCompressed,
    ContentRegretted,
    FidelityEvaluated,
)
from windowpane.store.embedded import SqliteReader
from windowpane.store.filters import AlertFilter, EventFilter, SessionFilter

QUERIES = (
    "context_window_utilization_ratio",
    "context_window_velocity_tokens_per_turn",
    "context_window_eviction_rate_blocks_per_turn",
    "context_window_compression_ratio",
    "context_window_burn_rate_tokens_per_turn",
    "context_window_fidelity_ratio",
    "context_window_turns_until_red",
)
EVENT_OF = {"eviction": "blocks.evicted", "compression": "content.compressed"}
"""The event behind each cause of a regret."""


@pytest.fixture(scope="module")
def data_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a user's data, without anything in it."""
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def printed(data_home: Path) -> str:
    """The output of the command, which has loaded the demo's sessions."""
    result = CliRunner().invoke(main, ["demo", "--once"], env={"XDG_DATA_HOME": str(data_home)})
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(scope="module")
def demo(printed: str, data_home: Path) -> Iterator[SqliteReader]:
    """The demo's sessions, loaded once."""
    (path,) = data_home.rglob("*.db")
    with closing(SqliteReader(path)) as reader:
        yield reader


class TestWhatIsLoaded:
    def test_every_packaged_recording_and_both_reruns_are_there(self, demo: SqliteReader) -> None:
        rows = demo.sessions(SessionFilter(limit=100))

        assert len(rows) == 15
        assert sorted({row.source for row in rows}) == ["claude_code", "demo", "pi", "swe_agent", "tau_bench"]

    def test_the_last_events_are_of_one_quarter_of_an_hour(self, demo: SqliteReader) -> None:
        now = time.time()
        times = [row.last_at or 0 for row in demo.sessions()]

        assert max(times) - min(times) <= 900
        assert now - 3_600 <= max(times) <= now

    def test_the_reruns_act_and_raise_alerts(self, demo: SqliteReader) -> None:
        """In an 8K window the long session is evicted from, compacted, measured and alerted."""
        small = demo.session("pi-managed-8k")
        assert small is not None

        assert small.limit_tokens == 8_192
        assert small.evicted_blocks > 0
        assert small.compressions > 0
        evaluated = demo.events(EventFilter(session_id="pi-managed-8k", types=("fidelity.evaluated",)))
        assert any(one.event.data.score is not None for one in evaluated)  # type: ignore[union-attr]
        assert demo.alerts(AlertFilter(session_id="pi-managed-8k"))

    def test_the_values_are_those_of_the_recordings(self, demo: SqliteReader) -> None:
        long = next(row for row in demo.sessions() if row.source == "pi")

        assert long.turns == 453
        assert long.input_tokens == 1_049 + 43_229_469 + 4_296_232
        assert long.cost_dollars == pytest.approx(30.33, abs=0.01)

    def test_every_reference_between_events_resolves(self, demo: SqliteReader) -> None:
        events = [stored.event for batch in demo.scan() for stored in batch]
        by_id = {(event.context.session_id, event.event_id): event.type for event in events}
        blocks = {
            (event.context.session_id, event.data.block.id)
            for event in events
            if isinstance(event.data, BlockAdded)
        }
        causes: set[str] = set()
        for event in events:
            session, data = event.context.session_id, event.data
            if isinstance(data, ContentRegretted):
                causes.add(by_id[session, data.cause_event_id])
                assert by_id[session, data.cause_event_id] == EVENT_OF[data.cause]
                named = {data.block_id, data.by}
            elif isinstance(data, FidelityEvaluated):
                assert data.of is None or by_id[session, data.of] == "content.compressed"
                named = set()
            elif isinstance(data, ContentCompressed):
                named = {*data.removed, *data.results}
            elif isinstance(data, BlocksEvicted):
                named = {block.block_id for block in data.blocks}
                named |= {block.replacement for block in data.blocks if block.replacement}
            else:
                continue
            assert {(session, name) for name in named} <= blocks
        assert causes
        assert causes <= set(EVENT_OF.values())


class TestTheCommand:
    def test_once_prints_the_report_and_where_the_store_is(self, printed: str, data_home: Path) -> None:
        next_command = printed.splitlines()[-1].split("windowpane ")[1].split()
        result = CliRunner().invoke(main, next_command, env={"XDG_DATA_HOME": str(data_home)})

        assert "15 sessions" in printed
        assert "pi-managed-8k" in printed
        assert "critical" in printed
        assert "pi-managed-8k" in result.output

    def test_it_refuses_a_store_that_exists(self, tmp_path: Path) -> None:
        mine = tmp_path / "mine.db"
        mine.write_text("precious")

        result = CliRunner().invoke(main, ["demo", "--once", "--store", str(mine)])

        assert result.exit_code == 1
        assert mine.read_text() == "precious"


@pytest.mark.server
def test_a_real_prometheus_scrapes_the_demo(
    tmp_path: Path,
    require_server: Callable[[str], Path],
    free_port: Callable[[], int],
    run_server: Callable[..., subprocess.Popen[bytes]],
    wait_until: Callable[..., None],
) -> None:
    prometheus = require_server("prometheus")
    metrics, web, dashboard = free_port(), free_port(), free_port()

    def answers(url: str) -> bool:
        try:
            with urlopen(url, timeout=5) as answer:
                return int(answer.status) == 200
        except OSError:
            return False

    arguments = ["demo", "--store", tmp_path / "demo.db", "--port", dashboard, "--metrics-port", metrics]
    demo = run_server(
        [sys.executable, "-m", "windowpane", *map(str, arguments)],
        ready=lambda: (
            answers(f"http://127.0.0.1:{metrics}/healthz")
            and answers(f"http://127.0.0.1:{dashboard}/_stcore/health")
        ),
        timeout_seconds=120,
    )
    config = tmp_path / "prometheus.yml"
    config.write_text(
        "global: {scrape_interval: 1s}\n"
        f"scrape_configs: [{{job_name: windowpane, static_configs: [{{targets: ['127.0.0.1:{metrics}']}}]}}]\n"
    )
    run_server(
        [
            prometheus, f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'tsdb'}",
            f"--web.listen-address=127.0.0.1:{web}",
        ],
        ready=lambda: answers(f"http://127.0.0.1:{web}/-/ready"),
    )  # fmt: skip

    def result(query: str) -> list[dict[str, object]]:
        with urlopen(f"http://127.0.0.1:{web}/api/v1/query?query={quote(query)}", timeout=5) as answer:
            found: list[dict[str, object]] = json.load(answer)["data"]["result"]
        return found

    for query in QUERIES:
        wait_until(lambda query=query: bool(result(query)), what=f"a value of {query}", timeout_seconds=60)
    demo.send_signal(signal.SIGINT)

    assert demo.wait(timeout=30) == 0
    assert not answers(f"http://127.0.0.1:{dashboard}/_stcore/health")
