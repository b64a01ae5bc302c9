"""Unit tests for promtool: every alert fires when it should, and only then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from windowpane.alerts.prometheus import (
    RECORDINGS,
    TIMED_RULES,
    Recording,
    TimedRule,
    alert_name,
    is_brief,
    prometheus_rules,
)
from windowpane.alerts.rules import RULES, Rule
from windowpane.metrics import catalog
from windowpane.metrics.labels import LABELS

Document = dict[str, Any]

RULE_FILES = ["../rules/windowpane.yml"]
EXTERNAL_URL = "http://prometheus:9090"
AGENT = {"agent": "reviewer", "model": "gpt-5", "job": "windowpane", "instance": "agent:9464"}
TARGET = {"job": "windowpane", "instance": "agent:9464"}


@dataclass(frozen=True)
class Case:
    """Input series in promtool's notation, and the minutes at which the alert is silent or fires."""

    name: str
    series: dict[str, str]
    silent_at: tuple[int, ...]
    fires_at: tuple[int, ...] = ()
    labels: dict[str, str] | None = None
    value: str = "1"


def alert_tests() -> Document:
    """Return the test file of the alerts: each has a case that fires and resolves, and one that is silent."""
    return {
        "rule_files": RULE_FILES,
        "evaluation_interval": "1m",
        "tests": [
            *(_test(rule, case) for rule in RULES for case in _session_cases(rule)),
            *(_test(rule, case) for rule in TIMED_RULES for case in TIMED_CASES[rule.name]),
        ],
    }


def recording_tests() -> Document:
    """Return the test file of the recording rules: each over two processes, and over none."""
    return {
        "rule_files": RULE_FILES,
        "evaluation_interval": "1m",
        "tests": [_recording_test(recording) for recording in RECORDINGS],
    }


def series(name: str, labels: dict[str, str]) -> str:
    """Return a series in PromQL notation."""
    inside = ",".join(f'{label}="{value}"' for label, value in labels.items())
    return f"{name}{{{inside}}}"


def _session_cases(rule: Rule) -> list[Case]:
    labels = {**AGENT, "alert": rule.name, "severity": rule.severity, "nature": rule.nature}
    other = next(one for one in RULES if one.name != rule.name and one.severity == rule.severity)
    neighbour = {**AGENT, "alert": other.name, "severity": other.severity}
    firing = catalog.ALERTS_FIRING.name
    cases = [
        Case(
            f"{rule.name}: fires while the engine reports it in two sessions, and resolves",
            {series(firing, labels): "0x4 2x5 0x10"},
            silent_at=(2, 12), fires_at=(6,), labels=labels, value="2",
        ),
        Case(
            f"{rule.name}: another alert and a metric without value do not concern it",
            {series(firing, neighbour): "1x20", series(firing, labels): "0x20"},
            silent_at=(5, 10, 20),
        ),
    ]  # fmt: skip
    if is_brief(rule):
        fired = series(catalog.ALERT_TRANSITIONS.name, {**labels, "state": "firing"})
        resolved = series(catalog.ALERT_TRANSITIONS.name, {**labels, "state": "resolved"})
        cases.append(
            Case(
                f"{rule.name}: fires when it starts and ends between two scrapes",
                {series(firing, labels): "0x20", fired: "3x4 4x16", resolved: "3x4 4x16"},
                silent_at=(3, 12), fires_at=(5,), labels=labels,
            )
        )  # fmt: skip
    return cases


DROPPED = {**TARGET, "sink": "store", "reason": "error"}
CHANNEL = {**TARGET, "channel": "json"}


def _notified(outcome: str) -> str:
    return series(catalog.NOTIFICATIONS.name, {**CHANNEL, "outcome": outcome})


