"""The dashboards: what the dashboard-linter asks, what the SDK's types keep, and where their words come from.

The linter is a Go program that cannot be installed here; its rules are written down again as tests.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import units
from grafana_foundation_sdk.models.dashboard import Dashboard
from lens import SELECTOR, annotation_queries, boards, panel_queries, panels, variables

from windowpane.alerts.rules import RULES, RULES_BY_NAME
from windowpane.alerts.runbook import runbook_html
from windowpane.metrics.catalog import ALL_METRICS, BY_NAME

BOARDS = boards()
QUERIES = [
    query
    for name, board in BOARDS.items()
    for query in (*panel_queries(name, board), *annotation_queries(name, board))
]
KNOWN_UNITS = {
    value for name, value in vars(units).items() if isinstance(value, str) and not name.startswith("_")
}
SCRAPE_METRICS = {"up", "scrape_duration_seconds", "scrape_samples_scraped"}
SUFFIXES = ("_bucket", "_sum", "_count")

each_board = pytest.mark.parametrize("board", BOARDS.values(), ids=BOARDS)


def each_panel() -> Iterator[Any]:
    for name, board in BOARDS.items():
        for panel in panels(board):
            yield pytest.param(panel, id=f"{name}: {panel['title']}")


def metric_of(name: str) -> str:
    for suffix in SUFFIXES:
        base = name.removesuffix(suffix)
        if base in BY_NAME and BY_NAME[base].kind == "histogram":
            return base
    return name


def keys(value: Any, path: str = "") -> Iterator[str]:
    """The path of every key of a document."""
    if isinstance(value, dict):
        for key, below in value.items():
            if key.startswith("__"):  # the form for sharing is not part of a dashboard
                continue
            yield f"{path}.{key}"
            yield from keys(below, f"{path}.{key}")
    elif isinstance(value, list):
        for index, below in enumerate(value):
            yield from keys(below, f"{path}[{index}]")


def test_there_are_five_with_stable_identities() -> None:
    assert list(BOARDS) == [
        "windowpane-exporter",
        "windowpane-fleet",
        "windowpane-reduction",
        "windowpane-session",
        "windowpane-trends",
    ]
    assert {name: board["uid"] for name, board in BOARDS.items()} == {name: name for name in BOARDS}
    assert all("id" not in board and "version" not in board for board in BOARDS.values())


@each_board
def test_round_trip_through_the_sdk_loses_no_key(board: dict[str, Any]) -> None:
    """A key that the types do not have, such as a misspelled one, would vanish here."""
    again = json.loads(json.dumps(Dashboard.from_json(board).to_json(), cls=JSONEncoder))

    assert set(keys(board)) - set(keys(again)) == set()
    assert again["panels"] == board["panels"]
    assert again["templating"] == board["templating"]


def test_the_round_trip_notices_a_misspelt_key() -> None:
    board = json.loads(json.dumps(BOARDS["windowpane-fleet"]))
    board["panels"][1]["fieldConfig"]["defaults"]["untit"] = "short"
    again = json.loads(json.dumps(Dashboard.from_json(board).to_json(), cls=JSONEncoder))

    assert set(keys(board)) - set(keys(again)) == {".panels[1].fieldConfig.defaults.untit"}


@each_board
def test_they_have_the_form_of_dashboards_that_are_shared(board: dict[str, Any]) -> None:
    drawn = {panel["type"] for one in board["panels"] for panel in [one, *one.get("panels", ())]} - {"row"}

    assert board["__inputs"] == []
    assert {one["id"] for one in board["__requires"] if one["type"] == "panel"} == drawn


@each_board
def test_template_rules(board: dict[str, Any]) -> None:
    """One data source variable, job and instance as multi-value queries of it, reloaded with the time range."""
    by_name = variables(board)
    sources = [variable for variable in by_name.values() if variable["type"] == "datasource"]

    assert [(one["name"], one["label"], one["query"]) for one in sources] == [
        ("datasource", "Data source", "prometheus")
    ]
    for name in ("job", "instance"):
        assert (by_name[name]["type"], by_name[name]["label"]) == ("query", name.capitalize())
    for variable in by_name.values():
        if variable["type"] == "query":
            assert variable["datasource"]["uid"] == "${datasource}"
            assert (variable["multi"], variable["includeAll"], variable["allValue"]) == (True, True, ".+")
            assert variable["refresh"] == 2
            assert re.fullmatch(r"label_values\([a-z_]+(\{[^}]*\})?, [a-z]+\)", variable["query"])


@each_board
def test_a_dashboard_is_not_editable_and_bounded(board: dict[str, Any]) -> None:
    assert board["editable"] is False
    assert board["refresh"] == "30s"
    assert "windowpane" in board["tags"]


@pytest.mark.parametrize("panel", list(each_panel()))
def test_panel_rules(panel: dict[str, Any]) -> None:
    """Title, description, a known unit, the templated data source and at least one query."""
    assert panel["title"]
    assert len(panel["description"]) > 20
    assert panel["fieldConfig"]["defaults"]["unit"] in KNOWN_UNITS
    assert panel["datasource"]["uid"] == "${datasource}"
    assert panel["targets"]
    assert all(target["datasource"]["uid"] == "${datasource}" for target in panel["targets"])


@pytest.mark.parametrize("query", QUERIES, ids=str)
def test_target_rules(query: Any) -> None:
    expression = query.expression
    selectors = SELECTOR.findall(expression)

    assert selectors
    for name, matchers in selectors:
        assert 'job=~"$job"' in matchers
        assert 'instance=~"$instance"' in matchers
        metric = BY_NAME.get(metric_of(name))
        assert metric is not None or name in SCRAPE_METRICS, f"{name} is in no catalog"
        if (
            metric is not None
            and metric.labels[:2] == ("agent", "model")
            and query.board != "windowpane-exporter"
        ):
            assert 'agent=~"$agent", model=~"$model"' in matchers
        if name.endswith(("_total", *SUFFIXES)):
            before = expression[: expression.index(f"{name}{{{matchers}}}")]
            assert before.endswith(("rate(", "increase(")), f"{name} is not in a rate"
    for function, window in re.findall(r"(rate|increase)\([a-z_]+\{[^}]*\}\[([^\]]+)\]", expression):
        growths = ("$__range", "1d") if query.board == "windowpane-trends" else ("$__range",)
        assert window == "$__rate_interval" or (function == "increase" and window in growths)
    bare = re.sub(r"\{[^}]*\}", "{}", expression)
    assert not re.search(r"\b(?:context_window|windowpane)_\w+(?![\w{])", bare), "a selector without matchers"


def test_every_metric_is_on_a_dashboard() -> None:
    queried = {metric_of(name) for query in QUERIES for name, _ in SELECTOR.findall(query.expression)}

    assert {metric.name for metric in ALL_METRICS} - queried == {
        "gen_ai_client_token_usage", "gen_ai_client_operation_duration_seconds",
    }  # fmt: skip


def test_labels_in_queries_exist() -> None:
    scrape = {"job", "instance", "le"}
    for query in QUERIES:
        for name, matchers in SELECTOR.findall(query.expression):
            metric = BY_NAME.get(metric_of(name))
            allowed = scrape | set(metric.labels if metric else ())
            matched = set(re.findall(r"(\w+)=", matchers))
            assert matched <= allowed, f"{query}: {name} has no {matched - allowed}"
        grouped = {
            label for group in re.findall(r"by \(([^)]*)\)", query.expression) for label in group.split(", ")
        }
        allowed = scrape | {
            label
            for name, _ in SELECTOR.findall(query.expression)
            for label in (BY_NAME[metric_of(name)].labels if metric_of(name) in BY_NAME else ())
        }
        assert grouped <= allowed, f"{query}: {grouped - allowed}"


def test_legends_name_labels_that_the_query_keeps() -> None:
    """A legend with a label that was summed away would be blank."""
    for name, board in BOARDS.items():
        for panel in panels(board):
            for target in panel["targets"]:
                used = set(re.findall(r"\{\{(\w+)\}\}", target.get("legendFormat", "")))
                retained = {
                    one for group in re.findall(r"by \(([^)]*)\)", target["expr"]) for one in group.split(", ")
                }
                assert used <= retained, f"{name}: {panel['title']} names {used - retained}"


@pytest.mark.parametrize("panel", list(each_panel()))
def test_descriptions_come_from_the_catalog(panel: dict[str, Any]) -> None:
    metric = re.search(r"Metric: (\w+)$", panel["description"])
    if metric and metric[1] in BY_NAME:
        assert panel["description"].startswith(BY_NAME[metric[1]].help)
        assert any(metric[1] in target["expr"] for target in panel["targets"])
    assert re.search(r"Metrics?: ", panel["description"]) or panel["type"] == "table"


@pytest.mark.parametrize(
    ("title", "alerts"),
    [
        ("Fullest window", ["utilization"]),
        ("Utilization", ["utilization"]),
        ("Turns until red", ["red_imminent"]),
        ("Lowest fidelity", ["fidelity"]),
        ("Lowest compression ratio", ["compression_ratio"]),
        ("Tool results", ["tool_results"]),
        ("Eviction rate", ["eviction_rate"]),
        ("Regret", ["regret"]),
    ],
)
def test_thresholds_come_from_the_alerts(title: str, alerts: list[str]) -> None:
    by_name = next(panel for board in BOARDS.values() for panel in panels(board) if panel["title"] == title)
    drawn = [step["value"] for step in by_name["fieldConfig"]["defaults"]["thresholds"]["steps"]]

    assert drawn == [None, *(RULES_BY_NAME[name].threshold for name in alerts)]


def test_every_judged_gauge_draws_its_threshold() -> None:
    judged = {
        rule.metric
        for rule in RULES
        if rule.enabled
        and rule.kind in ("level", "sample")
        and rule.unit in ("ratio", "times", "turns", "blocks_per_turn")
    }
    for board in BOARDS.values():
        for panel in panels(board):
            metric = re.search(r"Metric: (\w+)$", panel["description"])
            if metric and metric[1] in judged and BY_NAME[metric[1]].kind == "gauge":
                assert len(panel["fieldConfig"]["defaults"]["thresholds"]["steps"]) > 1, panel["title"]


@each_board
def test_links_lead_somewhere(board: dict[str, Any]) -> None:
    links = {link["title"]: link for link in board["links"]}
    addresses = variables(board)

    assert links["Windowpane"]["tags"] == ["windowpane"]
    assert (links["Sessions in the browser"]["url"], links["Runbook"]["url"]) == (
        "${dashboard_url}",
        "${runbook_url}",
    )
    assert addresses["dashboard_url"]["query"] == "http://127.0.0.1:8501"
    assert addresses["runbook_url"]["query"].endswith("/user/runbook.html")
    assert 'id="utilization"' in runbook_html()


def test_sessions_link_to_their_page_in_the_browser() -> None:
    board = BOARDS["windowpane-session"]
    text = json.dumps(board)

    assert "${dashboard_url}/session?session=${__value.raw:percentencode}" in text
    assert "${dashboard_url}/session?session=${__field.labels.session:percentencode}" in text


def test_annotations_mark_alerts_compactions_and_new_windows() -> None:
    for name in ("windowpane-fleet", "windowpane-reduction", "windowpane-session"):
        marked = [annotation["name"] for annotation in BOARDS[name]["annotations"]["list"]]
        assert marked == ["Alerts", "Compactions", "Window rolls"]


def test_a_firing_alert_links_to_its_section_of_the_runbook() -> None:
    """The label is the anchor, so one link serves every alert, and each anchor is in the page that is served."""
    (panel,) = (one for one in panels(BOARDS["windowpane-fleet"]) if one["title"] == "Firing now")
    (links,) = (one for one in panel["fieldConfig"]["overrides"] if one["matcher"]["options"] == "alert")

    assert links["properties"][0]["value"][0]["url"] == "${runbook_url}#${__data.fields.alert}"
    assert all(f'<section id="{rule.name}">' in runbook_html() for rule in RULES)


@pytest.mark.parametrize("panel", list(each_panel()))
def test_an_empty_panel_shows_the_reason(panel: dict[str, Any]) -> None:
    no_value = panel["fieldConfig"]["defaults"]["noValue"]

    assert no_value == "0" or len(no_value.split()) >= 2
    assert no_value != "no data"


def test_a_process_is_missing_only_where_every_process_has_the_metric() -> None:
    """`windowpane serve` alone has no queue and writes no store, and is scraped nevertheless."""
    expressions = [
        target["expr"]
        for board in BOARDS.values()
        for panel in panels(board)
        if panel["fieldConfig"]["defaults"]["noValue"] == "no process scraped"
        for target in panel["targets"]
    ]

    assert expressions
    assert all("windowpane_build_info" in expression for expression in expressions)


@pytest.mark.parametrize("panel", list(each_panel()))
def test_axes_start_at_zero_and_ratios_end_at_one(panel: dict[str, Any]) -> None:
    defaults = panel["fieldConfig"]["defaults"]
    if panel["type"] == "timeseries":
        assert defaults["min"] == 0
        if defaults["unit"] == "percentunit" and panel["title"] != "Estimate error":
            assert defaults["custom"]["axisSoftMax"] == 1


def test_infinity_is_a_word_and_never_on_an_axis() -> None:
    forecasts = {"context_window_turns_until_red", "context_window_turns_until_exhausted"}
    seen = set()
    for board in BOARDS.values():
        for panel in panels(board):
            expressions = [
                target["expr"]
                for target in panel["targets"]
                if forecasts & set(re.findall(r"\w+", target["expr"]))
            ]
            if not expressions:
                continue
            seen.add(panel["type"])
            if panel["type"] == "timeseries":
                assert all(expression.endswith("< Inf") for expression in expressions), panel["title"]
            else:
                assert '"text": "flat"' in json.dumps(panel["fieldConfig"]), panel["title"]

    assert seen == {"timeseries", "stat", "table"}


@each_board
def test_panels_fill_rows_without_overlap(board: dict[str, Any]) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        position = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(position["x"], position["x"] + position["w"])
            for y in range(position["y"], position["y"] + position["h"])
        }
        assert position["x"] + position["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells
    identities = [panel["id"] for panel in board["panels"]]
    assert len(identities) == len(set(identities))
