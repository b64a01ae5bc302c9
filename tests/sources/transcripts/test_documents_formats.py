"""The document readers on each trap of their formats, in small documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from windowpane.sources.transcripts.formats.mini_swe_agent import MiniSweAgentReader
from windowpane.sources.transcripts.formats.openai_chat import OpenAIChatReader
from windowpane.sources.transcripts.formats.swe_agent import SweAgentReader
from windowpane.sources.transcripts.formats.tau_bench import Tau2Reader, TauBenchReader
from windowpane.sources.transcripts.reader import FileStats, Problem, Reader
from windowpane.sources.transcripts.records import ContentAdded, ModelCalled, Record, SessionClosed, SessionOpened

CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}
OPENING = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Look at one."}]
MESSAGES = [
    *OPENING,
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "a cat"},
    {"role": "assistant", "content": "A cat."},
]


class Reading(NamedTuple):
    records: list[Record]
    stats: FileStats
    problems: list[Problem]

    @property
    def contents(self) -> list[ContentAdded]:
        return [record for record in self.records if isinstance(record, ContentAdded)]

    @property
    def calls(self) -> list[ModelCalled]:
        return [record for record in self.records if isinstance(record, ModelCalled)]

    @property
    def keys(self) -> list[str]:
        return [record.session_key for record in self.records if isinstance(record, SessionOpened)]

    @property
    def endings(self) -> list[str]:
        return [record.reason for record in self.records if isinstance(record, SessionClosed)]


def read(reader: Reader, path: Path, document: object) -> Reading:
    path.write_text(json.dumps(document))
    stats, problems = FileStats(), []
    return Reading(list(reader.read(path, stats=stats, problems=problems)), stats, problems)


def simulation(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"id": "s1", "task_id": "t1", "trial": 0, "messages": list(messages), **fields}


@pytest.mark.parametrize(
    ("reader", "named"),
    [
        (OpenAIChatReader(), "messages"),
        (MiniSweAgentReader(), "messages"),
        (Tau2Reader(), "simulations"),
    ],
)
@pytest.mark.parametrize("bare", [True, False])
def test_an_empty_list_is_remarked(reader: Reader, named: str, bare: bool, tmp_path: Path) -> None:
    reading = read(reader, tmp_path / "empty.json", [] if bare else {named: []})

    assert [(problem.severity, problem.field) for problem in reading.problems] == [("odd", named)]
    assert reading.problems[0].problem == f"the list of {named} is empty"


class TestOpenAIChat:
    def test_a_conversation_is_read_in_order(self, tmp_path: Path) -> None:
        reading = read(OpenAIChatReader(), tmp_path / "chat.json", MESSAGES)

        assert [content.content_type for content in reading.contents] == [
            "system_prompt", "user_message", "tool_call", "tool_result", "assistant_response",
        ]  # fmt: skip
        assert [type(record).__name__ for record in reading.records[-2:]] == ["ContentAdded", "ModelCalled"]
        assert reading.stats.api_calls == 2
        assert reading.problems == []

    def test_a_result_carries_the_name_of_its_call(self, tmp_path: Path) -> None:
        result = read(OpenAIChatReader(), tmp_path / "chat.json", MESSAGES).contents[3]

        assert (result.tool_call_id, result.tool_name) == ("c1", "look")

    def test_an_object_may_name_model_and_tools(self, tmp_path: Path) -> None:
        document = {"model": "gpt-4o", "messages": MESSAGES, "tools": [{"type": "function"}]}
        reading = read(OpenAIChatReader(), tmp_path / "chat.json", document)

        assert isinstance(reading.records[0], SessionOpened)
        assert reading.records[0].model == "gpt-4o"
        assert reading.contents[0] == ContentAdded(
            "tool_definition", '{"type": "function"}', tool_name="function"
        )

    def test_each_part_is_one_content(self, tmp_path: Path) -> None:
        parts = [{"type": "text", "text": "See "}, {"type": "image_url", "image_url": {"url": "x"}}, "this"]
        reading = read(OpenAIChatReader(), tmp_path / "chat.json", [{"role": "user", "content": parts}])

        assert reading.contents == [
            ContentAdded("user_message", "See "),
            ContentAdded("media", None, media=1),
            ContentAdded("user_message", "this"),
        ]
        assert reading.problems == []

    def test_the_older_function_call_is_linked_to_its_result(self, tmp_path: Path) -> None:
        messages = [
            *OPENING,
            {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": "{}"}},
            {"role": "function", "name": "look", "content": "a cat"},
        ]
        reading = read(OpenAIChatReader(), tmp_path / "chat.json", messages)

        assert reading.contents[2].tool_call_id == reading.contents[3].tool_call_id == "step-0"

    def test_usage_beside_a_message_is_taken(self, tmp_path: Path) -> None:
        usage = {
            "prompt_tokens": 100,
            "completion_tokens": 7,
            "prompt_tokens_details": {"cached_tokens": 60},
            "cache_creation_input_tokens": 30,
            "completion_tokens_details": {"reasoning_tokens": 3},
        }
        messages = [*OPENING, {"role": "assistant", "content": "Yes.", "usage": usage}]
        call = read(OpenAIChatReader(), tmp_path / "chat.json", messages).calls[0]

        assert call.usage is not None
        assert call.usage.input_total == 100
        assert (call.usage.input_tokens, call.usage.cache_read_tokens, call.usage.cache_write_tokens) == (
            10,
            60,
            30,
        )
        assert call.usage.reasoning_tokens == 3

    @pytest.mark.parametrize(
        ("prompt", "cached", "written", "parts"),
        [
            (5, 9, 9, (5, 9, 9)),  # neither is in the prompt
            (12, 9, 900, (3, 9, 900)),  # what was read is, what was written is not
            (5, 0, 900, (5, 0, 900)),
            (18, 9, 9, (0, 9, 9)),
        ],
    )
    def test_a_cache_larger_than_the_prompt_is_beside_it(
        self, tmp_path: Path, prompt: int, cached: int, written: int, parts: tuple[int, int, int]
    ) -> None:
        usage = {
            "prompt_tokens": prompt,
            "prompt_tokens_details": {"cached_tokens": cached},
            "cache_creation_input_tokens": written,
        }
        messages = [*OPENING, {"role": "assistant", "content": "Yes.", "usage": usage}]
        used = read(OpenAIChatReader(), tmp_path / "chat.json", messages).calls[0].usage

        assert used is not None
        assert (used.input_tokens, used.cache_read_tokens, used.cache_write_tokens) == parts

    def test_a_conversation_that_grows_keeps_its_key(self, tmp_path: Path) -> None:
        keys = {
            read(OpenAIChatReader(), tmp_path / "chat.json", messages).keys[0]
            for messages in (MESSAGES[:3], MESSAGES[:4], MESSAGES)
        }

        assert len(keys) == 1

    def test_another_first_reply_is_another_session(self, tmp_path: Path) -> None:
        other = [*OPENING, {"role": "assistant", "content": "No."}]

        first = read(OpenAIChatReader(), tmp_path / "a.json", MESSAGES).keys
        assert first != read(OpenAIChatReader(), tmp_path / "b.json", other).keys

    def test_half_a_surrogate_pair_is_replaced(self, tmp_path: Path) -> None:
        """JSON values other than text become text, so that they can be counted and hashed."""
        path = tmp_path / "chat.json"
        path.write_text('[{"role": "user", "content": "broken \\ud83d here, whole \\ud83d\\ude00"}]')
        reading = list(OpenAIChatReader().read(path, stats=FileStats(), problems=[]))

        assert reading[1] == ContentAdded("user_message", "broken \ufffd here, whole \U0001f600")


class TestTauBench:
    def test_two_dumps_of_the_same_tasks_do_not_collide(self, tmp_path: Path) -> None:
        def dump(answer: str) -> list[dict[str, Any]]:
            last = [{"role": "assistant", "content": answer}]
            return [
                {"task_id": task, "trial": 0, "reward": 1.0, "info": {}, "traj": [*OPENING, *last]}
                for task in (0, 1)
            ]

        one = read(TauBenchReader(), tmp_path / "one.json", dump("Yes.")).keys
        two = read(TauBenchReader(), tmp_path / "two.json", dump("No.")).keys
        assert len({*one, *two}) == 4

    def test_a_task_that_raised_ends_in_an_error(self, tmp_path: Path) -> None:
        failed = {"task_id": 3, "trial": 0, "reward": 0.0, "info": {"error": "boom"}, "traj": []}
        reading = read(TauBenchReader(), tmp_path / "tau.json", [failed])

        assert reading.endings == ["error: other"]
        assert reading.stats.sessions == 1

    def test_the_same_trial_twice_is_two_sessions_and_noted(self, tmp_path: Path) -> None:
        result = {"task_id": 3, "trial": 0, "reward": 0.0, "info": {}, "traj": MESSAGES}
        reading = read(TauBenchReader(), tmp_path / "tau.json", [result, result])

        assert len(set(reading.keys)) == 2
        assert [problem.severity for problem in reading.problems] == ["odd"]


class TestTau2:
    def test_a_bare_list_of_simulations_is_read(self, tmp_path: Path) -> None:
        """Submissions hold the simulations alone."""
        reading = read(Tau2Reader(), tmp_path / "tau2.json", [simulation(*MESSAGES)])

        assert reading.keys == ["s1"]
        assert reading.stats.api_calls == 2

    def test_a_users_tool_call_hides_the_whole_message(self, tmp_path: Path) -> None:
        call = {"id": "u1", "name": "reboot", "arguments": {}, "requestor": "user"}
        reading = read(
            Tau2Reader(),
            tmp_path / "tau2.json",
            [
                simulation(
                    {"role": "user", "content": "Wait.", "tool_calls": [call]},
                    {"role": "tool", "id": "u1", "content": "Rebooted.", "requestor": "user"},
                    {"role": "user", "content": "Done.", "tool_calls": None},
                    {"role": "assistant", "content": "Good.", "usage": {"prompt_tokens": 9}},
                )
            ],
        )

        assert [content.text for content in reading.contents] == ["Done.", "Good."]
        assert reading.stats.tool_calls == 1

    def test_the_whole_reply_names_model_and_cache(self, tmp_path: Path) -> None:
        """A prompt counted without the cache is recognized by one call, and holds for all of the simulation."""

        def reply(prompt: int, cached: int) -> dict[str, Any]:
            usage = {"prompt_tokens": prompt, "completion_tokens": 4}
            whole = {
                **usage,
                "prompt_tokens_details": {"cached_tokens": cached},
                "cache_creation_input_tokens": 50,
            }
            choices = [{"finish_reason": "tool_calls", "message": {"content": "Yes."}}]
            raw = {"model": "claude-3-7-sonnet-20250219", "usage": whole, "choices": choices}
            return {"role": "assistant", "content": "Yes.", "usage": usage, "raw_data": raw}

        run = {
            "info": {"agent_info": {"llm": "litellm_proxy/best"}},
            "simulations": [simulation(OPENING[1], reply(900, 800), OPENING[1], reply(400, 6_000))],
        }
        reading = read(Tau2Reader(), tmp_path / "tau2.json", run)

        assert [call.usage and call.usage.input_total for call in reading.calls] == [1_750, 6_450]
        assert [call.model for call in reading.calls] == ["claude-3-7-sonnet-20250219"] * 2
        assert [call.stop_reason for call in reading.calls] == ["tool_calls"] * 2
        assert reading.stats.peak_context == 6_450
        assert reading.problems == []

    @pytest.mark.parametrize("served", ["gpt-4o", None, 3.5])
    def test_the_model_of_the_run_is_not_repeated(self, tmp_path: Path, served: object) -> None:
        message = {"role": "assistant", "content": "Yes.", "raw_data": {"model": served, "finish_reason": "stop"}}
        run = {"info": {"agent_info": {"llm": "openai/gpt-4o"}}, "simulations": [simulation(OPENING[1], message)]}

        (call,) = read(Tau2Reader(), tmp_path / "tau2.json", run).calls

        assert (call.model, call.stop_reason) == ("", "stop")

    def test_a_time_without_a_zone_is_utc(self, tmp_path: Path) -> None:
        """The benchmark writes local times without a zone; they are taken as UTC, with one they are exact."""
        messages = [
            {"role": "user", "content": "a", "timestamp": "1970-01-01T00:01:00"},
            {"role": "user", "content": "b", "timestamp": "1970-01-01T01:01:00+01:00"},
        ]
        reading = read(Tau2Reader(), tmp_path / "tau2.json", [simulation(*messages)])

        assert [content.at for content in reading.contents] == [60.0, 60.0]

    @pytest.mark.parametrize(
        ("reason", "ending"),
        [
            ("user_stop", "user_stop"),
            ("too_many_errors", "error: too_many_errors"),
            ("anything at all", "error: other"),
        ],
    )
    def test_endings_are_a_bounded_set(self, tmp_path: Path, reason: str, ending: str) -> None:
        reading = read(Tau2Reader(), tmp_path / "tau2.json", [simulation(termination_reason=reason)])

        assert reading.endings == [ending]

    def test_tool_definitions_and_policy_open_the_window(self, tmp_path: Path) -> None:
        """The recorded part of the agent's system prompt is in every simulation."""
        run = {
            "info": {"environment_info": {"policy": "Be kind.", "tool_defs": [{"name": "look"}]}},
            "simulations": [simulation(), simulation(id="s2")],
        }
        reading = read(Tau2Reader(), tmp_path / "tau2.json", run)

        opening = ["system_prompt", "tool_definition"]
        assert [content.content_type for content in reading.contents] == opening * 2


