"""The recordings of tau-bench and tau2-bench: many conversations in one document.

tau-bench results hold one bare message list per task, without times or usage. tau2-bench simulates an agent and a
user who is a model as well, and only the agent's window is observed. The user's calls, their usage and the
results of the user's tools belong to another window: they are counted in the statistics under `user_` names and
never enter. The orchestrator sends a user's message either to the agent or, when it calls tools, to the
environment, so the text of a message with tool calls does not reach the agent either. The agent's opening line is
fixed text, not a model call; it is in the window from the start and its turn has no usage. The policy is part of
the agent's system prompt.

`raw_data` is the model's whole reply, or its first choice in older recordings. It names the model that answered
and the part of the prompt that came from the cache; `usage` beside it has neither.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, Final

from windowpane.core.events import Usage
from windowpane.sources.transcripts.formats.openai_chat import (
    Chat,
    conversation,
    excludes_cache,
    stop_reason_of,
    usage_of,
)
from windowpane.sources.transcripts.json_document import (
    MAXIMUM_NAME_CHARS,
    DocumentLog,
    JsonObject,
    compact,
    document_key,
    items_of,
    kind_of,
    load_document,
    load_list,
    record_digest,
    shape_of,
)
from windowpane.sources.transcripts.json_lines import mapping, sequence
from windowpane.sources.transcripts.reader import FileStats, Problem
from windowpane.sources.transcripts.records import (
    ContentAdded,
    ModelCalled,
    Record,
    SessionClosed,
    SessionDescribed,
    SessionOpened,
    ending,
)


class TauBenchReader:
    """Reads tau-bench: a list of results, each with the trajectory of one trial of one task."""

    format: ClassVar[str] = "tau_bench"

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        """Return whether the file is a list of objects with a task and a trajectory."""
        del path
        paths = shape_of(head)
        return "[].task_id" in paths and ("[].traj" in paths or {"[].reward", "[].info"} <= paths)

    def read(self, path: Path, *, stats: FileStats, problems: list[Problem]) -> Iterator[Record]:
        """Yield one session per result. Raises `SourceError` when the file is not a list."""
        log = DocumentLog(path, stats, problems)
        document = load_document(path, log)
        if not isinstance(document, list):
            log.fail(f"expected a list of results, got {kind_of(document)}")
        if not document:
            log.unusual("", "the list of results is empty")
        dump = record_digest(document[0]) if document else ""
        seen: dict[str, int] = {}
        for result in items_of(document, "", log):
            if not isinstance(result.value.get("traj"), list):
                result.wrong("traj", "a list of messages", result.value.get("traj"))
                continue
            stats.sessions += 1
            trial = result.name("trial") or "0"
            key = unique_key(document_key(result.name("task_id"), trial=trial, digest=dump), seen, result)
            yield SessionOpened(key, "tau-bench")
            yield SessionDescribed(label=_task(result))
            chat = Chat(stats, calls_are_content=True)
            yield from conversation(result.items("traj"), chat, stats)
            failed = result.item("info").has("error")
            yield SessionClosed("error: other" if failed else "completed")


def _task(run: JsonObject) -> str:
    """Return the name of the task that a run attempted; empty where it is not recorded."""
    task = run.name("task_id")
    return f"task {task}" if task else ""


def unique_key(key: str, seen: dict[str, int], item: JsonObject) -> str:
    """Return *key*, numbered from its second use in a document, which is reported."""
    seen[key] = seen.get(key, 0) + 1
    if seen[key] == 1:
        return key
    item.log.unusual(item.path, f"its session has the same id as another of the document, number {seen[key]}")
    return f"{key[: MAXIMUM_NAME_CHARS - 10]}-{seen[key]}"


FINISHED: Final = frozenset({"user_stop", "agent_stop", "max_steps"})
_RUN_PATHS: Final = frozenset({"simulations", "info.user_info", "info.agent_info", "info.num_trials"})
_SIMULATION_PATHS: Final = frozenset({"[].termination_reason", "[].agent_cost", "[].user_cost"})


class Tau2Reader:
    """Reads tau2-bench: an object with `info` and `simulations`, or a bare list of simulations (submissions)."""

    format: ClassVar[str] = "tau2_bench"

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        """Return whether the file has a run's description, or is a list of simulations."""
        del path
        paths = shape_of(head)
        return bool(paths & _RUN_PATHS) or ("[].task_id" in paths and bool(paths & _SIMULATION_PATHS))

    def read(self, path: Path, *, stats: FileStats, problems: list[Problem]) -> Iterator[Record]:
        """Yield one session per simulation. Raises `SourceError` when the file holds no list of simulations."""
        log = DocumentLog(path, stats, problems)
        run = load_list(path, log, of="simulations")
        simulations = run.value["simulations"]
        dump = record_digest(simulations[0]) if simulations else ""
        setting = _Setting(run)
        seen: dict[str, int] = {}
        for simulation in items_of(simulations, "simulations", log):
            if not isinstance(simulation.value.get("messages"), list):
                simulation.wrong("messages", "a list of messages", simulation.value.get("messages"))
                continue
            stats.sessions += 1
            trial = simulation.name("trial") or "0"
            unnamed = document_key(simulation.name("task_id"), trial=trial, digest=dump)
            key = unique_key(simulation.name("id") or unnamed, seen, simulation)
            at = simulation.time("start_time")
            yield SessionOpened(key, setting.agent, setting.model, at=at)
            yield SessionDescribed(label=_task(simulation), at=at)
            yield from setting.contents(at)
            yield from _Simulation(stats, setting.model).read(simulation)
            reason = simulation.text("termination_reason")
            if reason:
                yield SessionClosed(ending(reason, finished=FINISHED), simulation.time("end_time"))


