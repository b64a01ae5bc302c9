"""Prometheus rules and Kubernetes objects, generated from the alert definitions and the metric catalog.

The engine inside each process is the only judge of conditions over turns; a generated alert fires where the
engine says that it fires. What only the course of time shows comes from `windowpane.alerts.timed`. Everything
here is a pure function from options to documents.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import yaml

from windowpane.alerts.rules import RULES, Rule
from windowpane.alerts.timed import JOB, TIMED_RULES, TimedRule
from windowpane.alerts.wording import quantity
from windowpane.metrics import catalog
from windowpane.metrics.metric import IDENTITY, Metric

Document = dict[str, Any]

BRIEF_WINDOW: Final = "2m"
"""How long something brief shows after it fired; its counter tells."""
RATE_WINDOW: Final = "5m"
DEFAULT_RUNBOOK: Final = "{{ $externalURL }}/user/runbook.html"
"""Prometheus serves the folder given as --web.user-assets under /user."""
DEFAULT_DASHBOARD: Final = "http://127.0.0.1:8501"

Operation = Literal["max", "min", "sum", "rate5m"]

_COMPARISONS: Final = {
    "at_least": "at or above",
    "above": "above",
    "at_most": "at or below",
    "below": "below",
}


@dataclass(frozen=True, slots=True)
class RuleOptions:
    """Where the links of the generated alerts lead; both may hold Prometheus's templates."""

    runbook_url: str = DEFAULT_RUNBOOK
    dashboard_url: str = DEFAULT_DASHBOARD


@dataclass(frozen=True, slots=True)
class Recording:
    """One metric over all processes, by agent and model."""

    metric: Metric
    operation: Operation

    @property
    def record(self) -> str:
        """The series' name: `level:metric:operation`."""
        return f"agent_model:{self.metric.name.removesuffix('_total')}:{self.operation}"

    @property
    def expression(self) -> str:
        """What is recorded."""
        by = ", ".join((*IDENTITY, *self.metric.own_labels))
        if self.operation == "rate5m":
            return f"sum by ({by}) (rate({self.metric.name}[{RATE_WINDOW}]))"
        return f"{self.operation} by ({by}) ({self.metric.name})"


RECORDINGS: Final = (
    Recording(catalog.SESSIONS, "sum"),
    Recording(catalog.UTILIZATION, "max"),
    Recording(catalog.USED_TOKENS, "sum"),
    Recording(catalog.LIMIT_TOKENS, "sum"),
    Recording(catalog.TURNS_UNTIL_RED, "min"),
    Recording(catalog.FIDELITY, "min"),
    Recording(catalog.TURNS, "rate5m"),
    Recording(catalog.ADDED_TOKENS, "rate5m"),
    Recording(catalog.CARRIED_TOKENS, "rate5m"),
    Recording(catalog.EVICTED_TOKENS, "rate5m"),
    Recording(catalog.COMPRESSIONS, "rate5m"),
    Recording(catalog.REGRETS, "rate5m"),
    Recording(catalog.MODEL_TOKENS, "rate5m"),
    Recording(catalog.COST, "rate5m"),
)
"""What long ranges and other teams' dashboards ask for; ours query the metrics themselves."""


def condition(rule: Rule) -> str:
    """What is judged, as a line of text: `utilization at or above 90% for 3 turns`."""
    judged = rule.judges.replace("_", " ")
    if rule.threshold is None or rule.comparison == "occurs":
        return f"on {rule.judges}"
    text = f"{judged} {_COMPARISONS[rule.comparison]} {_threshold(rule, rule.threshold)}"
    if rule.sustained_turns > 1:
        text += f" for {rule.sustained_turns} turns"
    return text if rule.from_zone is None else f"{text}, from {rule.from_zone} up"


def _threshold(rule: Rule, threshold: float) -> str:
    return f"{threshold:g}" if rule.unit == "turns" else quantity(threshold, rule.unit)


