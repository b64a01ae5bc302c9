"""Calls from telemetry in sessions: the windows of an observed client, and the rules of what belongs together."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from recordings import assembled, items

from windowpane.config.schema import Config
from windowpane.core.events import (
    BlockAdded,
    BlocksEvicted,
    CompactionMeasured,
    Event,
    PressureMeasured,
    SessionStarted,
    TurnEnded,
    Usage,
)
from windowpane.core.tracking import SessionInfo, SessionTracker
from windowpane.models.wire.calls import Shape, parse_call, read_reply
from windowpane.models.wire.replies import Reply, ReplyPart
from windowpane.sources.clients.model_profiles import packaged_profile
from windowpane.sources.conversations.observer import WindowObserver
from windowpane.sources.receiver.call_recorder import CallRecorder, RecorderSettings
from windowpane.sources.telemetry.reported_call import (
    Assembled,
    AssembledCall,
    AssembledCompaction,
    ReportedCall,
    ReportedCompaction,
)

START = 1_700_000_000.0
SYSTEM = "You are a careful weather guide. Answer briefly and name the path to take."
FIRST = "What is the weather in Oslo today, and which path should we take?"
SECOND = "And tomorrow, would you take the same path again?"
RESULT = "Oslo: sunny, 21 degrees, wind from the north at 3 metres per second."
ANSWER = "Answer number {}: it is sunny, take the north path."
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = {"name": "weather", "description": "Return the weather of a city."}


class Recording:
    """A recorder and its events."""

    def __init__(self, **settings: Any) -> None:
        self.events: list[Event] = []
        self.recorder = CallRecorder(
            RecorderSettings(emit=self.events.extend, digest=str, config=Config(), stream="s", **settings)
        )

    def record(self, *calls: Assembled) -> None:
        for one in calls:
            self.recorder.record(one)
        self.recorder.flush()

    def of(self, kind: type, session: str | None = None) -> list[Any]:
        return [
            event.data
            for event in self.events
            if isinstance(event.data, kind) and session in (None, event.context.session_id)
        ]

    def sessions(self) -> dict[str, str | None]:
        """Return the sessions with their parents."""
        return {
            event.context.session_id: event.context.parent_session_id
            for event in self.events
            if isinstance(event.data, SessionStarted)
        }


def recorded(name: str) -> Recording:
    recording = Recording()
    recording.record(*assembled(items(name)))
    return recording


def chat_bodies() -> list[tuple[dict[str, Any], dict[str, Any]]]:
    call = {"id": "call_weatherXYZ0123456789", "type": "function",
            "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}  # fmt: skip
    messages: list[dict[str, Any]] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": FIRST}]
    tools = [{"type": "function", "function": {**WEATHER, "parameters": PARAMETERS}}]
    steps: list[tuple[dict[str, Any], list[dict[str, Any]]]] = [
        ({"role": "assistant", "content": None, "tool_calls": [call]},
         [{"role": "tool", "tool_call_id": call["id"], "content": RESULT}]),
        ({"role": "assistant", "content": ANSWER.format(2)}, [{"role": "user", "content": SECOND}]),
        ({"role": "assistant", "content": ANSWER.format(3)}, []),
    ]  # fmt: skip
    bodies = []
    for number, (reply, after) in enumerate(steps):
        usage = {"prompt_tokens": 150 + 50 * number, "completion_tokens": 11 + number,
                 "prompt_tokens_details": {"cached_tokens": 40}}  # fmt: skip
        bodies.append(
            (
                {"model": "gpt-4o-2024-08-06", "messages": list(messages), "tools": tools},
                {"model": "gpt-4o-2024-08-06", "choices": [{"message": reply}], "usage": usage},
            )
        )
        messages += [reply, *after]
    return bodies


def anthropic_bodies() -> list[tuple[dict[str, Any], dict[str, Any]]]:
    use = {"type": "tool_use", "id": "toolu_weatherXYZ0123456789", "name": "weather", "input": {"city": "Oslo"}}
    messages: list[dict[str, Any]] = [{"role": "user", "content": FIRST}]
    tools = [{**WEATHER, "input_schema": PARAMETERS}]
    result = {"type": "tool_result", "tool_use_id": use["id"], "content": RESULT}
    steps: list[tuple[list[dict[str, Any]], list[dict[str, Any]]]] = [
        ([use], [{"role": "user", "content": [result]}]),
        ([{"type": "text", "text": ANSWER.format(2)}], [{"role": "user", "content": SECOND}]),
        ([{"type": "text", "text": ANSWER.format(3)}], []),
    ]
    bodies = []
    for number, (content, after) in enumerate(steps):
        usage = {"input_tokens": 90 + 50 * number, "output_tokens": 11 + number, "cache_read_input_tokens": 40,
                 "cache_creation_input_tokens": 20}  # fmt: skip
        bodies.append(
            (
                {
                    "model": "claude-sonnet-4-5-20250929",
                    "system": SYSTEM,
                    "messages": list(messages),
                    "tools": tools,
                },
                {"type": "message", "role": "assistant", "content": content, "usage": usage},
            )
        )
        messages += [{"role": "assistant", "content": content}, *after]
    return bodies


def observed(shape: Shape, bodies: list[tuple[dict[str, Any], dict[str, Any]]]) -> Recording:
    """Return what an observed client gives for the same conversation."""
    recording = Recording()
    model = bodies[0][0]["model"]
    limits = packaged_profile(model).limits
    tracker = SessionTracker(
        SessionInfo("s", "a", model, "live", "s"), emit=recording.events.extend, digest=str, limits=limits,
        settings=Config().tracker_settings(), clock=lambda: START,
    )  # fmt: skip
    tracker.start()
    observer = WindowObserver(tracker, packaged_profile, digest=str)
    for call, reply in bodies:
        observer.record_call(parse_call(shape, call))
        observer.record_reply(read_reply(reply))
    tracker.flush()
    return recording


def window(recording: Recording) -> Counter[tuple[str, str | None, int]]:
    blocks = [event.block for event in recording.of(BlockAdded)]
    return Counter(
        (block.content_type, (block.text or "").replace('": "', '":"'), block.tokens)
        for block in blocks
        if block.content_type not in ("tool_definition", "unattributed")
    )


def totals(recording: Recording) -> list[tuple[int, int]]:
    return [
        (event.used_tokens, event.added_tokens)
        for event in recording.of(PressureMeasured)
        if event.phase in ("final", "next")
    ]


OPENAI = ["openinference_openai", "openinference_responses", "openllmetry_openai", "vercel_proto", "vercel_json"]
ANTHROPIC = ["openinference_anthropic", "openllmetry_anthropic"]


@pytest.mark.parametrize("name", [*OPENAI, "otel_openai_events", "otel_openai_structured"])
def test_the_window_is_that_of_an_observed_openai_client(name: str) -> None:
    theirs, ours = observed("chat", chat_bodies()), recorded(name)

    assert window(ours) == window(theirs)
    assert totals(ours) == totals(theirs)
    assert ours.of(BlocksEvicted) == []


@pytest.mark.parametrize("name", ANTHROPIC)
def test_the_window_is_that_of_an_observed_anthropic_client(name: str) -> None:
    """Tool uses and results, system prompt and cache as Anthropic's client sends them."""
    theirs, ours = observed("anthropic", anthropic_bodies()), recorded(name)

    assert window(ours) == window(theirs)
    assert totals(ours) == totals(theirs)
    assert [event.cost_dollars for event in ours.of(TurnEnded)] == [0.000522, 0.000687, 0.000852]


