"""The keys of the configuration, with their defaults and bounds: one section per subsystem.

A key that is not set has its default; an unknown key or a value out of range is an error. `load_config` combines
the file, the environment and arguments.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import AliasChoices, BeforeValidator, Field

from windowpane.config.dashboard import DashboardConfig
from windowpane.config.outputs import (
    ChannelConfig,
    ClickHouseConfig,
    IngestConfig,
    NotifyConfig,
    OtlpConfig,
    ServerConfig,
    StoreConfig,
)
from windowpane.config.projects import ProjectConfig, ProjectRetention, check_projects
from windowpane.config.section import (
    NUMBER,
    Count,
    HttpUrl,
    Positive,
    Ratio,
    Section,
    Share,
    Tokens,
    checked_by,
)
from windowpane.core.choices import (
    HYBRID,
    JUDGE_CAPACITY,
    MAXIMUM_QUESTIONS,
    MINIMUM_REPLICATES,
    POLICY_NAMES,
    PRESET_NAMES,
    AlertSettings,
    check_alerts,
    check_choice,
)
from windowpane.core.limits import DEFAULT_BUDGET, DEFAULT_LIFETIMES, PROFILES, Thresholds, TrackerSettings
from windowpane.core.names import check_project
from windowpane.core.vocabulary import ContentType

OUTPUT_SHARE: Final = 0.05
WEIGHT_TOLERANCE: Final = 1e-6
HealthMetric = Literal[
    "utilization", "eviction_rate", "compression_ratio", "burn_rate", "fidelity_score", "tool_result_bloat"
]
HEALTH_METRICS: Final[dict[HealthMetric, str]] = {
    "utilization": "utilization",
    "eviction_rate": "eviction_rate",
    "compression_ratio": "compression_ratio",
    "burn_rate": "burn_rate_spike",
    "fidelity_score": "fidelity",
    "tool_result_bloat": "tool_results",
}
"""The alert that evaluates each health metric."""
Profile = Literal["default", "code_review", "research", "customer_support"]
CascadeStrategy = Literal[
    "tool_result_summarization", "progressive_summarization", "compaction", "subagent_delegation"
]
"""Compression strategies in the order of their cost."""
STRATEGY_ALIASES: Final[dict[object, CascadeStrategy]] = {
    "progressive": "progressive_summarization",
    "conversation_compaction": "compaction",
    "sub_agent": "subagent_delegation",
}
"""Names of strategies in the article that the engine follows."""


def _strategy(given: object) -> object:
    return STRATEGY_ALIASES.get(given, given) if isinstance(given, str) else given


class ZoneThresholds(Section):
    """Lower bounds of the zones, as shares of the limit; all three or none (then by the window's size)."""

    yellow: Share
    orange: Share
    red: Share

    def _check(self) -> None:
        if not self.yellow < self.orange < self.red:
            raise ValueError(f"thresholds must rise: yellow {self.yellow}, orange {self.orange}, red {self.red}")


class Pressure(Section):
    """Pressure zones and velocity."""

    thresholds: ZoneThresholds | None = None
    velocity_window: Count = 5


class EvictionWeights(Section):
    """Weights of the eviction score's terms; they sum to 1."""

    recency: Ratio = 0.30
    priority: Ratio = 0.25
    type_ttl: Ratio = 0.20
    reference_frequency: Ratio = Field(
        default=0.15, validation_alias=AliasChoices("reference_frequency", "reference_freq")
    )
    semantic_duplication: Ratio = 0.10

    def _check(self) -> None:
        total = sum(value for _, value in self)
        if abs(total - 1) > WEIGHT_TOLERANCE:
            raise ValueError(f"weights must sum to 1, these sum to {total:g}")


class Eviction(Section):
    """The order of eviction."""

    policy: Annotated[str, checked_by(partial(check_choice, "eviction.policy", choices=POLICY_NAMES))] = "hybrid"
    weights: EvictionWeights = EvictionWeights()
    type_ttl: dict[ContentType, Count] = Field(default_factory=DEFAULT_LIFETIMES.copy)
    """Turns after which content is stale; types that are not listed keep their default."""
    protected_types: tuple[ContentType, ...] = ("system_prompt",)

    @classmethod
    def completed(cls, given: dict[Any, Any]) -> dict[Any, Any]:
        """Add the lifetimes of the types that are not listed."""
        lifetimes = given.get("type_ttl")
        return {**given, "type_ttl": DEFAULT_LIFETIMES | lifetimes} if isinstance(lifetimes, dict) else given

    def _check(self) -> None:
        if self.policy != HYBRID and "weights" in self.model_fields_set:
            raise ValueError(f"weights apply to the policy {HYBRID!r}, and the policy is {self.policy!r}")


class Compression(Section):
    """Thresholds and strategies that replace content by a shorter form."""

    summarization_threshold_tokens: Tokens = 500
    compaction_utilization_threshold: Share = 0.90
    cascade: dict[Share, Annotated[CascadeStrategy, BeforeValidator(_strategy)]] = Field(default_factory=dict)
    """Utilization from which each strategy is used, low-cost ones first; empty for the engine's own order. A
    strategy that is not listed is not used."""
    background: bool = False
    """Compact the conversation after a turn, off the agent's path."""
    notes_file: Path | None = None

    def _check(self) -> None:
        order: tuple[CascadeStrategy, ...] = get_args(CascadeStrategy)
        strategies = [self.cascade[threshold] for threshold in sorted(self.cascade)]
        if len(set(strategies)) < len(strategies):
            raise ValueError(f"cascade names a strategy twice: {', '.join(strategies)}")
        if strategies != sorted(strategies, key=order.index):
            raise ValueError(f"cascade must rise with cost, {' < '.join(order)}; it is {' < '.join(strategies)}")


class Allocations(Section):
    """Shares of the limit that components may use; the remainder is the safety margin."""

    system_prompt: Ratio = DEFAULT_BUDGET["system_prompt"]
    tool_definitions: Ratio = DEFAULT_BUDGET["tool_definitions"]
    message_history: Ratio = DEFAULT_BUDGET["message_history"]
    tool_results: Ratio = DEFAULT_BUDGET["tool_results"]
    memory_injection: Ratio = DEFAULT_BUDGET["memory_injection"]
    output_reserved: Ratio = OUTPUT_SHARE

    def _check(self) -> None:
        total = sum(value for _, value in self)
        if total > 1 + WEIGHT_TOLERANCE:
            raise ValueError(f"allocations must not exceed 1, these sum to {total:g}")


class Budget(Section):
    """The division of the window among components: a profile, and shares that differ from it."""

    profile: Profile = "default"
    allocations: Allocations = Allocations()
    soft_limit_pct: Share = 0.80
    enforce: Literal["global", "component"] = "global"
    """`global` enforces the window as a whole, `component` the budget of each component."""

    @classmethod
    def completed(cls, given: dict[Any, Any]) -> dict[Any, Any]:
        """Fill in the shares of the profile; those of `default` are the field defaults, or a preset's."""
        profile, shares = given.get("profile", "default"), given.get("allocations") or {}
        if profile == "default" or profile not in get_args(Profile) or not isinstance(shares, dict):
            return given
        return {**given, "allocations": {**PROFILES[profile], **shares}}


class CrossWindow(Section):
    """Checkpoints and progress files that outlive a window."""

    state_file: Path | None = None
    progress_file: Path | None = None
    auto_save_threshold: Share = 0.85

    def _check(self) -> None:
        progress = self.progress_file or (self.state_file and self.state_file.with_suffix(".md"))
        if self.state_file is not None and self.state_file == progress:
            raise ValueError(f"state_file and progress_file are both {str(progress)!r}: one overwrites the other")


class AlertThresholds(Section):
    """Thresholds of the first six alerts, of any other by its name, and which alerts are evaluated."""

    utilization_critical: Share | None = None
    """None takes the red threshold of each window."""
    eviction_rate_warning: Positive | None = None
    fidelity_warning: Share | None = None
    compression_ratio_min: Positive | None = None
    tool_bloat_warning: Share | None = None
    thresholds: dict[str, Annotated[float, NUMBER]] = Field(default_factory=dict)
    enable: tuple[str, ...] = ()
    disable: tuple[str, ...] = ()

    def _check(self) -> None:
        check_alerts(self.thresholds, names=(*self.enable, *self.disable))


def _function_name(model: str) -> None:
    module, colon, function = model.rpartition(":")
    if not (module and colon and function):
        raise ValueError(f"{model!r} is not a function; expected module:function or file.py:function")


class JudgeConfig(Section):
    """A model that judges a sample of the compressions; disabled where none is set."""

    model: Annotated[str, checked_by(_function_name)] | None = None
    """A callable `(system, user) -> text`, sync or async, as `module:function` or `file.py:function`; it is
    imported when the first manager is made."""
    sample_rate: Ratio = 0.1
    """Share of the compressions that are judged."""
    max_calls: Count | None = None
    """Maximum calls of the model per process, over all its sessions; None for no limit."""
    questions: Annotated[int, Field(ge=1, le=MAXIMUM_QUESTIONS), NUMBER] = MAXIMUM_QUESTIONS
    """Maximum questions per compression."""
    writes_questions: bool = False
    """Let the model write the questions; otherwise they are made from facts."""
    replicates: Annotated[int, Field(ge=MINIMUM_REPLICATES), NUMBER] = MINIMUM_REPLICATES
    """Number of times each question is put to the model."""
    capacity: Annotated[int, Field(ge=1, le=1_000), NUMBER] = JUDGE_CAPACITY
    """Compressions that wait for the judge at most; any more are not judged."""
    timeout_seconds: Annotated[float, Field(gt=0, le=3_600), NUMBER] = 60.0
    """Timeout of one call."""


class CostBudget(Section):
    """A sum that sessions may cost on a day of local time."""

    dollars: Positive
    agent: str = ""
    """Name of the agent whose sessions and sub-agents count; empty for all."""
    project: str = ""
    """Project whose sessions count; empty for all."""

    @property
    def scope(self) -> str:
        """The sessions that count: `claude-code in web`."""
        return " in ".join(filter(None, (self.agent or "all agents", self.project)))

    @property
    def name(self) -> str:
        """The budget in a sentence: `claude-code in web, $20.00 a day`."""
        return f"{self.scope}, ${self.dollars:,.2f} a day"


class HealthMonitoring(Section):
    """Alerts, and the judge of compressions."""

    metrics: tuple[HealthMetric, ...] = tuple(HEALTH_METRICS)
    """The health metrics whose alert is evaluated."""
    alerts: AlertThresholds = AlertThresholds()
    judge: JudgeConfig = JudgeConfig()


class Config(Section):
    """The whole configuration."""

    max_context_tokens: Tokens | None = None
    """Size of the window; overrides the catalog of models."""
    preset: Annotated[str, checked_by(partial(check_choice, "preset", choices=PRESET_NAMES))] | None = None
    """Another system's numbers, order and wording for every managed session; keys that are set override it."""
    pressure: Pressure = Pressure()
    eviction: Eviction = Eviction()
    compression: Compression = Compression()
    budget: Budget = Budget()
    cross_window: CrossWindow = CrossWindow()
    health_monitoring: HealthMonitoring = HealthMonitoring()
    store: StoreConfig = Field(default_factory=StoreConfig)
    ingest: IngestConfig = IngestConfig()
    server: ServerConfig = ServerConfig()
    notify: NotifyConfig = NotifyConfig()
    otlp: OtlpConfig = OtlpConfig()
    clickhouse: ClickHouseConfig = ClickHouseConfig()
    public_url: HttpUrl | None = None
    """Address of the dashboard, for links in messages."""
    project: Annotated[str, checked_by(partial(check_project, "project"))] = ""
    """The project that this process's sessions belong to; empty for none."""
    projects: Annotated[dict[str, ProjectConfig], checked_by(check_projects)] = Field(default_factory=dict)
    """Projects by name, with their tokens, retention and receivers of alerts."""
    dashboard: DashboardConfig = DashboardConfig()
    cost_budgets: tuple[CostBudget, ...] = ()
    """Budgets of a day, each with the alerts `cost_yellow`, `cost_orange` and `cost_red`."""
    session_label: Annotated[int, Field(ge=0, le=1_000), NUMBER] = 0
    """Number of sessions that also get gauges with a `session` label, fullest first."""

    def thresholds(self) -> Thresholds | None:
        """Return the lower bounds of the zones; None where the window's size decides."""
        zones = self.pressure.thresholds
        return None if zones is None else Thresholds(zones.yellow, zones.orange, zones.red)

    def channels(self) -> tuple[ChannelConfig, ...]:
        """Return the receivers of alerts: the common ones, then those of each project."""
        own = (channel for project in self.projects.values() for channel in project.channels or ())
        return (*self.notify.channels, *own)

    def project_retention(self) -> dict[str, ProjectRetention]:
        """Return the retention of each project."""
        return {name: project.retention for name, project in self.projects.items()}

    def tracker_settings(self) -> TrackerSettings:
        """Return the settings by which sessions derive events."""
        budget: Any = self.budget.allocations.model_dump(exclude={"output_reserved"})
        return TrackerSettings(
            velocity_turns=self.pressure.velocity_window, lifetimes=dict(self.eviction.type_ttl), budget=budget
        )

    def alert_settings(self) -> AlertSettings:
        """Return the changes to the alert rules."""
        alerts = self.health_monitoring.alerts
        overrides: dict[str, float | None] = {
            "utilization": alerts.utilization_critical,
            "eviction_rate": alerts.eviction_rate_warning,
            "fidelity": alerts.fidelity_warning,
            "compression_ratio": alerts.compression_ratio_min,
            "tool_results": alerts.tool_bloat_warning,
        }
        thresholds = {name: value for name, value in overrides.items() if value is not None} | alerts.thresholds
        not_evaluated = [
            alert for metric, alert in HEALTH_METRICS.items() if metric not in self.health_monitoring.metrics
        ]
        return {
            "thresholds": thresholds, "enable": alerts.enable, "disable": (*not_evaluated, *alerts.disable)
        }  # fmt: skip
