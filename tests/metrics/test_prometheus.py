"""The Prometheus exposition: exact text, accepted by the linter, bounded for any input."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from prometheus_client import generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families

from windowpane.core.events import ContentCompressed, TurnEnded
from windowpane.core.protocols import ModelInfo
from windowpane.metrics.fold import MetricState, StateSource
from windowpane.metrics.labels import AdmittedNames, LabelPolicy, model_label
from windowpane.metrics.prometheus import registry_of

GOLDEN = Path(__file__).with_name("golden.prom")
HOSTILE = (
    'a"b\nc{d="e"}',
    "x" * 10_000,
    "\u202e\u0000名前",
    "",
    "back\\slash",
    "# HELP injected",
    "le",
)


def exposition(state: MetricState, *, now: float = 1_000.0) -> str:
    return generate_latest(registry_of(StateSource(state, clock=lambda: now))).decode()


def test_a_scripted_session_has_exactly_this_exposition(scripted_state: MetricState) -> None:
    assert exposition(scripted_state) == GOLDEN.read_text()


@pytest.mark.server
def test_promtool_accepts_the_exposition(scripted_state: MetricState, require_server) -> None:
    checked = subprocess.run(
        [require_server("promtool"), "check", "metrics"],
        input=exposition(scripted_state).encode(),
        capture_output=True,
        check=False,
        timeout=60,
    )

    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")


def test_openmetrics_carries_the_same_numbers(scripted_state: MetricState) -> None:
    registry = registry_of(StateSource(scripted_state, clock=lambda: 1_000.0))
    plain = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(generate_latest(registry).decode())
        for sample in family.samples
    }
    openmetrics = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in parse_openmetrics(generate_openmetrics(registry).decode())
        for sample in family.samples
    }

    assert openmetrics == plain


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_agent_name_is_only_a_label(make_event, name: str) -> None:
    state = MetricState()
    state.apply(make_event(TurnEnded(None, "usage"), agent=name, model=name))
    families = list(text_string_to_metric_families(exposition(state)))
    agents = {sample.labels["agent"] for family in families for sample in family.samples}

    assert len(agents) == 1
    assert all(character.isascii() and (character.isalnum() or character in "_.-") for character in agents.pop())


def test_agents_beyond_the_first_fifty_share_a_label(make_event) -> None:
    state = MetricState(labels=LabelPolicy(model=lambda _model: "other"))
    for index in range(1_000):
        state.apply(make_event(TurnEnded(None, "usage"), agent=f"agent-{index}"))
    turns = [
        sample
        for family in text_string_to_metric_families(exposition(state))
        for sample in family.samples
        if sample.name == "context_window_turns_total"
    ]

    assert len(turns) == 51
    assert sum(sample.value for sample in turns) == 1_000
    assert {sample.labels["agent"]: sample.value for sample in turns}["other"] == 950


def test_label_sets_are_bounded_with_an_unbounded_policy(make_event) -> None:
    state = MetricState(
        labels=LabelPolicy(agent=lambda name: name, model=lambda name: name), maximum_label_sets=10
    )
    for index in range(100):
        state.apply(make_event(TurnEnded(None, "usage"), agent=f"agent-{index}", model=f"model-{index}"))
    turns = exposition(state).count("\ncontext_window_turns_total{")

    assert turns == 11


def test_values_outside_an_enumeration_become_other(make_event) -> None:
    state = MetricState()
    for index in range(100):
        strategy = f"invented-{index}"
        state.apply(make_event(ContentCompressed(strategy, "x", "accepted", 100, 10)))  # type: ignore[arg-type]
    text = exposition(state)

    assert 'strategy="other"' in text
    assert "invented" not in text


def test_models_are_labeled_by_their_name_in_the_catalog() -> None:
    class OneModel:
        def lookup(self, model: str) -> ModelInfo | None:
            return ModelInfo("gpt-5", 400_000) if model.endswith("gpt-5") else None

        def smaller_limit(self, model: str, used: int) -> int | None:
            return None

        def family_limit(self, model: str) -> None:
            return None

        def next_limit(self, model: str, above: int) -> int | None:
            return None

        def cost_dollars(self, model: str, usage: object, at: float | None) -> float | None:
            return None

    label = model_label(OneModel())

    assert [label("openai/gpt-5"), label("mystery"), label("")] == ["gpt-5", "other", "other"]


def test_names_admitted_before_stay_admitted() -> None:
    first = AdmittedNames(2)
    assert [first("a"), first("b"), first("c")] == ["a", "b", "other"]
    second = AdmittedNames(2, admitted=first.names)

    assert [second("c"), second("b"), second("a")] == ["other", "b", "a"]