@pytest.mark.parametrize("name", [*OPENAI, *ANTHROPIC])
def test_reading_a_recording_again_gives_the_same_events(name: str) -> None:
    """Ids, times and order depend on the reports only, so that a dump can be imported again."""
    assert recorded(name).events == recorded(name).events


def call(
    number: int,
    *,
    tokens: int = 1_000,
    messages: list[str] | None = None,
    trace: str = "t",
    agent: str = "",
    conversation: str = "c",
    part: str = "",
    at: float | None = None,
    enclosing: str = "",
    outer: str = "",
    error: str = "",
) -> AssembledCall:
    started = START + (number * 10 if at is None else at)
    roles = ["user", "assistant"]
    listed = None if messages is None else [
        {"role": roles[index % 2], "content": [{"type": "text", "text": text}]}
        for index, text in enumerate(messages)
    ]  # fmt: skip
    reported = ReportedCall(
        "test", "gpt-4o", listed, usage=None if error else Usage(tokens, 10), conversation=conversation,
        agent=agent, part=part, error=error,
    )  # fmt: skip
    return AssembledCall(reported, trace, f"span{number}", started, started + 2, "app", "", enclosing, outer)


def test_a_session_that_was_idle_continues_in_another_stream() -> None:
    recording = Recording()
    recording.record(*(call(number, tokens=10_000) for number in (0, 1, 100_000, 100_001)))

    streams = [event.context.stream_id for event in recording.events if isinstance(event.data, SessionStarted)]
    assert streams == ["otlp:c/s", "otlp:c/s/2"]
    assert len({(event.context.stream_id, event.n) for event in recording.events}) == len(recording.events)


