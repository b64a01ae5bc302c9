"""The managed window: content in, messages out, and the questions an agent may ask about its window.

Both drivers inherit what needs no waiting from here and add the hooks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, overload

from windowpane.core.events import Candidate, Event
from windowpane.core.vocabulary import COMPONENTS, Component
from windowpane.core.window.blocks import Block
from windowpane.core.window_tools import WINDOW_TOOLS
from windowpane.exceptions import ConfigurationError
from windowpane.manager.budget import Ruling, check_claim
from windowpane.manager.content import add_reply, add_tool_definitions, add_user, returned_reply
from windowpane.manager.engine import Engine
from windowpane.manager.listeners import CompactionCallback, EventListener, RecordListener
from windowpane.manager.messages import AnthropicMessages, anthropic_messages, openai_messages
from windowpane.manager.plans.eviction import LISTED_CANDIDATES, plan_eviction
from windowpane.manager.plans.policies import Policy, policy_named
from windowpane.manager.session import ManagedSession
from windowpane.manager.status import ComponentStatus, Decision, Status
from windowpane.manager.steps.new_window import clear
from windowpane.manager.task import WindowTask
from windowpane.manager.window_tools import WindowAnswers, removals_of, tool_definitions


class WindowBudget:
    """The budget of a managed window by component, as `window.budget`."""

    def __init__(self, session: ManagedSession) -> None:
        self._session = session

    def can_add(self, component: Component, tokens: int) -> Ruling:
        """Return whether *tokens* more of *component* fit, without changing anything.

        The outcome is `blocked` where the window has no room for them, or, with `enforce="component"`, the
        component's budget has none, and `warned` above its soft limit. Raises `ConfigurationError` for an unknown
        component or a negative number of tokens.
        """
        with self._session.lock:
            return self._session.engine.can_add(component, tokens)

    def reserve(self, component: Component, tokens: int) -> Ruling:
        """Return what `can_add` returns and, unless it is blocked, set the tokens aside until `release`."""
        with self._session.lock:
            engine = self._session.engine
            ruling = engine.can_add(component, tokens)
            if ruling.outcome != "blocked" and engine.budget is not None:
                engine.budget.hold(component, tokens)
            return ruling

    def release(self, component: Component, tokens: int) -> None:
        """End a reservation: the content has been added, or will not come. Raises as `can_add` does."""
        check_claim(component, tokens)
        with self._session.lock:
            if self._session.engine.budget is not None:
                self._session.engine.budget.commit(component, tokens)


class PendingCalls:
    """The tool calls of a managed window that wait for a person or for long work, as `window.pending`."""

    def __init__(self, session: ManagedSession) -> None:
        self._session = session

    def hold(self, tool_call_id: str, *, reason: str = "waits for approval") -> None:
        """Keep an open tool call and its group in the window until its result comes.

        The model sees *reason* in place of the result meanwhile. An id that is not open is logged.
        """
        self._session.apply("hold", lambda engine: engine.hold(tool_call_id, reason))

    def release(self, tool_call_id: str) -> None:
        """Stop waiting for a call that will get no result."""
        self._session.apply("release", lambda engine: engine.calls.release(tool_call_id))


class ManagedWindow:
    """A managed window without the hooks, which the two drivers add."""

    def __init__(self, session: ManagedSession) -> None:
        self._session = session
        self.task = WindowTask(session)
        """The task's plan, decisions, issues and notes."""
        self.budget = WindowBudget(session)
        """Room by component: ask for it, or reserve it."""
        self.pending = PendingCalls(session)
        """Tool calls that wait for an approval or for long work."""

    @property
    def _engine(self) -> Engine:
        return self._session.engine

    @property
    def session_id(self) -> str:
        """The session's id, as in its events."""
        return self._session.session_id

    # -- content ----------------------------------------------------------------------------------------------

    def add_system(self, text: str) -> None:
        """Add the system prompt, or a part of it; it is never removed."""
        self._session.apply("add_system", lambda engine: engine.add("system_prompt", text))

    def add_tool_definitions(self, tools: str | Iterable[Mapping[str, Any]]) -> None:
        """Add the tools that are sent with each call; they are counted, but never part of `messages()`."""
        self._session.apply("add_tool_definitions", lambda engine: add_tool_definitions(engine, tools))

    def add_user(self, content: str | Sequence[Mapping[str, Any]], *, pinned: bool = False) -> None:
        """Add a user message: text, or content parts with images; `tool_result` parts answer their calls.

        A *pinned* message is never removed. The first user message is the task's goal unless one was given.
        """
        self._session.run_local("add_user", add_user(self._engine, content, pinned=pinned))

    def add_memory(self, text: str, *, pinned: bool = False) -> None:
        """Add content retrieved from a memory; a *pinned* one is never removed."""
        self._session.apply("add_memory", lambda engine: engine.add("memory_injection", text, pinned=pinned))

    def add_assistant(self, text: str | None, *, tool_calls: Iterable[object] | None = ()) -> None:
        """Add a reply by its text and its tool calls in OpenAI's shape; it ends no turn."""
        message = {"role": "assistant", "content": text, "tool_calls": tool_calls}
        self._session.apply("add_assistant", lambda engine: add_reply(engine, returned_reply(message).parts))

    def clear(self) -> None:
        """Continue in a new window with the system prompt, the tools, the task as given, and what was pinned.

        Critical notes come along too.
        """
        self._session.apply("clear", clear)

    # -- reading ----------------------------------------------------------------------------------------------

    @overload
    def messages(self) -> list[Any]: ...
    @overload
    def messages(self, shape: Literal["openai"]) -> list[Any]: ...
    @overload
    def messages(self, shape: Literal["anthropic"]) -> AnthropicMessages: ...
    def messages(self, shape: Literal["openai", "anthropic"] = "openai") -> list[Any] | AnthropicMessages:
        """Return what to send to the provider, always valid whatever was removed or never answered.

        `openai` gives the list that chat completions take; `anthropic` an object with `system` and `messages`.
        Raises `ConfigurationError` for another shape.
        """
        if shape not in ("openai", "anthropic"):
            raise ConfigurationError("shape", f"{shape!r}", expected="openai or anthropic")
        with self._session.lock:
            self._engine.insert_opening()
            blocks = list(self._engine.tracker.window)
            if shape == "anthropic":
                return anthropic_messages(blocks, self._engine.payloads)
            return openai_messages(blocks, self._engine.payloads)

    def status(self) -> Status:
        """Return the last measurement with budgets and forecasts; `str()` of it is one line for the agent."""
        with self._session.lock:
            listeners = self._session.listeners
            return replace(
                _full_status(self._engine),
                audit_events=len(listeners.audit_trail),
                listener_failures=listeners.failed_calls,
            )

    def blocks(self) -> tuple[Block, ...]:
        """Return the window's blocks in the order the model sees them."""
        with self._session.lock:
            return tuple(self._engine.tracker.window)

    def retrieve(self, handle: str) -> str | None:
        """Return the original behind a placeholder's handle; None if the archive does not have it (any more)."""
        originals = self._session.originals
        if originals is None:
            return None
        try:
            return originals.get(handle)
        except Exception as error:  # noqa: BLE001 (the archive may be the user's code)
            self._session.contain("retrieve", error)
            return None

    def tools(self, shape: Literal["openai", "anthropic"] = "openai") -> list[dict[str, Any]]:
        """Return definitions of tools by which the model asks about this window; `call_tool` answers their calls.

        They are `window_status`, `removed_content` and `read_block`, which returns what `retrieve` does. Send
        them with each call, and count them by `add_tool_definitions`.
        """
        if shape not in ("openai", "anthropic"):
            raise ConfigurationError("shape", f"{shape!r}", expected="openai or anthropic")
        return tool_definitions(shape)

    def call_tool(self, name: str, arguments: str | Mapping[str, Any] | None = None) -> str | None:
        """Return the answer to a call of one of `tools`, for `on_tool_result`; None for any other tool.

        *arguments* are those of the call, as JSON or as a mapping. The answer is marked as recorded data and
        takes at most 2,000 tokens, or an eighth of the usable window.
        """
        if all(name != tool.name for tool in WINDOW_TOOLS):
            return None
        try:
            removals = removals_of(self.audit_trail())
            return WindowAnswers(self.status(), removals, self.retrieve, self._engine.counter.count).answer(
                name, arguments
            )
        except Exception as error:  # noqa: BLE001 (the counter may be the user's code)
            self._session.contain("call_tool", error)
            return "Error: the window cannot answer this time"

    def audit_trail(self) -> tuple[Event, ...]:
        """Return the events that record decisions, oldest first: the last 1,000; the store has all of them."""
        with self._session.lock:
            self._engine.tracker.flush()
            return tuple(self._session.listeners.audit_trail)

    def eviction_candidates(self, limit: int = LISTED_CANDIDATES) -> tuple[Candidate, ...]:
        """Return the blocks that the policy would evict first, at most *limit*; evicts none of them.

        Empty while the window's size is unknown, or without a policy.
        """
        with self._session.lock:
            engine = self._engine
            if engine.limits is None or engine.settings.policy is None:
                return ()
            plan = plan_eviction(
                engine.snapshot(engine.limits),
                0,
                policy=engine.settings.policy,
                counter=engine.counter,
                listed=limit,
            )
            return plan.candidates

    # -- callbacks --------------------------------------------------------------------------------------------

    def on(self, event_name: str, listener: EventListener) -> None:
        """Call *listener* with every event of that name, such as `zone.changed`; `*` means all events.

        It is called on the agent's thread, after the hook that caused the event, without a lock; what it raises
        is logged. Raises `ConfigurationError` for an unknown event name and for what cannot be called.
        """
        with self._session.lock:
            self._session.listeners.add(event_name, listener)

    def before_compaction(self, callback: CompactionCallback) -> None:
        """Call *callback* before every compaction; it is skipped this time if the callback returns False.

        Content that has to be removed for the call to fit is removed all the same. What the callback raises is
        logged and prevents nothing. Raises `ConfigurationError` for what cannot be called.
        """
        with self._session.lock:
            self._session.listeners.add_compaction_callback(callback)
            self._engine.reduction.has_callbacks = True

    def on_record(self, listener: RecordListener) -> None:
        """Call *listener* with the log records that the session's preset writes in its source's own names."""
        with self._session.lock:
            self._session.listeners.add_record_listener(listener)

    # -- changes at run time ----------------------------------------------------------------------------------

    def set_policy(self, policy: str | Policy, *, weights: Mapping[str, float] | None = None) -> None:
        """Evict by another policy from now on: a name, optionally with other *weights*, or your own `Policy`.

        Raises `ConfigurationError` for an unknown name or weight.
        """
        if not isinstance(policy, Policy):
            policy = policy_named(policy, weights=weights)
        elif weights is not None:
            raise ConfigurationError("weights", "the policy brings its weights", expected="one of the two")
        with self._session.lock:
            self._engine.settings = replace(self._engine.settings, policy=policy)
            self._engine.reduction.fruitless_used = None

    def flush(self) -> None:
        """Emit the events that are held back until the end of the turn."""
        self._session.apply("flush", lambda engine: engine.tracker.flush())

    # -- for the drivers --------------------------------------------------------------------------------------

    def _unmanaged(self) -> Decision:
        """Return the decision of a hook that failed."""
        with self._session.lock:
            status = self._engine.status()
        return Decision("none", status, reason="the hook failed; see the log")


