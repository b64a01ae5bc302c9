"""The drivers: the hooks around an agent's loop, run on its thread or awaited on its event loop.

A hook is an effect that yields commands; the driver carries these out with the session's lock released.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator, Iterable
from types import TracebackType
from typing import Any, Final, NamedTuple, Self, TypeVar

from windowpane.core.window.repair import Unanswered
from windowpane.effects.background_writer import END_SECONDS
from windowpane.effects.commands import CallModel, Command, CommandResult, Effect, RunSubagent
from windowpane.effects.model_calls import (
    MODEL_TIMEOUT_SECONDS,
    Model,
    call_model,
    call_model_async,
    require_text,
)
from windowpane.effects.worker import TimeLimit
from windowpane.exceptions import IrreducibleContextError
from windowpane.manager import hooks
from windowpane.manager.content import returned_reply
from windowpane.manager.dependencies import Dependencies
from windowpane.manager.history import add_history
from windowpane.manager.plans.subagent_delegation import SubagentResult, Subtask
from windowpane.manager.session import ManagedSession
from windowpane.manager.status import Decision
from windowpane.manager.steps.completion import Completion, complete
from windowpane.manager.steps.subagent_delegation import delegate
from windowpane.manager.tool_results import add_tool_result
from windowpane.manager.window import ManagedWindow

T = TypeVar("T")

SUBAGENT_TIMEOUT_SECONDS: Final = 900.0
"""A sub-agent that has not returned by then has failed."""


class _HookedWindow(ManagedWindow):
    """The parts of a driver that do not wait."""

    def _end_turn(self, reply: object, reported_remaining: int | None, reported_used: int | None) -> None:
        with self._session.traced():
            self._session.apply(
                "on_turn_end",
                lambda engine: hooks.turn_end(engine, returned_reply(reply), reported_remaining, reported_used),
            )

    def _work_due(self, *, is_busy: bool) -> Effect[None] | None:
        """Return the work between two turns, unless the last such work is still under way."""
        return self._session.work_after_turn() if self._engine.settings.after_turn and not is_busy else None

    def _commands(self, hook: str, effect: Effect[T]) -> Generator[Command, CommandResult, T | None]:
        """Yield the commands of an effect to carry out; return its result, None if it failed."""
        session = self._session
        started = session.dependencies.timer()
        try:
            progress = session.advance(effect, None)
            while progress.command is not None:
                progress = session.advance(effect, (yield progress.command))
        except IrreducibleContextError:
            self.flush()
            raise
        except Exception as error:  # noqa: BLE001 (telemetry never harms the agent)
            session.contain(hook, error)
            return None
        finally:
            session.discard(effect)
            session.record_time(hook, started)
            session.notify()
        return progress.result


class BlockingWindow(_HookedWindow):
    """A managed window whose hooks run on the calling thread. Tool results may come from several threads."""

    _background: threading.Thread | None = None
    """The work after a turn that is under way, if any; one at a time."""

    def on_turn_start(self) -> Decision:
        """Measure the window before a model call, and make room if its pressure calls for it.

        Returns what was done. Raises `IrreducibleContextError` if content that may not be removed does not fit:
        the call cannot be made.
        """
        with self._session.traced():
            return self._run("on_turn_start", hooks.turn_start(self._engine)) or self._unmanaged()

    def on_turn_end(
        self, reply: object, *, reported_remaining: int | None = None, reported_used: int | None = None
    ) -> None:
        """Add the model's reply after a call, and take its token counts from the provider's usage.

        *reply* is the response object of OpenAI or Anthropic, or a dictionary in one of their shapes. Where the
        provider reports no usage but the model reports how many tokens of its window remain or are used, pass
        these; a number far from what was counted is rejected.
        """
        self._end_turn(reply, reported_remaining, reported_used)
        self._start_background_work()

    def on_tool_result(
        self,
        name: str,
        output: object,
        tool_call_id: str | None = None,
        *,
        interim: bool = False,
        is_error: bool = False,
    ) -> None:
        """Add the output of a tool call; one that is far too large is shortened first.

        *output* is text, content parts, the exception that the tool raised, or any value that JSON can represent.
        Pass *interim* for a call that continues: its group stays in the window until the real result comes.
        """
        effect = add_tool_result(self._engine, name, output, tool_call_id, interim=interim, is_error=is_error)
        self._run("on_tool_result", effect)

    def on_overflow(self, error: object = None) -> Decision:
        """Make the window strictly smaller after the provider rejected a call as too large.

        *error* is the provider's exception or error body. Repeat the call once if the decision's `retry` is True.
        """
        with self._session.traced():
            return self._run("on_overflow", hooks.overflow(self._engine, error)) or self._unmanaged()

    def add_messages(self, messages: Iterable[object], *, unanswered: Unanswered = "answer") -> dict[str, int]:
        """Add a conversation that started elsewhere, in OpenAI's chat or Anthropic's shape; it ends no turn.

        A broken history is repaired: a result without its call is removed, and a call without a result gets a
        placeholder result or is removed with its other results (*unanswered*: `answer` or `drop`). Returns the
        number of repairs by kind.
        """
        return self._run("add_messages", add_history(self._engine, messages, unanswered=unanswered)) or {}

    def delegate(self, subtask: Subtask) -> SubagentResult | None:
        """Have the sub-agent do *subtask* in a separate window; add its bounded result yourself.

        Returns None if there is no sub-agent or the subtask is too small for one: do it in place then.
        """
        return self._run("delegate", delegate(self._engine, subtask))

    def settle(self, timeout_seconds: float = MODEL_TIMEOUT_SECONDS) -> bool:
        """Wait for the background work after the last turn, fidelity and pending files; True if they are done.

        Returns at once when called by that work itself, as from a listener.
        """
        limit = TimeLimit(timeout_seconds)
        return self._settle_background(timeout_seconds) and self._session.files.settle(limit.remaining)

    def complete(self, summary: str = "") -> Completion:
        """Complete the task: final summary, last checkpoint archived, session closed with its report.

        Without *summary* the language model writes it, or it is assembled from the window.
        """
        self._settle_background()
        if not self._session.end():
            return Completion(summary)
        return self._run("complete", complete(self._engine, summary)) or Completion(summary)

    def close(self, reason: str = "completed") -> None:
        """End the session with its trend report, after at most a minute for background work and 10 s for others.

        Closing twice changes nothing. A task that is not complete can be resumed: what happened since its last
        checkpoint is saved.
        """
        self._settle_background()
        if self._session.end():
            self._session.save_last()
            self._session.files.settle()
            self._session.finish(reason)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(_end_reason(kind))

    def _settle_background(self, timeout_seconds: float = MODEL_TIMEOUT_SECONDS) -> bool:
        """Wait for the work after the last turn, then for the evaluation of compressions."""
        limit = TimeLimit(timeout_seconds)
        background = self._background
        if background is not None:
            if background is not threading.current_thread():
                background.join(timeout_seconds)
            if background.is_alive():
                return False
        return self._session.settle_evaluations(min(END_SECONDS, limit.remaining))

    def _start_background_work(self) -> None:
        """Start what is due between turns, unless the last such work is still under way."""
        work = self._work_due(is_busy=self._background is not None and self._background.is_alive())
        if work is None:
            return
        if not self._engine.settings.background:
            self._run("after_turn", work)
            return
        thread = threading.Thread(
            target=self._run, args=("after_turn", work), name="windowpane-after", daemon=True
        )
        try:
            thread.start()
            self._background = thread
        except RuntimeError as error:  # no thread can be started, as when the process ends
            self._session.contain("after_turn", error)

    def _run(self, hook: str, effect: Effect[T]) -> T | None:
        """Run an effect to its end; None if it failed."""
        commands = self._commands(hook, effect)
        try:
            command = next(commands)
            while True:
                try:
                    result = self._execute(command)
                except Exception as error:  # noqa: BLE001 (the generator contains it)
                    command = commands.throw(error)
                else:
                    command = commands.send(result)
        except StopIteration as ended:
            outcome: T | None = ended.value
            return outcome
        finally:
            commands.close()

    def _execute(self, command: Command) -> CommandResult:
        call = _model_call(command, self._session.dependencies)
        if call is None:
            return self._session.execute(command)
        result = call_model(call.model, call.system, call.user, timeout_seconds=call.timeout_seconds)
        return require_text(result) if call.requires_text else result


class AsyncWindow(_HookedWindow):
    """A managed window whose hooks are awaited, for agents that run on an event loop."""

    _background: asyncio.Future[None] | None = None
    """As in `BlockingWindow`."""

    def __init__(self, session: ManagedSession) -> None:
        super().__init__(session)
        session.defers_milestones = True

    async def on_turn_start(self) -> Decision:
        """Await `BlockingWindow.on_turn_start`."""
        with self._session.traced():
            return await self._run("on_turn_start", hooks.turn_start(self._engine)) or self._unmanaged()

    async def on_turn_end(
        self, reply: object, *, reported_remaining: int | None = None, reported_used: int | None = None
    ) -> None:
        """Await `BlockingWindow.on_turn_end`."""
        self._end_turn(reply, reported_remaining, reported_used)
        await self._start_background_work()

    async def on_tool_result(
        self,
        name: str,
        output: object,
        tool_call_id: str | None = None,
        *,
        interim: bool = False,
        is_error: bool = False,
    ) -> None:
        """Await `BlockingWindow.on_tool_result`."""
        effect = add_tool_result(self._engine, name, output, tool_call_id, interim=interim, is_error=is_error)
        await self._run("on_tool_result", effect)

    async def on_overflow(self, error: object = None) -> Decision:
        """Await `BlockingWindow.on_overflow`."""
        with self._session.traced():
            return await self._run("on_overflow", hooks.overflow(self._engine, error)) or self._unmanaged()

    async def add_messages(
        self, messages: Iterable[object], *, unanswered: Unanswered = "answer"
    ) -> dict[str, int]:
        """Await `BlockingWindow.add_messages`."""
        return await self._run("add_messages", add_history(self._engine, messages, unanswered=unanswered)) or {}

    async def delegate(self, subtask: Subtask) -> SubagentResult | None:
        """Await `BlockingWindow.delegate`."""
        return await self._run("delegate", delegate(self._engine, subtask))

    async def settle(self) -> None:
        """Wait for the background work after the last turn, and at most 5 s each for fidelity and files."""
        if self._background is not None and not self._background.done():
            await asyncio.wait({self._background})  # neither cancels it nor is cancelled with it
        await asyncio.to_thread(self._session.settle_evaluations)
        files = self._session.files
        if not files.is_idle:
            await asyncio.to_thread(files.settle)

    async def complete(self, summary: str = "") -> Completion:
        """Await `BlockingWindow.complete`."""
        await self.settle()
        if not self._session.end():
            return Completion(summary)
        return await self._run("complete", complete(self._engine, summary)) or Completion(summary)

    def close(self, reason: str = "completed") -> None:
        """End the session with its trend report, without waiting for background work, which is cancelled.

        Nor for files: leaving the `async with` block does.

        Closing twice changes nothing. A task that is not complete can be resumed: what happened since its last
        checkpoint is saved.
        """
        self._session.close(reason)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.settle()
        if self._session.end():
            self._session.save_last()
            await self.settle()
            self._session.finish(_end_reason(kind))

    async def _start_background_work(self) -> None:
        effect = self._work_due(is_busy=self._background is not None and not self._background.done())
        if effect is None:
            return
        work = self._run("after_turn", effect)
        if self._engine.settings.background:
            self._background = asyncio.ensure_future(work)
        else:
            await work

    async def _run(self, hook: str, effect: Effect[T]) -> T | None:
        """Run an effect to its end; None if it failed."""
        commands = self._commands(hook, effect)
        try:
            command = next(commands)
            while True:
                try:
                    result = await self._execute(command)
                except Exception as error:  # noqa: BLE001 (the generator contains it)
                    command = commands.throw(error)
                else:
                    command = commands.send(result)
        except StopIteration as ended:
            outcome: T | None = ended.value
            return outcome
        finally:
            commands.close()

    async def _execute(self, command: Command) -> CommandResult:
        call = _model_call(command, self._session.dependencies)
        if call is None:
            return await asyncio.to_thread(self._session.execute, command)
        result = await call_model_async(call.model, call.system, call.user, timeout_seconds=call.timeout_seconds)
        return require_text(result) if call.requires_text else result


for _name in (
    "on_turn_start",
    "on_turn_end",
    "on_tool_result",
    "on_overflow",
    "add_messages",
    "delegate",
    "complete",
):  # one text for both, as help() and editors that run code show it
    getattr(AsyncWindow, _name).__doc__ = getattr(BlockingWindow, _name).__doc__


class _ModelCall(NamedTuple):
    model: Model
    system: str
    user: str
    timeout_seconds: float
    requires_text: bool


def _model_call(command: Command, dependencies: Dependencies) -> _ModelCall | None:
    """Return the call that carries out *command*; None for a command that needs no model and no sub-agent."""
    if isinstance(command, RunSubagent):
        subagent = dependencies.subagent
        assert subagent is not None, "yielded only with a sub-agent"
        return _ModelCall(
            _as_model(subagent), "", command.assignment, SUBAGENT_TIMEOUT_SECONDS, requires_text=False
        )
    if isinstance(command, CallModel):
        assert dependencies.model is not None, "yielded only with a model"
        return _ModelCall(
            dependencies.model, command.system, command.user, MODEL_TIMEOUT_SECONDS, requires_text=True
        )
    return None


def _as_model(subagent: Callable[[str], Any]) -> Model:
    return lambda _system, assignment: subagent(assignment)


def _end_reason(kind: type[BaseException] | None) -> str:
    return "completed" if kind is None else f"failed: {kind.__name__}"