class TestSweAgent:
    def test_steps_replace_a_missing_history(self, tmp_path: Path) -> None:
        step = {
            "query": OPENING,
            "response": "I look.\n```\nls\n```",
            "thought": "I look.\n",
            "action": "ls",
            "observation": "one.py",
        }
        reading = read(SweAgentReader(), tmp_path / "run.traj", {"trajectory": [step]})

        assert [content.content_type for content in reading.contents] == [
            "system_prompt", "user_message", "assistant_response", "tool_call", "tool_result",
        ]  # fmt: skip
        assert reading.contents[3].tool_call_id == reading.contents[4].tool_call_id

    def test_a_demonstration_of_any_role_is_injected_and_never_called(self, tmp_path: Path) -> None:
        history = [
            {"role": "user", "content": "demo task", "is_demo": True},
            {"role": "assistant", "content": "demo reply", "action": "ls", "is_demo": True},
            {"role": "user", "content": "real task", "is_demo": False},
        ]
        reading = read(SweAgentReader(), tmp_path / "run.traj", {"history": history})

        assert [content.content_type for content in reading.contents] == [
            "memory_injection", "memory_injection", "user_message",
        ]  # fmt: skip
        assert reading.calls == []

    def test_the_message_after_a_reply_without_an_action_is_the_users(self, tmp_path: Path) -> None:
        history = [
            {"role": "assistant", "content": "Hm.", "thought": "Hm.", "action": ""},
            {"role": "user", "content": "Your output was not formatted correctly."},
        ]
        reading = read(SweAgentReader(), tmp_path / "run.traj", {"history": history})

        assert [content.content_type for content in reading.contents] == ["assistant_response", "user_message"]

    def test_each_attempt_is_a_session(self, tmp_path: Path) -> None:
        attempt = {"history": MESSAGES, "info": {"exit_status": "submitted (exit_cost)"}}
        document = {"attempts": [attempt, attempt], **attempt}
        reading = read(SweAgentReader(), tmp_path / "run.traj", document)

        assert len(set(reading.keys)) == 2
        assert reading.endings == ["submitted (exit_cost)"] * 2
        assert reading.stats.messages == 2 * len(MESSAGES)

    def test_counted_calls_without_a_reply_are_noted(self, tmp_path: Path) -> None:
        document = {"history": MESSAGES, "info": {"model_stats": {"api_calls": 7}}}
        reading = read(SweAgentReader(), tmp_path / "run.traj", document)

        assert [problem.field for problem in reading.problems] == ["info.model_stats.api_calls"]
        assert reading.stats.api_calls == 2

    @pytest.mark.parametrize("name", ["human", "replay", "instant_empty_submit"])
    def test_a_replayer_is_not_a_model(self, tmp_path: Path, name: str) -> None:
        config = json.dumps({"agent": {"model": {"name": name}}})
        opened = read(SweAgentReader(), tmp_path / "run.traj", {"history": [], "replay_config": config}).records[
            0
        ]

        assert isinstance(opened, SessionOpened)
        assert opened.model == ""

    def test_the_totals_of_the_run_are_listed(self, tmp_path: Path) -> None:
        totals = {"instance_cost": 3.21, "tokens_sent": 1_234_567, "tokens_received": 8_901, "api_calls": 0}
        document = {"history": [], "info": {"model_stats": totals}}
        (problem,) = read(SweAgentReader(), tmp_path / "run.traj", document).problems

        stated = "usage of single calls; its totals: 1,234,567 tokens sent, 8,901 received, $3.21"
        assert problem.problem.endswith(stated)


