"""Prometheus rules and Kubernetes objects, generated from the alert definitions and the metric catalog.

The engine inside each process evaluates conditions over turns; a generated alert fires where the engine reports a
firing. Only conditions on the course of time (`TIMED_RULES`) are evaluated by Prometheus: a process that has
stopped cannot report that itself. Everything here is a pure function from options to documents.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import yaml

from windowpane.alerts.rules import RULES, Rule
from windowpane.alerts.summary import condition_text
from windowpane.core.vocabulary import Severity
from windowpane.metrics import catalog
from windowpane.metrics.catalog import IDENTITY, Metric

Document = dict[str, Any]

BRIEF_WINDOW: Final = "2m"
"""Time that a brief alert is shown after it fired, by its counter."""
RATE_WINDOW: Final = "5m"
DEFAULT_RUNBOOK: Final = "{{ $externalURL }}/user/runbook.html"
"""Prometheus serves the folder given as --web.user-assets under /user."""
DEFAULT_DASHBOARD: Final = "http://127.0.0.1:8501"

JOB: Final = "windowpane"
TOKEN_SECRET: Final = "windowpane"  # noqa: S105  # the name of a Kubernetes object
"""The `job` label of all targets of Windowpane."""
OLD_EVENT_SECONDS: Final = 3_600
FAILURE_WINDOW: Final = "15m"
"""PromQL range in which failures and drops are counted."""

Operation = Literal["max", "min", "sum", "rate5m"]


@dataclass(frozen=True, slots=True)
class TimedRule:
    """One alert on the course of time: its condition in PromQL, and its summary and description."""

    name: str
    title: str
    severity: Severity
    expression: str
    hold: str
    """Time that the condition must hold, as Prometheus writes durations."""
    summary: str
    """One line about a firing, with Prometheus's templates."""
    todo: str

    @property
    def runbook(self) -> str:
        """Anchor of the alert's section in the runbook: the name, so that a label is enough for a link."""
        return self.name


def _grew(metric: str, *, matching: str = "") -> str:
    """Return an expression for a counter that grew in the window, also where its series starts above zero."""
    series = f"{metric}{{{matching}}}" if matching else metric
    return f"increase({series}[{FAILURE_WINDOW}]) > 0 or ({series} > 0 unless {series} offset {FAILURE_WINDOW})"


def _failing() -> str:
    """Return an expression for channels with failures and no delivery in the window."""
    metric = catalog.NOTIFICATIONS.name
    failed = _grew(metric, matching='outcome=~"failed|retried"')
    delivered = _grew(metric, matching='outcome="delivered"')
    return f"max without (outcome) ({failed})\nunless max without (outcome) ({delivered})"