def alert_name(rule: Rule | TimedRule) -> str:
    """Name of the generated alert: `ContextWindowRedSoon`, `WindowpaneTargetDown`."""
    head = "ContextWindow" if isinstance(rule, Rule) else "Windowpane"
    return head + "".join(part.capitalize() for part in rule.name.split("_"))


def brief(rule: Rule) -> bool:
    """Whether the engine's gauge may never show it: it passes between two scrapes, or its session has ended."""
    return rule.kind in ("occurrence", "outside")


def firing(rule: Rule) -> str:
    """The condition under which the generated alert of *rule* fires."""
    matching = f'alert="{rule.name}"'
    expression = f"{catalog.ALERTS_FIRING.name}{{{matching}}} > 0"
    if not brief(rule):
        return expression
    fired = f'{catalog.ALERT_TRANSITIONS.name}{{{matching},state="firing"}}'
    return f"{expression}\nor sum without (state) (increase({fired}[{BRIEF_WINDOW}])) > 0"


def prometheus_rules(options: RuleOptions | None = None) -> Document:
    """The rule file: recordings, the engine's alerts, the alerts on time."""
    chosen = options or RuleOptions()
    return {
        "groups": [
            {
                "name": "windowpane-recordings",
                "rules": [{"record": one.record, "expr": one.expression} for one in RECORDINGS],
            },
            {"name": "windowpane-sessions", "rules": [_session_alert(rule, chosen) for rule in RULES]},
            {"name": "windowpane-exporter", "rules": [_timed_alert(rule, chosen) for rule in TIMED_RULES]},
        ]
    }


def _session_alert(rule: Rule, options: RuleOptions) -> Document:
    where = "agent {{ $labels.agent }}, model {{ $labels.model }}"
    sessions = "" if brief(rule) else "; live sessions: {{ $value }}"
    return {
        "alert": alert_name(rule),
        "expr": firing(rule),
        "labels": {"severity": rule.severity},
        "annotations": {
            "summary": f"{rule.title}: {where}",
            "description": f"Judged turn by turn: {condition(rule)}{sessions}. {rule.todo}",
            "runbook_url": f"{options.runbook_url}#{rule.runbook}",
            "link": f"{options.dashboard_url.rstrip('/')}/?agent={{{{ $labels.agent | urlquery }}}}",
        },
    }


def _timed_alert(rule: TimedRule, options: RuleOptions) -> Document:
    return {
        "alert": alert_name(rule),
        "expr": rule.expression,
        **({} if rule.hold == "0m" else {"for": rule.hold}),
        "labels": {"severity": rule.severity, "alert": rule.name},
        "annotations": {
            "summary": f"{rule.title}: {rule.what}",
            "description": rule.todo,
            "runbook_url": f"{options.runbook_url}#{rule.runbook}",
            "link": options.dashboard_url.rstrip("/"),
        },
    }


def kubernetes_objects(options: RuleOptions | None = None, *, namespace: str | None = None) -> list[Document]:
    """A PodMonitor and a PrometheusRule for the Prometheus operator."""
    metadata: Document = {"name": "windowpane", "labels": {"app.kubernetes.io/name": "windowpane"}}
    if namespace is not None:
        metadata["namespace"] = namespace
    monitor = {
        "selector": {"matchLabels": {"windowpane-metrics": "true"}},
        "podMetricsEndpoints": [
            {"port": "metrics", "path": "/metrics", "relabelings": [{"targetLabel": "job", "replacement": JOB}]}
        ],
    }
    return [
        {
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "PodMonitor",
            "metadata": metadata,
            "spec": monitor,
        },
        {
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "PrometheusRule",
            "metadata": metadata,
            "spec": prometheus_rules(options),
        },
    ]


def to_yaml(documents: Iterable[Mapping[str, Any]]) -> str:
    """Documents as YAML, in the order given, several separated."""
    return yaml.dump_all(
        list(documents), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=114, default_flow_style=False
    )


class _Dumper(yaml.SafeDumper):
    """Writes what spans lines as a block, and every object in full."""

    def ignore_aliases(self, data: Any) -> bool:
        return data is not None


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)