def test_usage_alone_gives_totals_and_growth() -> None:
    recording = Recording()
    recording.record(*(call(number, tokens=10_000 + 9_000 * number) for number in range(5)))

    finals = [event for event in recording.of(PressureMeasured) if event.phase == "final"]
    assert [event.used_tokens for event in finals] == [10_000, 19_000, 28_000, 37_000, 46_000]
    assert 8_900 < finals[-1].added_tokens <= 9_000
    assert recording.sessions() == {"otlp:c": None}
    assert {event.block.content_type for event in recording.of(BlockAdded)} == {"unattributed"}


def test_without_a_conversation_usage_belongs_to_its_trace() -> None:
    recording = Recording()
    recording.record(
        *(call(number, conversation="", trace=trace) for number, trace in enumerate(["x", "x", "y"]))
    )

    assert recording.sessions() == {"otlp:x": None, "otlp:y": None}
    assert len(recording.of(TurnEnded, "otlp:x")) == 2


def test_without_a_conversation_messages_are_matched_across_traces() -> None:
    answer = "The north path is the dry one, and it is open until the evening of the last day of the month."
    first = call(0, messages=["Which path?"], conversation="", trace="x")
    first.call.reply = (ReplyPart("assistant_response", answer),)
    second = call(1, messages=["Which path?", answer, "And tomorrow?"], conversation="", trace="y")
    other = call(2, messages=["Another question of another user"], conversation="", trace="z")
    recording = Recording()
    recording.record(first, second, other)

    assert recording.sessions() == {"otlp:x": None, "otlp:z": None}
    assert [len(recording.of(TurnEnded, session)) for session in recording.sessions()] == [2, 1]


def test_other_agents_of_a_conversation_are_child_sessions() -> None:
    recording = Recording()
    recording.record(
        call(0, agent="planner"),
        call(1, agent="searcher"),
        call(2),
        call(3, enclosing="s9", outer="r"),
        call(4, part="Explore"),
        call(5, agent="searcher", tokens=1_500),
    )

    assert recording.sessions() == {
        "otlp:c": None,
        "otlp:c/searcher": "otlp:c",
        "otlp:c/s9": "otlp:c",
        "otlp:c/Explore": "otlp:c",
    }
    assert len(recording.of(TurnEnded, "otlp:c")) == len(recording.of(TurnEnded, "otlp:c/searcher")) == 2


def test_sub_agents_without_a_conversation_have_their_parent() -> None:
    recording = Recording()
    recording.record(
        call(0, messages=["Plan the trip to the north"], conversation="", agent="planner", enclosing="r"),
        call(
            1, messages=["Find the weather in Oslo"], conversation="", agent="searcher", enclosing="s", outer="r"
        ),
    )

    assert recording.sessions() == {"otlp:t": None, "otlp:t/span1": "otlp:t"}


