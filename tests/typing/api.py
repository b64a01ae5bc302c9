"""A user's code over the whole public face, for type checkers only; it is never executed.

Every construct here has to pass mypy and basedpyright in their strict modes without a cast or an ignore.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import anthropic
import openai

import windowpane
from windowpane import testing


def manage_with_openai(client: openai.OpenAI) -> windowpane.Completion:
    """The loop of docs/engine.md, with every option of the constructor that is a plain value."""
    with windowpane.ContextWindowManager(
        agent="reviewer",
        model="gpt-5",
        task_goal="Review src",
        constraints=["Never change a public name."],
        success_criteria=("all modules reviewed",),
        task_id="review",
        resume=False,
        paths=["src/app.py"],
        limit_tokens=128_000,
        requested_output_tokens=4_096,
        thresholds=windowpane.Thresholds(0.5, 0.75, 0.9),
        preset="cascade",
        policy="lru",
        budget={"tool_results": 0.3, "message_history": 0.5},
        enforce="component",
        background=True,
        language_model=windowpane.openai_model(model="gpt-5-mini"),
        session_id="s-1",
        data_folder="/tmp/data",
    ) as window:
        window.add_system("You review code.")
        window.add_tool_definitions([{"type": "function", "function": {"name": "read_file"}}])
        window.add_user("Review src/app.py.")
        window.add_user([{"type": "text", "text": "Look at this."}], pinned=True)
        decision: windowpane.Decision = window.on_turn_start()
        reply = client.chat.completions.create(model="gpt-5", messages=window.messages())
        window.on_turn_end(reply, reported_remaining=80_000)
        window.on_tool_result("read_file", "text", "call-1", is_error=False)
        if decision.action != "none" and decision.status.zone == "red":
            window.on_overflow(RuntimeError("too large"))
        return window.complete()


def manage_with_anthropic(client: anthropic.Anthropic) -> None:
    """Anthropic takes the system prompt apart from the messages."""
    with windowpane.ContextWindowManager(agent="a", model="claude-sonnet-4-5") as window:
        sent = window.messages("anthropic")
        reply = client.messages.create(
            model="claude-sonnet-4-5", max_tokens=1_024, system=sent.system, messages=sent.messages
        )
        window.on_turn_end(reply)


async def manage_async(client: openai.AsyncOpenAI) -> dict[str, int]:
    """The same hooks, awaited; groups and content are not awaited."""
    async with windowpane.AsyncContextWindowManager(agent="a", model="gpt-5") as window:
        repairs = await window.add_messages([{"role": "user", "content": "Hello"}], unanswered="drop")
        await window.on_turn_start()
        reply = await client.chat.completions.create(model="gpt-5", messages=window.messages("openai"))
        await window.on_turn_end(reply)
        await window.on_tool_result("search", {"rows": [1, 2]}, "c1", interim=True)
        window.task.complete("one")
        await window.settle()
        await window.complete("done")
        return repairs


def groups(window: windowpane.ContextWindowManager) -> str:
    """The groups of a window, and what they return."""
    window.task.plan("one", "two")
    window.task.start("one")
    window.task.complete("one")
    window.task.reopen("one")
    window.task.decide("fetch", why="no dependency", instead_of=["got"])
    window.task.add_issue("a type error")
    window.task.resolve_issue("a type error")
    window.task.add_learning("the API is slow")
    window.task.add_note("half way", category="progress", importance="high")
    window.task.watch("src/api.ts")
    done = [name for name, status in window.task.subtasks.items() if status == "done"]
    resumed_from = 0 if window.task.resumed is None else window.task.resumed.window_id

    ruling: windowpane.Ruling = window.budget.reserve("tool_results", 8_000)
    remaining: int | None = ruling.remaining_tokens
    if window.budget.can_add("message_history", 10).outcome == "blocked":
        window.budget.release("tool_results", 8_000)
    window.pending.hold("call-1", reason="waits for approval")
    window.pending.release("call-1")

    returned = window.delegate(windowpane.Subtask("Summarize the log", expected_tokens=9_000))
    text = "" if returned is None else returned.text
    status: windowpane.Status = window.status()
    return f"{window.task.goal} {done} {resumed_from} {remaining} {text} {status} {window.retrieve('h1') or ''}"


def listeners(window: windowpane.ContextWindowManager) -> None:
    """Callbacks get typed values."""

    def on_zone(event: windowpane.Event) -> None:
        print(event.type, event.context.session_id)

    def refuse(proposal: windowpane.CompactionProposal) -> bool:
        return proposal.tokens_before > 10_000

    window.on("zone.changed", on_zone)
    window.before_compaction(refuse)
    window.set_policy("hybrid", weights={"recency": 1.0})


def parts() -> windowpane.AsyncContextWindowManager:
    """Parts of the engine may be replaced or omitted."""
    dependencies: windowpane.Dependencies = replace(windowpane.default_dependencies("gpt-5"), archive=None)
    settings = windowpane.EngineSettings(summarizer=None, policy=windowpane.Policy("mine", {"recency": 1.0}))
    return windowpane.AsyncContextWindowManager(
        agent="a",
        model="gpt-5",
        settings=settings,
        dependencies=dependencies,
        judge=windowpane.SampledJudge(judge_model, windowpane.JudgeSampling(rate=0.1)),
        subagent=subagent,
        cascade=["eviction", "compaction"],
    )


def judge_model(system: str, user: str) -> str:
    """A language model is any callable."""
    return windowpane.string_match(system, user)


async def subagent(assignment: str) -> str:
    """A sub-agent may be async."""
    return assignment


def watch_clients() -> Sequence[str]:
    """A watched client keeps its type; `start` gives the running outputs."""
    with windowpane.start(port=0, store="events.db", capture=True) as outputs:
        client: openai.OpenAI = windowpane.observe(openai.OpenAI(), agent="reviewer")
        claude: anthropic.AsyncAnthropic = windowpane.observe(anthropic.AsyncAnthropic())
        with windowpane.session(agent="reviewer", limit_tokens=128_000) as session_id:
            client.chat.completions.create(model="gpt-5", messages=[{"role": "user", "content": "Hello"}])
        urls = [str(outputs.url), session_id, str(claude)]
    windowpane.stop()
    return urls


def errors() -> None:
    """Errors carry typed values."""
    try:
        watch_clients()
    except windowpane.IrreducibleContextError as error:
        print(error.required_tokens - error.usable_tokens)
    except windowpane.ConfigurationError as error:
        print(error.path, error.expected)
    except windowpane.WindowpaneError as error:
        print(error)


def in_a_test() -> windowpane.Dependencies:
    """The doubles of `windowpane.testing`."""
    sink = testing.RecordingSink()
    return testing.in_memory_dependencies(sink, model=testing.ScriptedModel(["one", RuntimeError("two")]))
