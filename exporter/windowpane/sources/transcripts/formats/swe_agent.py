"""SWE-agent trajectories: `.traj`.

The window is `history`, the messages as the agent kept them; `trajectory` repeats it as steps and is read only
where there is no history. A demonstration (`is_demo`) was put into the window by the harness, so it is injected
memory whatever its role. Agents without native tool calls write thought and action into one text; it is split
after the thought, so that the observation which comes back as a user message can be linked to its action. Times
are not recorded, and usage only as totals of the run, which are reported and assigned to no call.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Final

from windowpane.sources.transcripts.formats.openai_chat import Chat, opening, text_of
from windowpane.sources.transcripts.json_document import (
    MAXIMUM_NAME_CHARS,
    DocumentLog,
    JsonObject,
    document_key,
    kind_of,
    load_document,
    record_digest,
    shape_of,
)
from windowpane.sources.transcripts.reader import FileStats, Problem
from windowpane.sources.transcripts.records import (
    ContentAdded,
    ModelCalled,
    Record,
    SessionClosed,
    SessionDescribed,
    SessionOpened,
    TotalsStated,
    ending,
)

_LIMITS: Final = (
    "exit_cost", "exit_context", "exit_command", "exit_command_timeout", "exit_total_execution_time",
    "early_exit",
)  # fmt: skip
FINISHED: Final = frozenset({"submitted", *_LIMITS, *(f"submitted ({limit})" for limit in _LIMITS)})
"""Ends of a run that are not errors, including those by a limit."""
_NO_MODELS: Final = frozenset({"human", "human_thought", "replay", "instant_empty_submit"})
"""Names that replace the model's in runs without one."""
_COSTS: Final = ("instance_cost", "total_cost")
_TOKENS: Final = ("tokens_sent", "tokens_received")


class SweAgentReader:
    """One run of one problem; with several attempts, a session for each."""

    format: ClassVar[str] = "swe_agent"

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        """Return whether the file has one of the format's lists, and its suffix or an environment."""
        paths = shape_of(head)
        if not paths & {"history", "trajectory", "attempts"}:
            return False
        return path.name.endswith(".traj") or "environment" in paths

    def read(self, path: Path, *, stats: FileStats, problems: list[Problem]) -> Iterator[Record]:
        """Yield the records of the run. Raises `SourceError` when the file has neither history nor trajectory."""
        log = DocumentLog(path, stats, problems)
        document = load_document(path, log)
        if not isinstance(document, dict):
            log.fail(f"expected an object with history or trajectory, got {kind_of(document)}")
        run = JsonObject(document, "", log)
        attempts = list(run.items("attempts")) if document.get("attempts") else [run]
        if not any(isinstance(attempt.value.get(key), list) for attempt in attempts for key in _LISTS):
            log.fail("the object has neither a history nor a trajectory")
        config = _config(run)
        problem = config.item("problem_statement").name("id") or path.stem
        model = config.item("agent").item("model").name("name") or ""
        largest = 0
        for number, attempt in enumerate(attempts):
            stats.sessions += 1
            stats.max_tool_output_chars = 0
            messages = _messages(attempt)
            suffix = f"-{number}" if len(attempts) > 1 else ""
            key = document_key(problem, digest=record_digest(opening(messages.value["history"]))) + suffix
            yield SessionOpened(key, "swe-agent", "" if model in _NO_MODELS else model)
            yield SessionDescribed(label=problem)
            run_reader = _SweAgentRun(stats)
            yield from run_reader.read(messages)
            yield from _close(attempt, stats, run_reader.calls)
            largest = max(largest, _largest_output(attempt, stats.max_tool_output_chars))
        stats.max_tool_output_chars = largest
        sent, received, cost = (stats.usage.get(name, 0) for name in (*_TOKENS, "instance_cost_microusd"))
        if sent or received or cost:
            log.unstated("the usage of single calls", sent=sent, received=received, dollars=cost / 1_000_000)


_LISTS: Final = ("history", "trajectory")


def _config(run: JsonObject) -> JsonObject:
    """Return the settings of the run, which are an object or its JSON text."""
    config = run.value.get("replay_config")
    if isinstance(config, str):
        try:
            config = json.loads(config)
        except (ValueError, RecursionError):
            run.wrong("replay_config", "an object, or one as JSON", config)
            config = None
    return JsonObject(config if isinstance(config, dict) else {}, "replay_config", run.log)


