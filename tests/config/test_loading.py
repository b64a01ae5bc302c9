"""Settings: the order of their origins, their bounds, and errors that name the location."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any, get_args

import pytest

from windowpane.alerts.rules import configured
from windowpane.config.loading import load_config
from windowpane.config.schema import Budget, Config, JudgeConfig, Pressure
from windowpane.config.section import Section
from windowpane.core.limits import Thresholds, TrackerSettings
from windowpane.exceptions import ConfigurationError

Write = Callable[[str], Path]

WHOLE = """
max_context_tokens: 128000
pressure:
  thresholds: {yellow: 0.50, orange: 0.75, red: 0.90}
  velocity_window: 5
eviction:
  policy: hybrid
  weights: {recency: 0.30, priority: 0.25, type_ttl: 0.20, reference_frequency: 0.15, semantic_duplication: 0.10}
  type_ttl: {tool_result: 8, thinking: 2, memory_injection: 20}
  protected_types: [system_prompt]
compression:
  summarization_threshold_tokens: 500
  compaction_utilization_threshold: 0.85
  cascade:
    0.75: tool_result_summarization
    0.85: progressive_summarization
    0.92: compaction
    0.95: subagent_delegation
  notes_file: agent_notes.md
budget:
  allocations:
    system_prompt: 0.06
    tool_definitions: 0.04
    message_history: 0.65
    tool_results: 0.12
    memory_injection: 0.08
    output_reserved: 0.05
  soft_limit_pct: 0.80
cross_window: {state_file: agent_state.json, progress_file: agent_progress.md, auto_save_threshold: 0.85}
health_monitoring:
  metrics: [utilization, eviction_rate, compression_ratio, burn_rate, fidelity_score, tool_result_bloat]
  alerts:
    utilization_critical: 0.90
    eviction_rate_warning: 5
    fidelity_warning: 0.75
    compression_ratio_min: 2.0
    tool_bloat_warning: 0.30
store: {path: panes.db, capture: true, retention_days: 7}
server: {port: 9500, bearer_token: s3cr3t}
notify:
  channels:
    - {url: "json://127.0.0.1/s3cr3t", min_severity: critical}
public_url: https://panes.example
"""


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a settings file."""

    def make(text: str) -> Path:
        path = tmp_path / "windowpane.yaml"
        path.write_text(text)
        return path

    return make


def load(file: Path | None = None, environ: dict[str, str] | None = None, **arguments: Any) -> Config:
    return load_config(file, environ=environ or {}, arguments=arguments)


def test_nothing_configured_gives_the_defaults() -> None:
    """Without any setting everything has its documented default."""
    config = load()

    assert config.thresholds() is None
    assert config.tracker_settings() == TrackerSettings()
    assert config.server.port == 9464
    assert config.store.capture is False
    assert {rule.name for rule in configured(**config.alert_settings())} >= {
        "utilization",
        "fidelity",
        "overflow",
    }


def test_a_whole_file_is_read(write: Write) -> None:
    """Every section of the documented file is accepted and arrives."""
    config = load(write(WHOLE))

    assert config.thresholds() == Thresholds(0.5, 0.75, 0.9)
    assert config.compression.cascade[0.95] == "subagent_delegation"
    assert config.tracker_settings().budget["message_history"] == 0.65
    assert config.eviction.type_ttl["assistant_response"] == 30
    rules = {rule.name: rule for rule in configured(**config.alert_settings())}
    assert rules["utilization"].threshold_from is None
    assert rules["eviction_rate"].threshold == 5


def test_secrets_do_not_show(write: Write) -> None:
    assert "s3cr3t" not in repr(load(write(WHOLE)))


def test_arguments_win_over_environment_over_file(write: Write) -> None:
    file = write("server: {port: 1, address: 10.0.0.1}\npressure: {velocity_window: 3}")
    environ = {"WINDOWPANE_PORT": "2", "WINDOWPANE_PRESSURE__VELOCITY_WINDOW": "4"}

    assert load(file).server.port == 1
    assert load(file, environ).server.port == 2
    assert load(file, environ, server={"port": 3}).server.port == 3
    assert load(file, environ, server={"port": 3}).server.address == "10.0.0.1"
    assert load(file, environ).pressure.velocity_window == 4


