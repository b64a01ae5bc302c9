"""The rules for Prometheus and Kubernetes: complete, current, and judged by promtool."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from windowpane.alerts.guidance import GUIDANCE
from windowpane.alerts.prometheus import (
    RECORDINGS,
    TIMED_RULES,
    RuleOptions,
    alert_name,
    kubernetes_objects,
    prometheus_rules,
    to_yaml,
)
from windowpane.alerts.rules import RULES, RULES_BY_NAME
from windowpane.alerts.runbook import runbook_html, runbook_markdown, sections
from windowpane.alerts.summary import condition_text
from windowpane.cli import main
from windowpane.metrics.catalog import BY_NAME


def alerts(document: dict) -> dict[str, dict]:
    return {rule["alert"]: rule for group in document["groups"] for rule in group["rules"] if "alert" in rule}


def test_generated_files_are_current(root: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    built = subprocess.run(
        [sys.executable, root / "grafana" / "build.py", "--check"],
        check=False,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert (built.stdout, built.returncode) == ("", 0), built.stderr or "run: python grafana/build.py"


def test_every_alert_is_generated_with_its_severity_and_links() -> None:
    options = RuleOptions(runbook_url="https://example.net/runbook", dashboard_url="https://example.net/app/")
    generated = alerts(prometheus_rules(options))

    assert list(generated) == [alert_name(rule) for rule in (*RULES, *TIMED_RULES)]
    for rule in (*RULES, *TIMED_RULES):
        alert = generated[alert_name(rule)]
        assert alert["labels"]["severity"] == rule.severity
        assert alert["annotations"]["runbook_url"] == f"https://example.net/runbook#{rule.runbook}"
        assert alert["annotations"]["link"].startswith("https://example.net/app")
        assert "//?" not in alert["annotations"]["link"]
        assert alert["annotations"]["summary"].startswith(rule.title)


def test_session_alerts_only_forward_the_engine_s_alerts() -> None:
    for rule in RULES:
        expression = alerts(prometheus_rules())[alert_name(rule)]["expr"]
        metrics = set(re.findall(r"\b(?:context_window|windowpane)_\w+", expression))
        assert metrics <= {"context_window_alerts_firing", "context_window_alert_transitions_total"}
        assert f'alert="{rule.name}"' in expression


def test_a_brief_alert_is_visible_by_its_counter() -> None:
    generated = alerts(prometheus_rules())

    assert "increase(" in generated["ContextWindowOverflow"]["expr"]
    assert "increase(" in generated["ContextWindowAuditChainBroken"]["expr"]
    assert (
        generated["ContextWindowUtilization"]["expr"] == 'context_window_alerts_firing{alert="utilization"} > 0'
    )


def test_every_metric_in_a_rule_is_in_the_catalog() -> None:
    text = to_yaml([prometheus_rules()])
    recorded = {recording.record.split(":")[1] for recording in RECORDINGS}
    names = set(re.findall(r"(?<!:)\b(?:context_window|windowpane)_[a-z_]+\b(?!:)", text))

    assert names - set(BY_NAME) - recorded == set()


def test_recordings_are_named_by_level_metric_and_operation() -> None:
    for recording in RECORDINGS:
        level, metric, operation = recording.record.split(":")
        assert (level, operation) == ("agent_model", recording.operation)
        assert metric == recording.metric.name.removesuffix("_total")
        assert recording.metric.name in recording.expression


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("utilization", "utilization at or above 90% for 3 turns"),
        ("compaction_soon", "turns until compaction at or below 14"),
        ("tool_results", "tool result ratio above 60% for 3 turns, from orange up"),
        ("overflow", "on overflow.detected"),
        ("rot_threshold", "used tokens above 128k"),
    ],
)
def test_conditions_read_as_a_line(name: str, text: str) -> None:
    assert condition_text(RULES_BY_NAME[name]) == text


def test_promtool_accepts_the_rules(grafana: Path, run) -> None:
    checked = run(
        "promtool", "check", "rules", "--lint=all", "--lint-fatal", grafana / "prometheus/rules/windowpane.yml"
    )

    assert checked.returncode == 0, checked.stderr + checked.stdout
    assert f"{len(RULES) + len(TIMED_RULES) + len(RECORDINGS)} rules found" in checked.stdout


def test_promtool_passes_every_case(grafana: Path, run) -> None:
    folder = grafana / "prometheus" / "tests"
    cases = yaml.safe_load((folder / "alerts.yml").read_text())["tests"]
    checks = [check for case in cases for check in case["alert_rule_test"]]
    firing = {check["alertname"] for check in checks if check.get("exp_alerts")}
    silent = {
        case["alert_rule_test"][0]["alertname"]
        for case in cases
        if not any(check.get("exp_alerts") for check in case["alert_rule_test"])
    }
    tested = run("promtool", "test", "rules", *(path.name for path in sorted(folder.glob("*.yml"))), cwd=folder)

    assert firing == {alert_name(rule) for rule in (*RULES, *TIMED_RULES)}
    assert silent == firing
    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_a_broken_rule_fails_its_cases(grafana: Path, tmp_path: Path, run) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "rules").mkdir()
    rules = (grafana / "prometheus/rules/windowpane.yml").read_text()
    cases = yaml.safe_load((grafana / "prometheus/tests/alerts.yml").read_text())
    regret = [case for case in cases["tests"] if case["alert_rule_test"][0]["alertname"] == "ContextWindowRegret"]
    (tmp_path / "tests/alerts.yml").write_text(yaml.safe_dump({**cases, "tests": regret}))
    right = 'context_window_alerts_firing{alert="regret"} > 0'
    assert right in rules
    for wrong in ('context_window_alerts_firing{alert="regret"} > 100', "context_window_alerts_firing >= 0"):
        (tmp_path / "rules/windowpane.yml").write_text(rules.replace(right, wrong))
        tested = run("promtool", "test", "rules", "alerts.yml", cwd=tmp_path / "tests")
        assert tested.returncode != 0
        assert "ContextWindowRegret" in tested.stdout + tested.stderr


def test_kubernetes_objects_carry_the_same_rules(tmp_path: Path, run) -> None:
    monitor, rule = kubernetes_objects(namespace="agents")
    (tmp_path / "spec.yml").write_text(to_yaml([rule["spec"]]))

    assert (monitor["kind"], rule["kind"]) == ("PodMonitor", "PrometheusRule")
    assert {monitor["metadata"]["namespace"], rule["metadata"]["namespace"]} == {"agents"}
    assert monitor["spec"]["podMetricsEndpoints"][0]["relabelings"] == [
        {"targetLabel": "job", "replacement": "windowpane"}
    ]
    assert run("promtool", "check", "rules", tmp_path / "spec.yml").returncode == 0


def test_the_command_prints_or_writes(tmp_path: Path, grafana: Path) -> None:
    runner = CliRunner()
    printed = runner.invoke(main, ["rules", "export"])
    target = tmp_path / "rules.yml"
    written = runner.invoke(main, ["rules", "export", "--output", str(target)])
    kubernetes = runner.invoke(main, ["rules", "export", "--kubernetes", "--namespace", "agents"])

    assert (printed.exit_code, written.exit_code, kubernetes.exit_code) == (0, 0, 0)
    assert target.read_text() == printed.output
    assert (grafana / "prometheus/rules/windowpane.yml").read_text().endswith(printed.output)
    assert [document["kind"] for document in yaml.safe_load_all(kubernetes.output)] == [
        "PodMonitor",
        "PrometheusRule",
    ]


def test_the_command_reports_errors_in_one_line(tmp_path: Path) -> None:
    runner = CliRunner()
    missing = runner.invoke(main, ["rules", "export", "--output", str(tmp_path / "none" / "rules.yml")])
    alone = runner.invoke(main, ["rules", "export", "--namespace", "agents"])

    assert missing.exit_code == 1
    assert "cannot write" in missing.output
    assert alone.exit_code == 2
    assert "--namespace requires --kubernetes" in alone.output


def test_the_runbook_has_a_section_for_every_alert() -> None:
    assert set(GUIDANCE) == {rule.name for rule in (*RULES, *TIMED_RULES)}
    for section in sections():
        assert runbook_markdown().count(f'<a id="{section.anchor}"></a>') == 1
        assert runbook_html().count(f'<section id="{section.anchor}">') == 1
        guidance = section.guidance
        assert all([guidance.means, guidance.matters, guidance.see, *guidance.steps])


def test_the_runbook_page_is_escaped_and_alone() -> None:
    page = runbook_html()

    assert "&gt; 0" in page
    assert not re.search(r"<script|src=|url\(|https?://", page)