class _Setting:
    """The agent, model, policy and tools that all simulations of a run share."""

    def __init__(self, run: JsonObject) -> None:
        info = run.item("info")
        agent, environment = info.item("agent_info"), info.item("environment_info")
        self.agent = agent.name("implementation") or "tau2-bench"
        self.model = agent.name("llm") or ""
        self._policy = environment.text("policy")
        self._tools = [compact(tool.value) for tool in environment.items("tool_defs")]

    def contents(self, at: float | None) -> Iterator[ContentAdded]:
        """Yield the content of the agent's window before the first message, as far as it is recorded."""
        if self._policy:
            yield ContentAdded("system_prompt", self._policy, at=at)
        for tool in self._tools:
            yield ContentAdded("tool_definition", tool, at=at)


class _Simulation:
    """Reads the messages of one simulation from the agent's side."""

    def __init__(self, stats: FileStats, model: str) -> None:
        self._stats = stats
        self._model = model
        self._exclusive = False
        self._chat = Chat(stats, calls_are_content=True)

    def read(self, simulation: JsonObject) -> Iterator[Record]:
        """Yield the records of all messages."""
        self._exclusive = any(excludes_cache(usage) for usage in _stated_usage(simulation))
        for index, message in enumerate(simulation.items("messages")):
            role = self._chat.role(message)
            if role is None:
                continue
            self._chat.count(message)
            at = message.time("timestamp")
            if role == "user":
                yield from self._user(message, at)
            elif role == "assistant":
                yield from self._chat.contents(message, role, at)
                yield self._called(message, at, opens=index == 0)
            elif role in ("tool", "function"):
                yield from self._result(message, at)
            else:
                yield from self._chat.contents(message, role, at)

    def _user(self, message: JsonObject, at: float | None) -> Iterator[Record]:
        self._stats.user_turns += 1
        self._sum("user", message)
        if not message.value.get("tool_calls"):
            yield from self._chat.contents(message, "user", at)

    def _result(self, message: JsonObject, at: float | None) -> Iterator[Record]:
        contents = list(self._chat.contents(message, "tool", at))
        if message.text("requestor") != "user":
            yield from contents

    def _called(self, message: JsonObject, at: float | None, *, opens: bool) -> ModelCalled:
        usage = self._sum("agent", message)
        if not (opens and usage is None):
            self._stats.api_calls += 1
        raw = message.item("raw_data")
        served = raw.name("model") or ""
        choice = next(raw.items("choices"), raw)
        return ModelCalled(
            usage,
            model="" if self._model.endswith(served) else served,
            cost_dollars=message.amount("cost"),
            stop_reason=stop_reason_of(choice),
            at=at,
        )

    def _sum(self, side: str, message: JsonObject) -> Usage | None:
        raw = message.item("raw_data")
        whole = usage_of(raw, exclusive=self._exclusive and side == "agent")
        usage = whole or usage_of(message)
        if usage is None:
            return None
        self._stats.add_usage(
            **{f"{side}_prompt_tokens": usage.input_total, f"{side}_completion_tokens": usage.output_tokens}
        )
        if side == "agent":
            self._stats.peak_context = max(self._stats.peak_context, usage.input_total)
        return usage


def _stated_usage(simulation: JsonObject) -> Iterator[object]:
    """Yield the usage of the agent's calls as the model's whole replies state it, in any form."""
    for message in sequence(simulation.value.get("messages")):
        stated = mapping(message)
        if stated.get("role") == "assistant":
            yield mapping(stated.get("raw_data")).get("usage")