def test_the_environment_names_the_file_the_store_and_channels(write: Write) -> None:
    environ = {
        "WINDOWPANE_CONFIG": str(write("session_label: 5")),
        "WINDOWPANE_STORE": "123",
        "WINDOWPANE_NOTIFY": "log:// json://127.0.0.1/x",
        "WINDOWPANE_SESSIONS_DIR": "ignored",
    }

    config = load(None, environ)

    assert config.session_label == 5
    assert config.store.path == Path("123")
    assert [channel.url.get_secret_value() for channel in config.notify.channels] == [
        "log://",
        "json://127.0.0.1/x",
    ]


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("a: 1\n", ":1: a", "unknown key"),
        ("server:\n  prot: 1\n", ":2: server.prot", "unknown key"),
        ("server:\n  port: many\n", ":2: server.port", "expected a valid integer"),
        ("server:\n\n  port: 70000\n", ":3: server.port: 70000 is out of range", "less than or equal to 65535"),
        ("pressure:\n  thresholds: {yellow: 0.8, orange: 0.7, red: 0.9}", ":2: pressure.thresholds", "must rise"),
        ("pressure:\n  thresholds:\n    yellow: 0.5\n", ":2: pressure.thresholds.orange", "missing"),
        ("eviction:\n  weights: {recency: 0.9}", ":2: eviction.weights", "sum to 1, these sum to 1.6"),
        ("budget:\n  allocations: {tool_results: 0.9}", ":2: budget.allocations", "must not exceed 1"),
        ("budget:\n  allocations: {tool_results: 0.18}", ":2: budget.allocations", "these sum to 1.01"),
        (
            "compression:\n  cascade: {0.75: progressive_summarization, 0.85: progressive_summarization}",
            ":1: compression",
            "names a strategy twice: progressive_summarization, progressive_summarization",
        ),
        (
            "compression:\n  cascade: {0.75: subagent_delegation, 0.85: progressive_summarization}",
            ":1: compression",
            "must rise with cost",
        ),
        ("pressure:\n  thresholds: {yellow: 0.7, orange: 0.7, red: 0.9}", ":2: pressure.thresholds", "must rise"),
        ("eviction:\n  protected_types: [sytem_prompt]", ":2: eviction.protected_types.0", "system_prompt"),
        (
            "health_monitoring:\n  alerts:\n    disable: [utilisation]",
            ":2: health_monitoring.alerts|:3",
            "unknown alert",
        ),
        (
            "health_monitoring:\n  alerts:\n    thresholds: {overflow: 1}",
            "health_monitoring.alerts",
            "no threshold",
        ),
        ("eviction:\n  policy: newest", ":2: eviction.policy", "one of fifo"),
        ("eviction:\n  policy: lru\n  weights: {recency: 0.30}", ":1: eviction", "policy is 'lru'"),
        (
            "compression: {compaction_utilization_threshold: 0.6}",
            ":1: compression.compaction_utilization_threshold",
            "0.6 is below 0.75, where reductions start",
        ),
        (
            "pressure: {thresholds: {yellow: .5, orange: .8, red: .9}}\ncross_window: {auto_save_threshold: 0.7}",
            ":2: cross_window.auto_save_threshold",
            "0.7 is below 0.8, where reductions start",
        ),
        (
            "compression:\n  cascade: {0.5: progressive_summarization}",
            ":2: compression.cascade",
            "progressive_summarization at 0.5",
        ),
        (
            "compression:\n  cascade: {75: progressive_summarization}",
            ":2: compression.cascade.75: 75 is out of range",
            "less than or equal to 1",
        ),
        ("budget:\n  enforce: both", ":2: budget.enforce", "component"),
        ("compression:\n  background: later", ":2: compression.background", "boolean"),
        (
            "health_monitoring:\n  judge:\n    rate: 0.1",
            ":3: health_monitoring.judge.rate",
            "unknown key",
        ),
        (
            "health_monitoring:\n  judge: {sample_rate: 1.5}",
            ":2: health_monitoring.judge.sample_rate",
            "less than or equal to 1",
        ),
        (
            "health_monitoring:\n  judge: {model: judges}",
            ":2: health_monitoring.judge.model",
            "module:function",
        ),
        ("health_monitoring:\n  judge: {max_calls: 0}", ":2: health_monitoring.judge.max_calls", "equal to 1"),
        ("health_monitoring:\n  judge: {replicates: 2}", ":2: health_monitoring.judge.replicates", "equal to 3"),
        ("health_monitoring:\n  judge: {questions: 13}", ":2: health_monitoring.judge.questions", "equal to 12"),
        ("health_monitoring:\n  judge: {capacity: 0}", ":2: health_monitoring.judge.capacity", "equal to 1"),
        (
            "health_monitoring:\n  judge: {timeout_seconds: 0}",
            ":2: health_monitoring.judge.timeout_seconds",
            "greater than 0",
        ),
        ("max_context_tokens: 0", ":1: max_context_tokens", "greater than or equal to 1"),
        ("[1, 2]", "windowpane.yaml", "holds a list"),
        ("a: [", "windowpane.yaml:1", "not YAML"),
        ("server: {}\na: !!python/object:os.system {}", "windowpane.yaml:2", "could not determine a constructor"),
        (
            "server: {port: 1}\npressure: {}\nserver: {port: 2}",
            ":3: server",
            "is set twice, first in line 1; expected each key once",
        ),
        ("notify:\n  channels:\n    - url: a\n      url: b", ":4: notify.channels.0.url", "first in line 3"),
        ("pressure:\n  velocity_window: yes", ":2: pressure.velocity_window", "true is not a number"),
        ("compression: {compaction_utilization_threshold: on}", ":1: compression", "true is not a number"),
        (
            "health_monitoring: {alerts: {thresholds: {regret: on}}}",
            ":1: health_monitoring",
            "true is not a number",
        ),
        ("pressure: 5", ":1: pressure", "expected a mapping"),
        ("cross_window: {state_file: a.json, progress_file: a.json}", ":1: cross_window", "one overwrites"),
        ("cross_window: {state_file: progress.md}", ":1: cross_window", "one overwrites"),
    ],
)
def test_an_error_in_the_file_names_its_location(write: Write, text: str, where: str, what: str) -> None:
    """The error names file, line and key, and what would have been right."""
    with pytest.raises(ConfigurationError) as caught:
        load(write(text))

    assert any(part in str(caught.value) for part in where.split("|"))
    assert any(part in str(caught.value) for part in what.split("|"))