def test_a_call_that_comes_too_late_does_not_change_the_window() -> None:
    recording = Recording()
    recording.record(
        call(1, tokens=50_000, messages=["One", "Two", "Three"]), call(0, tokens=10_000, messages=["One"], at=-5)
    )
    recording.record(call(2, tokens=51_000, messages=["One", "Two", "Three", "Four", "Five"]))

    assert recording.sessions() == {"otlp:c": None, "otlp:c/span0": "otlp:c"}
    assert recording.of(BlocksEvicted) == []
    assert [event.usage.input_total for event in recording.of(TurnEnded)] == [50_000, 10_000, 51_000]


def test_a_stated_compaction_is_measured_by_the_next_call() -> None:
    recording = Recording()
    compaction = AssembledCompaction(ReportedCompaction("auto", 150_000, 30_000), "c", "claude-code", START + 25)
    recording.record(call(1, tokens=120_000), call(2, tokens=121_000), compaction, call(3, tokens=31_000))
    (measured,) = recording.of(CompactionMeasured)

    assert (measured.tokens_before, measured.tokens_after) == (121_000, 31_000)
    assert recording.of(BlocksEvicted) == []


def test_a_failed_call_does_not_end_the_turn() -> None:
    recording = Recording()
    message = "This model's maximum context length is 128000 tokens, however you requested 140000 tokens"
    recording.record(call(0), call(1, error=message), call(2, error="rate limit"), call(3))

    assert len(recording.of(TurnEnded)) == 2
    assert [event.data.type for event in recording.events].count("overflow.detected") == 1


def test_a_session_that_is_recorded_elsewhere_is_skipped() -> None:
    """The transcript of a coding agent holds more than its telemetry, and both would count twice."""
    recording = Recording(recorded_elsewhere=lambda session: session == "c")
    recording.record(call(0), call(1, conversation="d"))

    assert recording.sessions() == {"otlp:d": None}
    assert recording.recorder.skipped == 1


def test_replies_are_part_of_the_window() -> None:
    one = call(0, messages=["Which path?"])
    one.call.reply = Reply((ReplyPart("assistant_response", "The north path."),)).parts
    recording = Recording()
    recording.record(one)

    assert [event.block.text for event in recording.of(BlockAdded)][:2] == ["Which path?", "The north path."]


def flagged(number: int, total: int, *, compacted: bool = True, **more: Any) -> AssembledCall:
    """Return a call without messages, whose span marks the conversation as compacted."""
    call = ReportedCall(
        "gen_ai", "gpt-4o", usage=Usage(total, 10), conversation="c", is_compacted=compacted, **more
    )
    return AssembledCall(call, "t", f"s{number}", START + 10 * number, START + 10 * number + 1)


def test_a_flag_and_a_smaller_total_are_a_compaction() -> None:
    """Every call after a compaction has the flag: only the one that is smaller than the one before follows it."""
    recording = Recording()
    recording.record(
        flagged(0, 90_000, compacted=False), flagged(1, 20_000), flagged(2, 21_000), flagged(3, 20_500)
    )

    assert [(one.tokens_before, one.tokens_after) for one in recording.of(CompactionMeasured)] == [
        (90_000, 20_000)
    ]


def test_the_size_of_the_window_is_stated_by_a_call() -> None:
    recording = Recording()
    recording.record(flagged(0, 90_000, window_tokens=400_000), flagged(1, 91_000, window_tokens=400_000))

    last = recording.of(PressureMeasured)[-1]
    assert (last.limit_tokens, last.limit_source) == (400_000, "provider")


def test_a_compacted_conversation_shares_no_message_with_the_one_before() -> None:
    """Without the flag it is the first call of a sub-agent with the same system prompt."""
    recording = Recording()
    lists = [[{"role": "user", "content": FIRST}], [{"role": "user", "content": "Resume: Oslo was sunny."}]]
    recording.record(
        *(flagged(number, 100, messages=sent, system=SYSTEM, reply=()) for number, sent in enumerate(lists))
    )

    assert list(recording.sessions()) == ["otlp:c"]
