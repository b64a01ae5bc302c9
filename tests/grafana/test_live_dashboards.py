"""Every query of every dashboard against a real Prometheus that scraped a real agent process at work.

Grafana itself cannot be installed here, so its part is done by hand: variables are filled in as it would fill
them, and each query is asked as the panel asks it.
"""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Iterator
from typing import Any, Final

import pytest
from lens import DashboardQuery, annotation_queries, boards, panel_queries, variables
from stack import Prometheus, port, process, prometheus, wait_for

BOARDS = boards()
QUERIES = [
    query
    for name, board in BOARDS.items()
    for query in (*panel_queries(name, board), *annotation_queries(name, board))
]
SECONDS: Final = 45
"""Range of the charts."""

RIGHTLY_EMPTY: Final = {
    "windowpane-exporter: Hooks, 99th percentile (A)": "the demo agent replays recordings, it calls no hook",
    "windowpane-session: Tokens a second by MCP server, skill and memory file (A)": "the demo has none of these",
    "windowpane-exporter: Missing in ClickHouse (A)": "the demo agent keeps no copy in ClickHouse",
    "windowpane-fleet: Quota of the plan (A)": "the demo agent has no plan",
    "windowpane-fleet: Time until the quota is used up (A)": "the demo agent has no plan",
}
"""Queries without data, and why that is right."""

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, require_server) -> Iterator[Prometheus]:
    """Prometheus with the shipped configuration, scraping the demo agent of the compose file."""
    folder = tmp_path_factory.mktemp("live")
    address = f"127.0.0.1:{(number := port())}"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [
        sys.executable, "-m", "windowpane.cli.demonstration.live", "--port", str(number), "--pace", "0.05",
        "--store", folder / "agent.db",
    ]  # fmt: skip
    program = require_server("prometheus")
    with (
        process(command, ready=f"http://{address}/healthz", log=folder / "agent.log", env=environment),
        prometheus(folder, program, exporter=address) as running,
    ):
        wait_for(lambda: running.query("sum(context_window_turns_total) > 200"), "turns of the demo agent")
        yield running


def filled(expression: str) -> str:
    """The expression as Grafana sends it with everything chosen."""
    expression = expression.replace("$__rate_interval", "10s").replace("$__range", "5m")
    expression = re.sub(r'"\$\w+"', '".+"', expression)
    assert "$" not in expression
    return expression


def has_data(server: Prometheus, query: DashboardQuery) -> bool:
    expression = filled(query.expression)
    if query.instant:
        values = [series["value"] for series in server.query(expression)]
    else:
        result = server.query_range(expression, seconds=SECONDS)
        values = [value for series in result for value in series["values"]]
    return any(not math.isnan(float(value)) for _, value in values)


def test_every_query_returns_data(server: Prometheus) -> None:
    """Panels and annotations show something, or are listed with the reason why not."""
    waiting = {str(query): query for query in QUERIES if str(query) not in RIGHTLY_EMPTY}
    assert len(waiting) + len(RIGHTLY_EMPTY) == len(QUERIES)

    def answered() -> bool:
        for name, query in list(waiting.items()):
            if has_data(server, query):
                del waiting[name]
        return not waiting

    try:
        wait_for(answered, "data for every query", seconds=120)
    except pytest.fail.Exception:
        pytest.fail(f"no data for: {sorted(waiting)}")


def test_what_is_listed_as_empty_is_empty(server: Prometheus) -> None:
    by_name = {str(query): query for query in QUERIES}

    assert set(RIGHTLY_EMPTY) <= set(by_name)
    assert [name for name in RIGHTLY_EMPTY if has_data(server, by_name[name])] == []


@pytest.mark.parametrize("name", BOARDS)
def test_every_variable_has_values(server: Prometheus, name: str) -> None:
    for variable in variables(BOARDS[name]).values():
        if variable["type"] == "query":
            query = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"])
            assert query
            result: Any = server.api(f"label/{query[2]}/values", **{"match[]": filled(query[1])})
            assert result, f"{name}: {variable['name']}"


def test_the_rules_are_loaded_and_healthy(server: Prometheus) -> None:
    wait_for(lambda: server.query("agent_model:context_window_utilization_ratio:max"), "a recording")
    rules = [rule for group in server.api("rules")["groups"] for rule in group["rules"]]

    assert len(rules) > 30
    assert {rule["health"] for rule in rules} <= {"ok", "unknown"}
    assert [rule["name"] for rule in rules if rule.get("lastError")] == []