def test_an_error_names_its_key_once(write: Write) -> None:
    file = write("eviction:\n  policy: newest")
    with pytest.raises(ConfigurationError) as caught:
        load(file)

    assert str(caught.value).startswith(f"{file}:2: eviction.policy: 'newest' is unknown; expected one of fifo")


def test_a_section_in_which_every_line_is_commented_out_has_its_defaults(write: Write) -> None:
    config = load(write("pressure:\n  # velocity_window: 3\nbudget:\nhealth_monitoring:\n  judge:\n"))

    assert (config.pressure, config.budget, config.health_monitoring.judge) == (
        Pressure(),
        Budget(),
        JudgeConfig(),
    )
    assert load(write("pressure:\n"), {"WINDOWPANE_PRESSURE__VELOCITY_WINDOW": "4"}).pressure.velocity_window == 4


def test_yaml_anchors_and_merge_keys_work(write: Write) -> None:
    config = load(
        write(
            "eviction: {type_ttl: &turns {thinking: 3}}\n"
            "budget:\n  allocations:\n    <<: {tool_results: 0.3, message_history: 0.3}\n"
            "    message_history: 0.4\n"
        )
    )

    assert config.eviction.type_ttl["thinking"] == 3
    assert (config.budget.allocations.tool_results, config.budget.allocations.message_history) == (0.3, 0.4)


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"nowhere\.yaml: file not found"):
        load(tmp_path / "nowhere.yaml")