TIMED_CASES: dict[str, list[Case]] = {
    "target_absent": [
        Case(
            "target_absent: fires when targets of another job are all there is",
            {series("up", {**TARGET, "job": "node"}): "1x30"},
            silent_at=(3,), fires_at=(6,), labels={"job": "windowpane"},
        ),
        Case(
            "target_absent: a target that is down is not absent",
            {series("up", TARGET): "0x30"},
            silent_at=(20,),
        ),
    ],
    "target_down": [
        Case(
            "target_down: fires after two minutes, and resolves",
            {series("up", TARGET): "1x4 0x6 1x10"},
            silent_at=(3, 6, 14), fires_at=(8,), labels=TARGET,
        ),
        Case(
            "target_down: one missed scrape and other jobs do not concern it",
            {series("up", TARGET): "1x4 0 1x20", series("up", {**TARGET, "job": "node"}): "0x30"},
            silent_at=(5, 10, 20),
        ),
    ],
    "events_old": [
        Case(
            "events_old: fires when nothing was heard for more than an hour",
            {series(catalog.LAST_EVENT_AGE.name, TARGET): "3600+60x20 10x10"},
            silent_at=(0, 3, 25), fires_at=(10,), labels=TARGET,
        ),
        Case(
            "events_old: silent below an hour",
            {series(catalog.LAST_EVENT_AGE.name, TARGET): "0+60x59"},
            silent_at=(10, 59),
        ),
    ],
    "events_dropped": [
        Case(
            "events_dropped: fires when events were dropped, until they have not been for a while",
            {series(catalog.DROPPED_EVENTS.name, DROPPED): "0x4 7x40"},
            silent_at=(3, 30), fires_at=(6,), labels=DROPPED,
        ),
        Case(
            "events_dropped: fires for a series that starts above zero",
            {series(catalog.DROPPED_EVENTS.name, DROPPED): "_x4 7x40"},
            silent_at=(3, 40), fires_at=(6,), labels=DROPPED,
        ),
        Case(
            "events_dropped: an old drop does not fire again",
            {series(catalog.DROPPED_EVENTS.name, DROPPED): "7x60"},
            silent_at=(20, 60),
        ),
    ],
    "store_unavailable": [
        Case(
            "store_unavailable: fires when the store takes no events for a minute, and resolves",
            {series(catalog.STORE_AVAILABLE.name, TARGET): "1x4 0x6 1x10"},
            silent_at=(3, 5, 13), fires_at=(8,), labels=TARGET,
        ),
        Case(
            "store_unavailable: silent for a moment without the store",
            {series(catalog.STORE_AVAILABLE.name, TARGET): "1x4 0 1x20"},
            silent_at=(5, 6, 20),
        ),
    ],
    "notifications_failing": [
        Case(
            "notifications_failing: fires when a channel is tried again and again in vain",
            {_notified("retried"): "_x19 1x3 2x3 3x40", _notified("delivered"): "5x60"},
            silent_at=(10, 23, 50), fires_at=(30,), labels=CHANNEL,
        ),
        Case(
            "notifications_failing: a failure beside deliveries does not fire",
            {_notified("failed"): "0x4 1x40", _notified("delivered"): "0+1x40"},
            silent_at=(10, 15, 40),
        ),
        Case(
            "notifications_failing: fires when a message was abandoned",
            {_notified("failed"): "0x4 1x40"},
            silent_at=(3, 30), fires_at=(12,), labels=CHANNEL,
        ),
    ],
}  # fmt: skip


def _test(rule: Rule | TimedRule, case: Case) -> Document:
    name = alert_name(rule)
    checks: list[tuple[int, Document]] = [
        (minute, {"eval_time": f"{minute}m", "alertname": name}) for minute in case.silent_at
    ]
    for minute in case.fires_at:
        labels = {**(case.labels or {}), "severity": rule.severity, "alert": rule.name}
        expected = {"exp_labels": labels, "exp_annotations": _annotations(name, labels, case, minute)}
        checks.append((minute, {"eval_time": f"{minute}m", "alertname": name, "exp_alerts": [expected]}))
    return {
        "name": case.name,
        "interval": "1m",
        "external_url": EXTERNAL_URL,
        "input_series": [{"series": one, "values": values} for one, values in case.series.items()],
        "alert_rule_test": [check for _, check in sorted(checks, key=lambda pair: pair[0])],
    }


def _annotations(name: str, labels: dict[str, str], case: Case, minute: int) -> dict[str, str]:
    """Return the alert's annotations with Prometheus's templates filled in."""
    filled = {
        "{{ $externalURL }}": EXTERNAL_URL,
        "{{ $value }}": case.value,
        "{{ $value | humanizeDuration }}": f"1h {minute}m 0s",
    }
    for label, value in labels.items():
        filled[f"{{{{ $labels.{label} }}}}"] = value
        filled[f"{{{{ $labels.{label} | urlquery }}}}"] = value
    texts: dict[str, str] = _alerts()[name]["annotations"]
    for template, value in filled.items():
        texts = {key: text.replace(template, value) for key, text in texts.items()}
    return texts


def _alerts() -> dict[str, Document]:
    groups = prometheus_rules()["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"] if "alert" in rule}


def _recording_test(recording: Recording) -> Document:
    metric = recording.metric
    own = {label: (*LABELS[label].values, "hybrid")[0] for label in metric.own_labels}
    processes = [{**AGENT, **own}, {**AGENT, **own, "instance": "other:9464"}]
    retained = {"agent": AGENT["agent"], "model": AGENT["model"], **own}
    if recording.operation == "rate5m":
        values, expected = ("0+60x20", "0+120x20"), 3
    else:
        values, expected = ("1x20", "3x20"), {"max": 3, "min": 1, "sum": 4}[recording.operation]
    return {
        "name": f"{recording.record}: over two processes, and nothing where there is none",
        "interval": "1m",
        "input_series": [
            {"series": series(metric.name, process), "values": value}
            for process, value in zip(processes, values, strict=True)
        ],
        "promql_expr_test": [
            {
                "expr": recording.record,
                "eval_time": "10m",
                "exp_samples": [{"labels": series(recording.record, retained), "value": expected}],
            },
            {"expr": f'{recording.record}{{agent="nobody"}}', "eval_time": "10m", "exp_samples": []},
        ],
    }