def _full_status(engine: Engine) -> Status:
    """Return the status at the last measurement with each component's budget; unchanged before the first."""
    status = engine.status()
    parts = status.used_by_component or dict(engine.tracker.window.tokens_by_component)
    burn = engine.tracker.gauge.growth.burn_by_component()
    limits = engine.limits
    return replace(
        status,
        limit_tokens=None if limits is None else limits.limit_tokens,
        used_by_component=parts,
        components={
            component: _component_status(engine, component, parts[component], burn.get(component))
            for component in COMPONENTS
        },
        output_tokens=None if limits is None else limits.reserved_tokens,
        breaker_open=engine.reduction.breaker.open,
        subtasks=dict(engine.task.record.subtasks),
    )


def _component_status(engine: Engine, component: Component, used: int, burn: float | None) -> ComponentStatus:
    budget = engine.budget
    tokens = None if budget is None else budget.budget_tokens(component)
    if budget is None or not tokens:
        return ComponentStatus(used, burn_rate=burn)
    return ComponentStatus(
        used_tokens=used,
        budget_tokens=tokens,
        reserved_tokens=budget.reserved.get(component, 0),
        utilization=used / tokens,
        state=budget.state(component, used),
        burn_rate=burn,
        turns_until_exhausted=_turns_until_exhausted(tokens - used, burn),
    )


def _turns_until_exhausted(remaining_tokens: int, burn: float | None) -> float | None:
    if burn is None:
        return None
    if remaining_tokens <= 0:
        return 0.0
    return remaining_tokens / burn if burn > 0 else float("inf")