def test_an_empty_file_is_no_settings(write: Write) -> None:
    assert load(write("# nothing yet\n")) == load()


def test_an_error_in_the_environment_names_the_variable() -> None:
    with pytest.raises(ConfigurationError, match=r"WINDOWPANE_PORT \(server.port\)") as caught:
        load(None, {"WINDOWPANE_PORT": "s3cr3t"})
    assert "s3cr3t" not in str(caught.value)

    with pytest.raises(ConfigurationError, match=r"WINDOWPANE_SERVER__PROT.*unknown key"):
        load(None, {"WINDOWPANE_SERVER__PROT": "1"})


def test_an_error_in_an_argument_names_the_key(write: Write) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(write("server: {address: x}"), server={"port": -1})

    assert str(caught.value).startswith("server.port: ")


def test_health_metrics_choose_the_alerts() -> None:
    names = {
        rule.name
        for rule in configured(**load(
            health_monitoring={
                "metrics": ["utilization"], "alerts": {"enable": ["rot_threshold"], "disable": ["overflow"]}
            }
        ).alert_settings())
    }  # fmt: skip

    assert {"utilization", "rot_threshold", "red_imminent"} <= names
    assert not names & {"fidelity", "tool_results", "overflow", "burn_rate_spike"}


def test_an_unknown_preset_is_refused_with_the_choices(tmp_path: Path) -> None:
    file = tmp_path / "windowpane.yaml"
    file.write_text("preset: opencode\n", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="cascade, baseagent, picoclaw, ai_sdk_go"):
        load_config(file, environ={})

    assert load_config(environ={"WINDOWPANE_PRESET": "picoclaw"}).preset == "picoclaw"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("presure: {velocity_window: 3}", "pressure"),
        ("pressure: {velocity_windw: 3}", "pressure.velocity_window"),
        ("notify: {channels: [{url: 'log://', min_severty: info}]}", "notify.channels.0.min_severity"),
        ("server: {tls: {certificat: a, key: b}}", "server.tls.certificate"),
        ("velocity_window: 3", "pressure.velocity_window"),
        ("pressure: {xyz: 3}", "a key of this section"),
    ],
)
def test_a_misspelled_key_is_answered_with_the_nearest_one(write: Write, text: str, expected: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"(?m)unknown key.*; expected {re.escape(expected)}$"):
        load_config(write(text), environ={})


def test_a_misspelled_variable_is_answered_with_the_nearest_key() -> None:
    with pytest.raises(ConfigurationError, match=r"VELOCTY_WINDOW .*expected pressure\.velocity_window"):
        load_config(environ={"WINDOWPANE_PRESSURE__VELOCTY_WINDOW": "3"})


@pytest.mark.parametrize(
    "name", ["WINDOWPANE_STOR", "WINDOWPANE_STORES", "WINDOWPANE_CONFIGS", "WINDOWPANE_NOTFY"]
)
def test_a_variable_that_is_almost_a_setting_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"{name}: unknown variable.* expected WINDOWPANE_"):
        load_config(environ={name: "x"})


