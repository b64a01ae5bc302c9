"""Settings: what can be configured, its defaults and its bounds.

One section a subsystem, and a few about where things are kept and sent. What is left out keeps its default; what
is unknown or out of range is an error that names the key. `load_config` puts the file, the environment and
arguments together.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal, Self, get_args

from pydantic import Field, SecretStr, field_validator, model_validator

from windowpane.alerts.delivery.quiet_hours import QuietHours
from windowpane.alerts.rules import Rule, configured
from windowpane.config.judging import JudgeConfig
from windowpane.config.paths import default_store
from windowpane.config.section import NUMBER, Ratio, Section, Share, Tokens, Turns
from windowpane.core.limits import DEFAULT_BUDGET, DEFAULT_LIFETIMES, Thresholds, TrackerSettings
from windowpane.core.vocabulary import Component, ContentType, Severity
from windowpane.manager.budget import PROFILES
from windowpane.manager.plans.policies import policy_named

OUTPUT_SHARE: Final = 0.05
HYBRID: Final = "hybrid"
"""The policy whose weights are configured."""
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
"""Health metrics to the alert that judges each."""


CascadeStrategy = Literal["tool_result_summarization", "progressive", "conversation_compaction", "sub_agent"]
"""Compression strategies in the order of their cost."""


class ZoneThresholds(Section):
    """Where zones begin, as shares of the limit; all three or none (then by the window's size)."""

    yellow: Share
    orange: Share
    red: Share

    @model_validator(mode="after")
    def _rising(self) -> Self:
        if not self.yellow < self.orange < self.red:
            raise ValueError(f"thresholds must rise: yellow {self.yellow}, orange {self.orange}, red {self.red}")
        return self


class Pressure(Section):
    """How full and how fast."""

    thresholds: ZoneThresholds | None = None
    velocity_window: Turns = 5


class EvictionWeights(Section):
    """Shares of the eviction score; they sum to 1."""

    recency: Ratio = 0.30
    priority: Ratio = 0.25
    type_ttl: Ratio = 0.20
    reference_freq: Ratio = 0.15
    semantic_duplication: Ratio = 0.10

    @model_validator(mode="after")
    def _complete(self) -> Self:
        total = sum(self.model_dump().values())
        if abs(total - 1) > WEIGHT_TOLERANCE:
            raise ValueError(f"weights must sum to 1, these sum to {total:g}")
        return self


class Eviction(Section):
    """What leaves first."""

    policy: str = "hybrid"
    weights: EvictionWeights = EvictionWeights()
    type_ttl: dict[ContentType, Turns] = Field(default_factory=lambda: dict(DEFAULT_LIFETIMES))
    """Turns after which content is stale; types left out keep their default."""
    protected_types: tuple[ContentType, ...] = ("system_prompt",)

    @field_validator("type_ttl", mode="before")
    @classmethod
    def _over_defaults(cls, given: object) -> object:
        return {**DEFAULT_LIFETIMES, **given} if isinstance(given, dict) else given

    @field_validator("policy")
    @classmethod
    def _known_policy(cls, name: str) -> str:
        return policy_named(name).name

    @model_validator(mode="after")
    def _weighed(self) -> Self:
        if self.policy != HYBRID and "weights" in self.model_fields_set:
            raise ValueError(f"weights are for the policy {HYBRID!r}, and the policy is {self.policy!r}")
        return self


class Compression(Section):
    """When and how content is replaced by less content."""

    summarization_threshold_tokens: Tokens = 500
    compaction_utilization_threshold: Share = 0.90
    cascade: dict[Share, CascadeStrategy] = Field(default_factory=dict)
    """Utilization at which each strategy begins, cheap ones first; empty for the engine's own order. A strategy
    that is not named is not used."""
    background: bool = False
    """Whether the conversation is compacted after a turn, off the agent's path."""
    notes_file: Path | None = None

    @model_validator(mode="after")
    def _cheap_first(self) -> Self:
        order: tuple[CascadeStrategy, ...] = get_args(CascadeStrategy)
        named = [self.cascade[threshold] for threshold in sorted(self.cascade)]
        if len(set(named)) < len(named):
            raise ValueError(f"cascade names a strategy twice: {', '.join(named)}")
        if named != sorted(named, key=order.index):
            raise ValueError(f"cascade must rise with cost, {' < '.join(order)}; it is {' < '.join(named)}")
        return self


class Allocations(Section):
    """Shares of the limit a component may use; what is left is the safety margin."""

    system_prompt: Ratio = DEFAULT_BUDGET["system_prompt"]
    tool_definitions: Ratio = DEFAULT_BUDGET["tool_definitions"]
    message_history: Ratio = DEFAULT_BUDGET["message_history"]
    tool_results: Ratio = DEFAULT_BUDGET["tool_results"]
    memory_injection: Ratio = DEFAULT_BUDGET["memory_injection"]
    output_reserved: Ratio = OUTPUT_SHARE

    @model_validator(mode="after")
    def _fits(self) -> Self:
        total = sum(self.model_dump().values())
        if total > 1 + WEIGHT_TOLERANCE:
            raise ValueError(f"allocations must not exceed 1, these sum to {total:g}")
        return self


class Budget(Section):
    """How the window is shared out: a profile, and shares that differ from it."""

    profile: Literal["default", "code_review", "research", "customer_support"] = "default"
    allocations: Allocations = Allocations()
    soft_limit_pct: Share = 0.80
    enforce: Literal["global", "component"] = "global"
    """Whether components are tracked and the window is enforced, or each component by itself."""

    @model_validator(mode="before")
    @classmethod
    def _over_profile(cls, given: object) -> object:
        """Shares that are left out are the profile's; of the default's they are the defaults, or a preset's."""
        if not isinstance(given, dict) or given.get("profile", "default") == "default":
            return given
        if given["profile"] not in PROFILES:
            return given
        shares = given.get("allocations") or {}
        if not isinstance(shares, dict):
            return given
        return {**given, "allocations": {**PROFILES[given["profile"]], **shares}}


class CrossWindow(Section):
    """What survives a window."""

    state_file: Path | None = None
    progress_file: Path | None = None
    auto_save_threshold: Share = 0.85

    @model_validator(mode="after")
    def _two_files(self) -> Self:
        progress = self.progress_file or (self.state_file and self.state_file.with_suffix(".md"))
        if self.state_file is not None and self.state_file == progress:
            raise ValueError(f"state_file and progress_file are both {self.state_file}: one overwrites the other")
        return self


class AlertThresholds(Section):
    """Thresholds of the first six alerts, of any other by its name, and which are judged."""

    utilization_critical: Share | None = None
    """None follows where red begins in each window."""
    eviction_rate_warning: Annotated[float, NUMBER, Field(gt=0)] | None = None
    fidelity_warning: Share | None = None
    compression_ratio_min: Annotated[float, NUMBER, Field(gt=0)] | None = None
    tool_bloat_warning: Share | None = None
    thresholds: dict[str, Annotated[float, NUMBER]] = Field(default_factory=dict)
    enable: tuple[str, ...] = ()
    disable: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _known(self) -> Self:
        configured(self.thresholds, enable=self.enable, disable=self.disable)
        return self


class HealthMonitoring(Section):
    """What is watched, and when it is said."""

    metrics: tuple[HealthMetric, ...] = tuple(HEALTH_METRICS)
    """Of the first six alerts, those that are judged."""
    alerts: AlertThresholds = AlertThresholds()
    judge: JudgeConfig = JudgeConfig()


class StoreConfig(Section):
    """Where events are kept, what of them, and for how long."""

    path: Path = Field(default_factory=default_store)
    capture: bool = False
    """Keep texts too, secrets redacted."""
    retention_days: Annotated[float, NUMBER, Field(gt=0)] = 30
    retention_bytes: Annotated[int, NUMBER, Field(gt=0)] = 2_000_000_000
    audit_key_file: Path | None = None


class Tls(Section):
    """Certificate of the metrics endpoint."""

    certificate: Path
    key: Path
    client_ca: Path | None = None


class ServerConfig(Section):
    """The metrics endpoint."""

    port: Annotated[int, NUMBER, Field(ge=0, le=65535)] = 9464
    """0 takes a free one; a busy one gives way to a free one."""
    address: str = "127.0.0.1"
    bearer_token: Annotated[SecretStr, Field(min_length=1)] | None = None
    tls: Tls | None = None


class ChannelConfig(Section):
    """One place alerts are sent to."""

    url: SecretStr
    """`log://`, `alertmanager://host:port`, or any Apprise URL."""
    min_severity: Severity | None = None
    """None: everything for the log and Alertmanager, from warning for people."""
    quiet_hours: str | None = None
    """Local time such as `22:00-07:00`: only critical alerts are sent in it, the rest afterwards."""

    @field_validator("quiet_hours")
    @classmethod
    def _span(cls, given: str | None) -> str | None:
        if given is not None:
            QuietHours.parse(given)
        return given


class NotifyConfig(Section):
    """Who hears of alerts."""

    channels: tuple[ChannelConfig, ...] = (ChannelConfig(url=SecretStr("log://"), min_severity="warning"),)


class OtlpConfig(Section):
    """Push to an OpenTelemetry endpoint, where one is named."""

    endpoint: str | None = None
    """Base URL of the receiver, such as `http://127.0.0.1:4318`."""
    headers: dict[str, SecretStr] = Field(default_factory=dict)
    events: bool = True
    """Whether events are sent as log records, beside the metrics."""
    interval_seconds: Annotated[float, NUMBER, Field(ge=1)] = 60
    """How often metrics are pushed."""


class Config(Section):
    """Every setting."""

    max_context_tokens: Tokens | None = None
    """Size of the window where the catalog does not know it, or knows it wrong."""
    preset: str | None = None
    """Another system's numbers, order and words for every managed session; what is named below stands."""
    pressure: Pressure = Pressure()
    eviction: Eviction = Eviction()
    compression: Compression = Compression()
    budget: Budget = Budget()
    cross_window: CrossWindow = CrossWindow()
    health_monitoring: HealthMonitoring = HealthMonitoring()
    store: StoreConfig = Field(default_factory=StoreConfig)
    server: ServerConfig = ServerConfig()
    notify: NotifyConfig = NotifyConfig()
    otlp: OtlpConfig = OtlpConfig()
    public_url: str | None = None
    """Where the dashboard is reached; messages link to it."""
    session_label: Annotated[int, NUMBER, Field(ge=0, le=1_000)] = 0
    """Sessions that also get gauges with a `session` label, fullest first."""

    @field_validator("public_url")
    @classmethod
    def _address(cls, url: str | None) -> str | None:
        if url is not None and not url.lower().startswith(("http://", "https://")):
            raise ValueError("public_url begins with http:// or https://")
        return url

    @field_validator("preset")
    @classmethod
    def _known_preset(cls, name: str | None) -> str | None:
        if name is None:
            return None
        from windowpane.contrib.presets import preset_named

        return preset_named(name).name

    def thresholds(self) -> Thresholds | None:
        """Where zones begin; None lets the window's size decide."""
        zones = self.pressure.thresholds
        return None if zones is None else Thresholds(zones.yellow, zones.orange, zones.red)

    def tracker_settings(self) -> TrackerSettings:
        """How sessions derive events."""
        shares = self.budget.allocations
        budget: dict[Component, float] = {
            "system_prompt": shares.system_prompt,
            "tool_definitions": shares.tool_definitions,
            "message_history": shares.message_history,
            "tool_results": shares.tool_results,
            "memory_injection": shares.memory_injection,
        }
        return TrackerSettings(
            velocity_turns=self.pressure.velocity_window, lifetimes=dict(self.eviction.type_ttl), budget=budget
        )

    def alert_rules(self) -> tuple[Rule, ...]:
        """The alerts that are judged, with their thresholds."""
        alerts = self.health_monitoring.alerts
        named: dict[str, float | None] = {
            "utilization": alerts.utilization_critical,
            "eviction_rate": alerts.eviction_rate_warning,
            "fidelity": alerts.fidelity_warning,
            "compression_ratio": alerts.compression_ratio_min,
            "tool_results": alerts.tool_bloat_warning,
        }
        thresholds = {name: value for name, value in named.items() if value is not None} | alerts.thresholds
        unwatched = [
            alert for metric, alert in HEALTH_METRICS.items() if metric not in self.health_monitoring.metrics
        ]
        return configured(thresholds, enable=alerts.enable, disable=[*unwatched, *alerts.disable])