class TestMiniSweAgent:
    def test_an_observation_of_a_text_agent_answers_its_command(self, tmp_path: Path) -> None:
        messages = [
            *OPENING,
            {"role": "assistant", "content": "Go.\n```bash\nls\n```", "extra": {"actions": [{"command": "ls"}]}},
            {"role": "user", "content": "<output>one.py</output>", "extra": {"returncode": 0}},
        ]
        reading = read(MiniSweAgentReader(), tmp_path / "run.traj.json", {"info": {}, "messages": messages})

        assert [content.content_type for content in reading.contents][2:] == [
            "assistant_response", "tool_call", "tool_result",
        ]  # fmt: skip
        assert reading.contents[4].tool_name == "bash"

    def test_a_long_name_keeps_room_for_the_part_that_distinguishes_runs(self, tmp_path: Path) -> None:
        """Keys fit a session id of 200 characters with their digest."""
        run = {"info": {}, "instance_id": "x" * 500, "messages": MESSAGES}
        other = {**run, "messages": [*OPENING, {"role": "assistant", "content": "No."}]}
        keys = [read(MiniSweAgentReader(), tmp_path / "a.traj.json", one).keys[0] for one in (run, other)]

        assert len({key[:200] for key in keys}) == 2

    def test_a_reply_without_a_command_is_answered_by_the_user(self, tmp_path: Path) -> None:
        messages = [
            *OPENING,
            {"role": "assistant", "content": "Which?"},
            {"role": "user", "content": "Give one command."},
        ]
        reading = read(MiniSweAgentReader(), tmp_path / "run.traj.json", messages)

        assert [content.content_type for content in reading.contents][-1] == "user_message"

    def test_a_run_still_going_is_not_closed(self, tmp_path: Path) -> None:
        reading = read(MiniSweAgentReader(), tmp_path / "run.traj.json", {"info": {}, "messages": MESSAGES})

        assert reading.endings == []

    def test_a_prompt_without_its_cache_is_recognized(self, tmp_path: Path) -> None:
        def reply(prompt: int, cached: int) -> dict[str, Any]:
            usage = {"prompt_tokens": prompt, "prompt_tokens_details": {"cached_tokens": cached}}
            return {"role": "assistant", "content": "Hi.", "extra": {"response": {"usage": usage}}}

        messages = [reply(900, 800), reply(400, 6_000)]
        reading = read(MiniSweAgentReader(), tmp_path / "run.traj.json", {"info": {}, "messages": messages})

        assert [call.usage and call.usage.input_total for call in reading.calls] == [1_700, 6_400]

    @pytest.mark.parametrize(
        ("served", "told"), [("deepseek-chat", ""), ("deepseek-v4", "deepseek-v4"), (None, "")]
    )
    def test_the_served_model_is_recorded_only_if_it_differs(
        self, tmp_path: Path, served: str | None, told: str
    ) -> None:
        run = {
            "info": {"config": {"model": {"model_name": "deepseek/deepseek-chat"}}},
            "messages": [{"role": "assistant", "content": "Hi.", "extra": {"response": {"model": served}}}],
        }
        reading = read(MiniSweAgentReader(), tmp_path / "run.traj.json", run)

        assert reading.calls[0].model == told