def test_variables_of_others_are_ignored() -> None:
    names = ("WINDOWPANE_TEST_ALL", "WINDOWPANE_POSTGRES_PASSWORD", "WINDOWPANE_BIND", "WINDOWPANE_SESSIONS_DIR")

    assert load_config(environ=dict.fromkeys(names, "x")) == load_config(environ={})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[" * 1_500, "is nested too deeply"),
        ("{a: " * 1_500, "is nested too deeply"),
        ("[" * 1_500 + "]" * 1_500, "is nested too deeply"),
        ("\npreset: 2020-13-45", r"\.yaml:2: not YAML: month must be in 1..12"),
        ("\nmax_context_tokens: " + "9" * 5_000, r"\.yaml:2: not YAML: Exceeds the limit"),
        ("1: 2", "expected a name as key"),
    ],
    ids=["sequences", "mappings", "closed", "date", "number", "key"],
)
def test_yaml_that_python_cannot_hold_is_a_configuration_error(write: Write, text: str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        load_config(write(text), environ={})


@pytest.mark.parametrize("value", ["[" * 1_500, "2020-13-45", "9" * 5_000], ids=["deep", "date", "number"])
def test_a_variable_that_python_cannot_hold_is_a_configuration_error(value: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^WINDOWPANE_SESSION_LABEL: cannot be parsed"):
        load_config(environ={"WINDOWPANE_SESSION_LABEL": value})


def keys_of(settings: type[Section], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, field in settings.model_fields.items():
        yield (*path, name)
        for kind in (field.annotation, *get_args(field.annotation)):
            if isinstance(kind, type) and issubclass(kind, Section):
                yield from keys_of(kind, (*path, name))


NOT_UTF8 = "\udcff"
ODD_VALUES = (
    None, True, 1, -1, 1.5, math.nan, "x", "", "\0", b"x", [], [1], [None], {}, {"a": 1}, {1: 2}, {None: None},
    object(), set(), 10**400, Path("x"), date(2026, 1, 1), NOT_UTF8, [NOT_UTF8], {NOT_UTF8: 1},
)  # fmt: skip


@pytest.mark.parametrize("key", sorted(set(keys_of(Config))), ids=".".join)
def test_a_value_of_any_type_is_valid_or_a_configuration_error(key: tuple[str, ...]) -> None:
    refusals = []
    for value in ODD_VALUES:
        settings: Any = value
        for part in reversed(key):
            settings = {part: settings}
        try:
            load_config(environ={}, arguments=settings)
        except ConfigurationError as error:
            refusals.append(str(error))

    assert refusals, "no value was refused"
    assert all(key[0] in refusal for refusal in refusals)


@pytest.mark.parametrize("key", ["public_url", "otlp.endpoint", "otlp.forward"])
def test_an_address_is_the_url_of_a_host(key: str) -> None:
    section, _, name = key.rpartition(".")

    def load_with(url: str) -> Config:
        return load_config(environ={}, arguments={section: {name: url}} if section else {name: url})

    for url in (
        "collector:4318",
        "ftp://host",
        "http://",
        "http://a b",
        "http://host:port",
        "javascript:alert(1)",
    ):
        with pytest.raises(ConfigurationError, match=rf"^{re.escape(key)}: .*names a host"):
            load_with(url)
    with pytest.raises(ConfigurationError, match=rf"^{re.escape(key)}: .*user or password") as error:
        load_with("http://user:hunter2@collector:4318")
    assert "hunter2" not in str(error.value)
    for url in ("http://collector:4318/base", "HTTPS://host", "http://[::1]:4318"):
        load_with(url)


@pytest.mark.parametrize("value", [1, True, [1], "x", b"x", object()], ids=lambda value: type(value).__name__)
def test_settings_that_are_no_mapping_are_a_configuration_error(value: Any) -> None:
    with pytest.raises(ConfigurationError, match="expected a mapping"):
        load_config(environ={}, arguments=value)
    if not isinstance(value, str):
        with pytest.raises(ConfigurationError, match="expected the path"):
            load_config(value, environ={})


@pytest.mark.parametrize(
    ("text", "value"), [("5", 5), (" 5 ", 5), ("5.0", 5), ("1_000", 1000), ("1e3", 1000)], ids=str
)
def test_a_number_in_quotes_is_a_number(write: Write, text: str, value: int) -> None:
    assert load(write(f"session_label: '{text}'")).session_label == value


@pytest.mark.parametrize(
    ("text", "value"), [("yes", True), ("Off", False), ("TRUE", True), ("0", False), ("y", True)], ids=str
)
def test_a_boolean_in_quotes_is_a_boolean(write: Write, text: str, value: bool) -> None:
    assert load(write(f"store: {{capture: '{text}'}}")).store.capture is value


def test_all_problems_of_all_origins_are_reported_at_once(write: Write) -> None:
    file = write(
        "pressure:\n  thresholds: {}\nserver:\n  prot: 1\nnotify:\n  channels:\n    - min_severity: high"
    )
    environ = {"WINDOWPANE_STOR": "x", "WINDOWPANE_PORT": "many", "WINDOWPANE_SESSION_LABEL": "["}
    with pytest.raises(ConfigurationError) as caught:
        load(file, environ, budget={"soft_limit_pct": 2})

    assert str(caught.value).splitlines() == [
        "WINDOWPANE_STOR: unknown variable; expected WINDOWPANE_STORE",
        "WINDOWPANE_SESSION_LABEL: cannot be parsed; expected a YAML value",
        f"{file}:4: server.prot: unknown key; expected server.port",
        f"{file}:2: pressure.thresholds.yellow: missing; expected a value",
        f"{file}:2: pressure.thresholds.orange: missing; expected a value",
        f"{file}:2: pressure.thresholds.red: missing; expected a value",
        "budget.soft_limit_pct: 2 is out of range; expected less than or equal to 1",
        "WINDOWPANE_PORT (server.port): invalid; expected a valid integer",
        f"{file}:7: notify.channels.0.url: missing; expected a value",
        f"{file}:7: notify.channels.0.min_severity: invalid; expected 'info', 'warning' or 'critical'",
    ]


def test_all_keys_that_are_set_twice_are_reported_at_once(write: Write) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(write("server: {port: 1, port: 2}\npreset: cascade\npreset: picoclaw"))

    assert [line.partition(".yaml")[2] for line in str(caught.value).splitlines()] == [
        ":1: server.port: is set twice, first in line 1; expected each key once",
        ":3: preset: is set twice, first in line 2; expected each key once",
    ]


def test_all_contradictions_are_reported_at_once(write: Write) -> None:
    text = "preset: baseagent\ncross_window: {auto_save_threshold: 0.2}\ncompression: {background: true}"
    with pytest.raises(ConfigurationError) as caught:
        load(write(text))

    threshold, background = str(caught.value).splitlines()
    assert ":2: cross_window.auto_save_threshold: 0.2 is below 0.75" in threshold
    assert ":3: compression.background: preset 'baseagent' decides this itself" in background


ARTICLE = """
eviction:
  weights: {recency: 0.30, priority: 0.25, type_ttl: 0.20, reference_freq: 0.15, semantic_duplication: 0.10}
compression:
  compaction_utilization_threshold: 0.85
  cascade: {0.75: tool_result_summarization, 0.85: progressive, 0.92: conversation_compaction, 0.95: sub_agent}
"""


def test_the_names_of_the_founding_article_have_their_meaning(write: Write) -> None:
    config = load(write(ARTICLE))

    assert config.eviction.weights.reference_frequency == 0.15
    assert list(config.compression.cascade.values()) == [
        "tool_result_summarization", "progressive_summarization", "compaction", "subagent_delegation"
    ]  # fmt: skip


def test_an_alias_beside_the_name_itself_is_refused(write: Write) -> None:
    with pytest.raises(ConfigurationError, match=r":2: eviction.weights.reference_freq: unknown key; expected e"):
        load(write("eviction:\n  weights: {reference_freq: 0.1, reference_frequency: 0.15}"))


def test_every_section_is_built_at_import() -> None:
    sections = [Section]
    for section in sections:
        sections += section.__subclasses__()

    assert Config in sections
    assert all(section.__pydantic_complete__ for section in sections)


def test_an_error_in_a_mapping_names_its_key(write: Write) -> None:
    with pytest.raises(ConfigurationError, match=r":3: projects.web.retention.days: 0 is out of range"):
        load(write("projects:\n  web:\n    retention: {days: 0}"))


def test_a_changed_section_knows_what_was_given() -> None:
    config = load(session_label=3).model_copy(update={"project": "web"})

    assert (config.model_fields_set, config.session_label) == ({"session_label", "project"}, 3)