TIMED_RULES: Final[tuple[TimedRule, ...]] = (
    TimedRule(
        "target_absent", "Nothing is scraped", "warning",
        f'absent(up{{job="{JOB}"}})', "5m",
        f'no target with job="{JOB}" exists',
        "Check that an agent or `windowpane serve` runs, and what the scrape configuration selects.",
    ),
    TimedRule(
        "target_down", "Exporter does not answer", "critical",
        f'up{{job="{JOB}"}} == 0', "2m",
        "{{ $labels.instance }} has not answered a scrape for two minutes",
        "Check that the process runs, and request its /healthz.",
    ),
    TimedRule(
        "events_old", "No events", "info",
        f"{catalog.LAST_EVENT_AGE.name} > {OLD_EVENT_SECONDS}", "5m",
        "the newest event at {{ $labels.instance }} is {{ $value | humanizeDuration }} old",
        "If agents should be at work, check that they still report; if idle hours are normal, silence the alert.",
    ),
    TimedRule(
        "events_dropped", "Events dropped", "warning",
        _grew(catalog.DROPPED_EVENTS.name), "0m",
        "{{ $labels.sink }} did not take events at {{ $labels.instance }} (reason: {{ $labels.reason }})",
        "Read the log of the process: a full disk, a locked store or a slow queue shows there.",
    ),
    TimedRule(
        "store_unavailable", "Events are not stored", "critical",
        f"{catalog.STORE_AVAILABLE.name} == 0", "1m",
        "the store at {{ $labels.instance }} has taken no events for a minute",
        "Events wait in memory, and in a file next to the store when the process ends. Read `/healthz` or the "
        "log for the reason: a full disk, a lock that another program holds, permissions, a damaged file.",
    ),
    TimedRule(
        "notifications_failing", "Notifications fail", "critical",
        _failing(), "5m",
        "all messages by {{ $labels.channel }} fail at {{ $labels.instance }}",
        "Test the channel with `windowpane alerts test URL`; messages wait in the outbox and are retried.",
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RuleOptions:
    """Targets of the links in generated alerts; both may hold Prometheus's templates."""

    runbook_url: str = DEFAULT_RUNBOOK
    dashboard_url: str = DEFAULT_DASHBOARD


@dataclass(frozen=True, slots=True)
class Recording:
    """A recording rule: one metric over all processes, by agent and model."""

    metric: Metric
    operation: Operation

    @property
    def record(self) -> str:
        """Name of the recorded series: `level:metric:operation`."""
        return f"agent_model:{self.metric.name.removesuffix('_total')}:{self.operation}"

    @property
    def expression(self) -> str:
        """The recorded PromQL expression."""
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
"""For queries over long ranges and for other dashboards; the packaged dashboards query the metrics themselves."""


def alert_name(rule: Rule | TimedRule) -> str:
    """Return the name of the generated alert: `ContextWindowRedSoon`, `WindowpaneTargetDown`."""
    prefix = "ContextWindow" if isinstance(rule, Rule) else "Windowpane"
    return prefix + "".join(part.capitalize() for part in rule.name.split("_"))


def is_brief(rule: Rule) -> bool:
    """Return whether a scrape may miss the firing: it lasts less than a scrape interval, or its session ends."""
    return rule.kind in ("occurrence", "outside")


def firing_expression(rule: Rule) -> str:
    """Return the PromQL expression of the generated alert of *rule*."""
    matching = f'alert="{rule.name}"'
    expression = f"{catalog.ALERTS_FIRING.name}{{{matching}}} > 0"
    if not is_brief(rule):
        return expression
    fired = f'{catalog.ALERT_TRANSITIONS.name}{{{matching},state="firing"}}'
    return f"{expression}\nor sum without (state) (increase({fired}[{BRIEF_WINDOW}])) > 0"


def prometheus_rules(options: RuleOptions | None = None) -> Document:
    """Return the rule file: recording rules, the engine's alerts, and the timed alerts."""
    options = options or RuleOptions()
    return {
        "groups": [
            {
                "name": "windowpane-recordings",
                "rules": [{"record": recording.record, "expr": recording.expression} for recording in RECORDINGS],
            },
            {"name": "windowpane-sessions", "rules": [_session_alert(rule, options) for rule in RULES]},
            {"name": "windowpane-exporter", "rules": [_timed_alert(rule, options) for rule in TIMED_RULES]},
        ]
    }


def _session_alert(rule: Rule, options: RuleOptions) -> Document:
    identity = "agent {{ $labels.agent }}, model {{ $labels.model }}"
    sessions = "" if is_brief(rule) else "; live sessions: {{ $value }}"
    page = "" if rule.kind == "outside" else "?agent={{ $labels.agent | urlquery }}"
    return {
        "alert": alert_name(rule),
        "expr": firing_expression(rule),
        "labels": {"severity": rule.severity, "nature": rule.nature},
        "annotations": {
            "summary": f"{rule.title}: {identity}",
            "description": f"Evaluated at each turn: {condition_text(rule)}{sessions}. {rule.todo}",
            "runbook_url": f"{options.runbook_url}#{rule.runbook}",
            "link": f"{options.dashboard_url.rstrip('/')}/{page}",
        },
    }


def _timed_alert(rule: TimedRule, options: RuleOptions) -> Document:
    return {
        "alert": alert_name(rule),
        "expr": rule.expression,
        **({} if rule.hold == "0m" else {"for": rule.hold}),
        "labels": {"severity": rule.severity, "alert": rule.name},
        "annotations": {
            "summary": f"{rule.title}: {rule.summary}",
            "description": rule.todo,
            "runbook_url": f"{options.runbook_url}#{rule.runbook}",
            "link": options.dashboard_url.rstrip("/"),
        },
    }


def kubernetes_objects(
    options: RuleOptions | None = None, *, namespace: str | None = None, token_secret: str = TOKEN_SECRET
) -> list[Document]:
    """Return a PodMonitor and a PrometheusRule for the Prometheus operator.

    Pods are scraped with the bearer token in the key `token` of the Secret *token_secret*.
    """
    metadata: Document = {"name": "windowpane", "labels": {"app.kubernetes.io/name": "windowpane"}}
    if namespace is not None:
        metadata["namespace"] = namespace
    monitor = {
        "selector": {"matchLabels": {"windowpane-metrics": "true"}},
        "podMetricsEndpoints": [
            {
                "port": "metrics",
                "path": "/metrics",
                "authorization": {"credentials": {"name": token_secret, "key": "token"}},
                "relabelings": [{"targetLabel": "job", "replacement": JOB}],
            }
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
    """Return the documents as one YAML text, in their order."""
    return yaml.dump_all(
        list(documents), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=114, default_flow_style=False
    )


class _Dumper(yaml.SafeDumper):
    """Writes strings of several lines as blocks, and every object in full instead of as an alias."""

    def ignore_aliases(self, data: Any) -> bool:
        return data is not None


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)
