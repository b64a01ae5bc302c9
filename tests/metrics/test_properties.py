"""Properties of the fold: for any order of events it equals their sum, and halves equal the whole."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from windowpane.core.events import (
    AlertFired,
    AlertResolved,
    BlockAdded,
    BlocksEvicted,
    ContentCompressed,
    Event,
    EventContext,
    EvictedBlock,
    PressureMeasured,
    SessionEnded,
    TurnEnded,
    Usage,
    ZoneChanged,
)
from windowpane.core.times import LIVE_SECONDS
from windowpane.core.vocabulary import COMPONENTS, CONTENT_TYPES, ZONES
from windowpane.core.window.blocks import Block
from windowpane.metrics import catalog
from windowpane.metrics.families import Family
from windowpane.metrics.fold import MetricState

tokens = st.integers(0, 200_000)
ratio = st.none() | st.floats(0, 2)
zone = st.sampled_from(ZONES)
severity = st.sampled_from(["warning", "critical"])
kind = st.sampled_from(CONTENT_TYPES)
by_component = st.dictionaries(st.sampled_from(COMPONENTS), tokens, max_size=3)

payloads = st.one_of(
    st.builds(
        TurnEnded,
        usage=st.none() | st.builds(Usage, tokens, tokens, tokens, tokens, tokens),
        count_source=st.just("usage"),
        cost_dollars=st.none() | st.integers(0, 5),
    ),
    st.builds(
        PressureMeasured,
        phase=st.sampled_from(["before", "after", "final"]),
        used_tokens=tokens,
        used_by_component=by_component,
        count_source=st.just("usage"),
        limit_tokens=st.none() | tokens,
        utilization=ratio,
        zone=st.none() | zone,
        added_by_component=by_component,
        turns_until_red=st.none() | st.just(math.inf) | st.floats(0, 100),
        estimate_error=st.none() | st.floats(-1, 1),
        cache_hit_ratio=ratio,
    ),
    st.builds(
        lambda kind, tokens: BlockAdded(Block("b", kind, tokens, 1, "g", 1, "", 0, "exact", None)), kind, tokens
    ),
    st.builds(
        lambda policy, kind, tokens: BlocksEvicted(
            policy, (EvictedBlock("b", kind, tokens, "drop", "r"),), tokens, tokens
        ),
        st.sampled_from(["hybrid", "agent", "mine"]),
        kind,
        tokens,
    ),
    st.builds(
        ContentCompressed,
        strategy=st.sampled_from(["compaction", "truncation"]),
        trigger=st.just("threshold"),
        outcome=st.sampled_from(["accepted", "rejected"]),
        tokens_before=tokens,
        tokens_after=tokens,
        scope=st.sampled_from(["content", "window"]),
    ),
    st.builds(ZoneChanged, zone, zone, tokens, st.floats(0, 1)),
    st.builds(AlertFired, st.sampled_from(["utilization", "regret"]), severity, st.just(1), st.none(), st.none()),
    st.builds(
        AlertResolved, st.sampled_from(["utilization", "regret"]), severity, st.just(1), st.none(), st.none()
    ),
    st.builds(SessionEnded, st.just("done")),
)


class Step(NamedTuple):
    """One event in the making."""

    session: int
    model: str
    at: float | None
    data: Any


steps = st.lists(
    st.builds(
        Step,
        st.integers(0, 4),
        st.sampled_from(["gpt-5", "o3"]),
        st.none() | st.integers(0, 3_000).map(float),
        payloads,
    ),
    max_size=40,
)


def events(given_steps: list[Step]) -> list[Event]:
    return [
        Event(
            EventContext(f"s{step.session}", f"agent-{step.session % 2}", step.model, 1, 1, "live", "x"),
            n,
            step.at,
            step.data,
        )
        for n, step in enumerate(given_steps)
    ]


def naive_counters(stream: list[Event]) -> dict[tuple[str, ...], float]:
    """Counters by (short name, agent, model, *labels), one addition an event."""
    total: dict[tuple[str, ...], float] = defaultdict(float)
    for event in stream:
        data, who = event.data, (event.context.agent, event.context.model)
        match data:
            case TurnEnded(usage=usage, cost_dollars=cost):
                total["turns", *who] += 1
                total["cost_dollars", *who] += cost or 0
                if usage:
                    for name in ("input", "output", "cache_read", "cache_write", "reasoning"):
                        total["model_tokens", *who, name] += getattr(usage, f"{name}_tokens")
            case PressureMeasured(phase="final"):
                for component, added in data.added_by_component.items():
                    total["added_tokens", *who, component] += added
                total["carried_tokens", *who, "fresh"] += data.used_tokens
            case BlocksEvicted(policy=policy, blocks=(block,)):
                total["evicted_blocks", *who, policy, block.content_type] += 1
                total["evicted_tokens", *who, policy, block.content_type] += block.tokens
            case ContentCompressed():
                total["compressions", *who, data.strategy, data.outcome] += 1
                if data.outcome == "accepted" and data.scope == "content":
                    total["compression_input_tokens", *who] += data.tokens_before
                    total["compression_output_tokens", *who] += data.tokens_after
            case ZoneChanged():
                total["zone_transitions", *who, data.from_zone, data.to_zone] += 1
            case AlertFired():
                total["alert_transitions", *who, data.alert, data.severity, "firing"] += 1
            case AlertResolved():
                total["alert_transitions", *who, data.alert, data.severity, "resolved"] += 1
    return {key: value for key, value in total.items() if value}


def counters(families: list[Family]) -> dict[tuple[str, ...], float]:
    return {
        (family.metric.name.removeprefix("context_window_").removesuffix("_total"), *point.labels): point.value
        for family in families
        if family.metric.kind == "counter"
        for point in family.points
        if point.value
    }


class Naive(NamedTuple):
    """A session as a plain reading of its events has it."""

    who: tuple[str, str]
    last_at: float | None
    measured: PressureMeasured | None
    error: float | None
    compression: float | None
    firing: frozenset[tuple[str, str]]


def naive_sessions(stream: list[Event]) -> list[Naive]:
    open_sessions: dict[str, Naive] = {}
    for event in stream:
        context, data = event.context, event.data
        was = open_sessions.get(context.session_id)
        if was is None and not isinstance(data, BlockAdded | PressureMeasured):
            continue
        now = was or Naive(("", ""), None, None, None, None, frozenset())
        now = now._replace(
            who=(context.agent, context.model), last_at=now.last_at if event.at is None else event.at
        )
        match data:
            case PressureMeasured():
                now = now._replace(measured=data)
                if data.phase == "final" and data.estimate_error is not None:
                    now = now._replace(error=data.estimate_error)
            case ContentCompressed() if data.ratio is not None:
                now = now._replace(compression=data.ratio)
            case AlertFired():
                now = now._replace(firing=now.firing | {(data.alert, data.severity)})
            case AlertResolved():
                now = now._replace(firing=now.firing - {(data.alert, data.severity)})
        open_sessions[context.session_id] = now
        if isinstance(data, SessionEnded):
            del open_sessions[context.session_id]
    return list(open_sessions.values())


def naive_gauges(sessions: list[Naive]) -> dict[tuple[str, ...], float]:
    result: dict[tuple[str, ...], float] = {}
    for who in {session.who for session in sessions}:
        mine = [session for session in sessions if session.who == who]
        read = [session.measured for session in mine if session.measured is not None]

        def put(name: str, values: list[float], how: Any, who: tuple[str, str] = who) -> None:
            if values:
                result[name, *who] = how(values)

        put("utilization_ratio", [m.utilization for m in read if m.utilization is not None], max)
        put("limit_tokens", [m.limit_tokens for m in read if m.limit_tokens is not None], sum)
        put("turns_until_red", [m.turns_until_red for m in read if m.turns_until_red is not None], min)
        put("compression_ratio", [s.compression for s in mine if s.compression is not None], min)
        put(
            "estimate_error_ratio",
            [s.error for s in mine if s.error is not None],
            lambda values: max(values, key=lambda value: (abs(value), value)),
        )
        weighted = [(m.cache_hit_ratio, max(m.used_tokens, 1)) for m in read if m.cache_hit_ratio is not None]
        if weighted:
            put("cache_hit_ratio", [sum(v * w for v, w in weighted) / sum(w for _, w in weighted)], max)
        for name in (*ZONES, None):
            count = sum((s.measured.zone if s.measured else None) == name for s in mine)
            result["sessions", *who, name or "unknown"] = count
        for alert in {alert for session in mine for alert in session.firing}:
            result["alerts_firing", *who, *alert] = sum(alert in session.firing for session in mine)
    return result


def gauges(families: list[Family]) -> dict[tuple[str, ...], float]:
    wanted = {
        "utilization_ratio", "limit_tokens", "turns_until_red", "compression_ratio", "estimate_error_ratio",
        "cache_hit_ratio", "sessions", "alerts_firing",
    }  # fmt: skip
    values: dict[tuple[str, ...], float] = {}
    for family in families:
        name = family.metric.name.removeprefix("context_window_")
        if family.metric.kind != "gauge" or name not in wanted:
            continue
        for point in family.points:
            labels = point.labels[:-1] if name == "turns_until_red" else point.labels
            if name != "alerts_firing" or point.value:
                values[name, *labels] = point.value
    return values


@given(steps)
def test_counters_equal_the_sum_over_the_events(given_steps: list[Step]) -> None:
    state = MetricState()
    state.write(events(given_steps))

    assert counters(state.collect(now=0)) == naive_counters(events(given_steps))


@given(steps, st.none() | st.integers(0, 4_000).map(float))
def test_gauges_equal_a_plain_loop_over_the_live_sessions(given_steps: list[Step], now: float | None) -> None:
    stream = events(given_steps)
    state = MetricState()
    state.write(stream)
    live = [
        session
        for session in naive_sessions(stream)
        if now is None or (session.last_at is not None and session.last_at >= now - LIVE_SECONDS)
    ]
    families = state.collect(now=now or 0, as_of="last" if now is None else "now")
    got, wanted = gauges(families), naive_gauges(live)

    assert got.keys() == wanted.keys()
    for key, value in wanted.items():
        assert math.isclose(got[key], value, rel_tol=1e-12) or got[key] == value, key


@given(steps)
def test_histograms_contain_every_observation(given_steps: list[Step]) -> None:
    stream = events(given_steps)
    state = MetricState()
    state.write(stream)
    sizes = [event.data.block.tokens for event in stream if isinstance(event.data, BlockAdded)]
    families = {family.metric: family for family in state.collect(now=0)}
    points = families[catalog.BLOCK_TOKENS].histograms if catalog.BLOCK_TOKENS in families else []

    assert sum(sum(point.counts) for point in points) == len(sizes)
    assert sum(point.total for point in points) == sum(sizes)


@given(steps, st.integers(0, 40))
def test_two_halves_with_a_dump_between_equal_the_whole(given_steps: list[Step], cut: int) -> None:
    stream = events(given_steps)
    whole, first, second = MetricState(), MetricState(), MetricState()
    whole.write(stream)
    first.write(stream[:cut])
    second.load(first.dump())
    second.write(stream[cut:])

    def counted(state: MetricState) -> dict[tuple[str, ...], Any]:
        families = [family for family in state.collect(now=1e12) if family.metric.kind != "gauge"]
        return {
            (family.metric.name, *point.labels): point[1:]
            for family in families
            for point in (*family.points, *family.histograms)
        }

    assert counted(second) == counted(whole)


@given(steps, st.integers(1, 3))
def test_memory_is_bounded_for_any_events(given_steps: list[Step], slots: int) -> None:
    state = MetricState(maximum_sessions=slots, maximum_label_sets=1)
    for event in events(given_steps):
        state.apply(event)
        assert state.open_sessions <= slots
    state.collect(now=0, as_of="last", top_sessions=2)
