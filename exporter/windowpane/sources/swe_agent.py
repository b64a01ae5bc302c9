"""SWE-agent trajectories: `.traj`.

The window is `history`, the messages as the agent kept them; `trajectory` repeats it as steps and is read only
where there is no history. A demonstration (`is_demo`) was put into the window by the harness, so it is injected
memory whatever its role. Agents without native tool calls write thought and action into one text; it is split
after the thought, so that the observation which comes back as a user message can be linked to its action. There
are no times, and usage is known only as totals of the run, which are reported and given to no call.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Final

from windowpane.sources.json_document import (
    MAXIMUM_NAME_CHARS,
    DocumentLog,
    DocumentReader,
    JsonObject,
    document_key,
    kind_of,
    load_document,
    record_digest,
    shape_of,
)
from windowpane.sources.openai_chat import Chat, opening, text_of
from windowpane.sources.reader import FileStats, Problem
from windowpane.sources.records import ContentAdded, ModelCalled, Record, SessionClosed, SessionOpened, ending

_LIMITS: Final = (
    "exit_cost", "exit_context", "exit_command", "exit_command_timeout", "exit_total_execution_time",
    "early_exit",
)  # fmt: skip
FINISHED: Final = frozenset({"submitted", *_LIMITS, *(f"submitted ({limit})" for limit in _LIMITS)})
"""Ways to end that are no error, those cut off by a limit included."""
_NO_MODELS: Final = frozenset({"human", "human_thought", "replay", "instant_empty_submit"})
"""Names of what stands in for a model."""
_COSTS: Final = ("instance_cost", "total_cost")
_TOKENS: Final = ("tokens_sent", "tokens_received")


class SweAgentReader(DocumentReader):
    """One run of one problem; with several attempts, a session for each."""

    format: ClassVar[str] = "swe_agent"

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:
        """By its suffix and one of its lists, or by an environment beside them."""
        paths = shape_of(head)
        if not paths & {"history", "trajectory", "attempts"}:
            return False
        return path.name.endswith(".traj") or "environment" in paths

    def read(self, path: Path, *, stats: FileStats, problems: list[Problem]) -> Iterator[Record]:
        """Records of the run. Raises `SourceError` when the file has neither history nor trajectory."""
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
            run_reader = _Run(stats)
            yield from run_reader.read(messages)
            yield from _close(attempt, stats, run_reader.calls)
            largest = max(largest, _largest_output(attempt, stats.max_tool_output_chars))
        stats.max_tool_output_chars = largest


_LISTS: Final = ("history", "trajectory")


def _config(run: JsonObject) -> JsonObject:
    """The settings the run was replayed with: an object, or one written as text."""
    config = run.value.get("replay_config")
    if isinstance(config, str):
        try:
            config = json.loads(config)
        except (ValueError, RecursionError):
            run.wrong("replay_config", "an object, or one as JSON", config)
            config = None
    return JsonObject(config if isinstance(config, dict) else {}, "replay_config", run.log)


def _messages(attempt: JsonObject) -> JsonObject:
    """The attempt with its history, made from the steps where it has none."""
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
    """Length of the largest tool output: an observation, without the prompt the history has after it."""
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
            stats.usage[key] = stats.usage.get(key, 0) + round(dollars * 1_000_000)
    counted = totals.count("api_calls")
    if counted is not None and counted != calls:
        info.log.unusual(totals.at("api_calls"), f"{counted} calls were counted, {calls} replies are recorded")
    status = info.text("exit_status")
    if status:
        yield SessionClosed(ending(status, finished=FINISHED))


class _Run:
    """Reads the history of one attempt."""

    def __init__(self, stats: FileStats) -> None:
        self._stats = stats
        self._chat = Chat(stats)
        self.calls = 0

    def read(self, attempt: JsonObject) -> Iterator[Record]:
        """The records of all messages."""
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
        said = thought if text.startswith(thought) else text
        if said:
            yield ContentAdded("assistant_response", said)
        self._stats.tool_calls += 1
        words = action.split(maxsplit=1)
        yield self._chat.step(words[0][:MAXIMUM_NAME_CHARS] if words else "", text[len(said) :], None)


def _call_id(message: JsonObject) -> str | None:
    """The call a tool message answers; the first where it names several."""
    ids = message.value.get("tool_call_ids")
    if isinstance(ids, list) and ids and isinstance(ids[0], str):
        return ids[0][:MAXIMUM_NAME_CHARS]
    return message.name("tool_call_id")