def _messages(attempt: JsonObject) -> JsonObject:
    """Return the attempt with its history, which is made from the steps where it is absent."""
    if isinstance(attempt.value.get("history"), list):
        return attempt
    history: list[Any] = []
    for step in attempt.items("trajectory"):
        query = step.value.get("query")
        if not history and isinstance(query, list):
            history.extend(query)
        history.append(
            {
                "role": "assistant",
                "content": step.text("response") or step.text("thought"),
                "thought": step.text("thought"),
                "action": step.text("action"),
            }
        )
        history.append({"role": "user", "content": step.text("observation")})
    return JsonObject({"history": history}, attempt.path, attempt.log)


def _largest_output(attempt: JsonObject, in_history: int) -> int:
    """Return the length of the largest observation, without the prompt that follows it in the history."""
    steps = attempt.value.get("trajectory")
    if not isinstance(steps, list) or not steps:
        return in_history
    outputs = [step.get("observation") for step in steps if isinstance(step, dict)]
    return max((len(text) for text in outputs if isinstance(text, str)), default=0)


def _close(attempt: JsonObject, stats: FileStats, calls: int) -> Iterator[Record]:
    info = attempt.item("info")
    totals = info.item("model_stats")
    for name in _TOKENS:
        tokens = totals.count(name)
        if tokens is not None:
            stats.add_usage(**{name: tokens})
    for name in _COSTS:
        dollars = totals.amount(name)
        if dollars is not None:
            key = f"{name}_microusd"
            stats.add_usage(**{key: round(dollars * 1_000_000)})
    sent, received = map(totals.count, _TOKENS)
    yield TotalsStated(sent, received, totals.amount(_COSTS[0]))
    counted = totals.count("api_calls")
    if counted is not None and counted != calls:
        info.log.unusual(totals.at("api_calls"), f"{counted} calls were counted, {calls} replies are recorded")
    status = info.text("exit_status")
    if status:
        yield SessionClosed(ending(status, finished=FINISHED))


class _SweAgentRun:
    """Reads the history of one attempt."""

    def __init__(self, stats: FileStats) -> None:
        self._stats = stats
        self._chat = Chat(stats)
        self.calls = 0

    def read(self, attempt: JsonObject) -> Iterator[Record]:
        """Yield the records of all messages."""
        for message in attempt.items("history"):
            role = self._chat.role(message)
            if role is None:
                continue
            self._chat.count(message)
            if message.value.get("is_demo") is True:
                yield from self._demonstration(message)
            elif role == "assistant":
                yield from self._reply(message)
                self.calls += 1
                self._stats.api_calls += 1
                self._stats.user_turns += 1
                yield ModelCalled(None)
            elif role == "tool":
                yield from self._chat.result(message, _call_id(message), None)
            elif role == "user" and self._chat.pending is not None:
                yield from self._chat.result(message, None, None)
            else:
                yield from self._chat.contents(message, role, None)

    def _demonstration(self, message: JsonObject) -> Iterator[Record]:
        text = text_of(message)
        if text:
            yield ContentAdded("memory_injection", text)

    def _reply(self, message: JsonObject) -> Iterator[Record]:
        self._chat.pending = None
        action = message.text("action")
        if message.value.get("tool_calls") or not action:
            yield from self._chat.contents(message, "assistant", None)
            return
        yield from self._chat.thinking(message, None)
        text, thought = text_of(message), message.text("thought") or ""
        response = thought if text.startswith(thought) else text
        if response:
            yield ContentAdded("assistant_response", response)
        self._stats.tool_calls += 1
        command = action.split(maxsplit=1)
        yield self._chat.step(command[0][:MAXIMUM_NAME_CHARS] if command else "", text[len(response) :], None)


def _call_id(message: JsonObject) -> str | None:
    """Return the id of the call that a tool message answers; the first of several."""
    ids = message.value.get("tool_call_ids")
    if isinstance(ids, list) and ids and isinstance(ids[0], str):
        return ids[0][:MAXIMUM_NAME_CHARS]
    return message.name("tool_call_id")
