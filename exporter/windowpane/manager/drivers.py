"""The managers: four hooks around an agent's loop that keep its context window healthy.

Two thin drivers over one core. The core's programs yield what they need from the world; a driver carries that
out with the session's lock released: on the agent's thread, or awaited.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable
from types import TracebackType
from typing import Final, Self, TypeVar

from windowpane.core.window.groups import Unanswered
from windowpane.effects.commands import CallModel, CommandResult, Effect, RunSubagent, cancel_when
from windowpane.effects.model_calls import MODEL_TIMEOUT_SECONDS, call_model, call_model_async, require_text
from windowpane.exceptions import IrreducibleContextError
from windowpane.manager import hooks
from windowpane.manager.history import take_history
from windowpane.manager.plans.subagent import Returned, Subtask
from windowpane.manager.status import Decision
from windowpane.manager.steps.completion import Completion, complete
from windowpane.manager.steps.subagent import delegate
from windowpane.manager.task_api import TaskSession
from windowpane.models.replies import read_reply

T = TypeVar("T")

SUBAGENT_TIMEOUT_SECONDS: Final = 900.0
"""A sub-agent works for a while; one that does not come back within this has failed."""


class _Driven(TaskSession):
    """What both drivers do with programs beside running them."""

    def _leave(self, program: Effect[T]) -> None:
        """A program that was interrupted, as by a cancelled task, holds nothing up any more."""
        with self._lock:
            program.close()

    def _between_turns(self) -> Effect[None] | None:
        """What is due now that the turn has ended, None for nothing; given up when the session ends meanwhile."""
        try:
            with self._lock:
                due = hooks.is_work_after_turn(self._engine)
        except Exception as error:  # noqa: BLE001 (a step may be the user's code)
            self._contain("after_turn", error)
            return None
        return cancel_when(lambda: self._closed, hooks.after_turn(self._engine)) if due else None


class ContextWindowManager(_Driven):
    """Keeps one session's context window healthy; for agents that run on threads.

    Use it as a context manager: leaving it ends the session. Tool results may come from several threads.
    """

    _working: threading.Thread | None = None
    """What is done after a turn in the background; one at a time."""

    def on_turn_start(self) -> Decision:
        """Before each model call: measure the window and make room where its pressure calls for it.

        Raises `IrreducibleContextError` when what may not be removed does not fit; the call cannot be made.
        """
        with self._spanned():
            return self._drive("on_turn_start", hooks.turn_start(self._engine)) or self._unmanaged()

    def on_turn_end(
        self, reply: object, *, reported_remaining: int | None = None, reported_used: int | None = None
    ) -> None:
        """After each model call: the reply enters the window and the provider's usage becomes the truth.

        Where the model itself was told and says how many tokens of its window are left, or used, that corrects
        the count of a provider that reports no usage; one far from what is known is not believed.
        """
        with self._spanned():
            self._quick(
                "on_turn_end",
                lambda engine: hooks.turn_end(engine, read_reply(reply), reported_remaining, reported_used),
            )
        self._after_turn()

    def settle(self, timeout_seconds: float = MODEL_TIMEOUT_SECONDS) -> bool:
        """Wait for what is done after a turn in the background; says whether it is done.

        A listener that is called by that work does not wait for it.
        """
        working = self._working
        if working is None:
            return True
        if working is not threading.current_thread():
            working.join(timeout_seconds)
        return not working.is_alive()

    def close(self, reason: str = "completed") -> None:
        """As `ManagedSession.close`; what is done in the background has a minute, then it is given up."""
        self.settle()
        super().close(reason)

    def complete(self, summary: str = "") -> Completion:
        """The task is done: a final summary, the checkpoint put aside, and the session ended with its report.

        Without *summary* the model writes it, where there is one, else it is put together from the window.
        """
        self.settle()
        if not self._begin_end():
            return Completion(summary)
        return self._drive("complete", complete(self._engine, summary)) or Completion(summary)

    def _after_turn(self) -> None:
        """Begin what is due between turns, unless the last such work is still going on."""
        engine = self._engine
        if not engine.settings.after_turn or not (self._working is None or not self._working.is_alive()):
            return
        work = self._between_turns()
        if work is None:
            return
        if not engine.settings.background:
            self._drive("after_turn", work)
            return
        working = threading.Thread(
            target=self._drive, args=("after_turn", work), name="windowpane-after", daemon=True
        )
        try:
            working.start()
            self._working = working
        except RuntimeError as error:  # no thread can be had, as when the process ends
            self._contain("after_turn", error)

    def on_tool_result(
        self,
        name: str,
        output: object,
        tool_call_id: str | None = None,
        *,
        interim: bool = False,
        is_error: bool = False,
    ) -> None:
        """After each tool call: its output enters the window; one far too large is shortened first.

        *output* is text, content parts, the exception the tool raised, or anything that JSON can say. One that is
        *interim* stands for the result of a call that goes on; its group never leaves until that comes.
        """
        self._drive(
            "on_tool_result",
            self._engine.tool_result(name, output, tool_call_id, interim=interim, is_error=is_error),
        )

    def add_messages(self, messages: Iterable[object], *, unanswered: Unanswered = "answer") -> dict[str, int]:
        """Go on with a conversation that began elsewhere, in OpenAI's chat or Anthropic's shape; ends no turn.

        A broken one is mended: a result without its call goes, and a call without a result is answered by a
        stand-in or goes with its answers (*unanswered* "answer" or "drop"). Says how often each was done.
        """
        return self._drive("add_messages", take_history(self._engine, messages, unanswered=unanswered)) or {}

    def delegate(self, subtask: Subtask) -> Returned | None:
        """Have a sub-agent do *subtask* in a window of its own; its result is bounded, and yours to add.

        None where it is not worth a window of its own, or there is no sub-agent: then do it in place.
        """
        return self._drive("delegate", delegate(self._engine, subtask))

    def on_overflow(self, error: object = None) -> Decision:
        """The provider refused a call as too large. Make it once more where the decision says `retry`."""
        with self._spanned():
            return self._drive("on_overflow", hooks.overflow(self._engine, error)) or self._unmanaged()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close("completed" if kind is None else f"failed: {kind.__name__}")

    def _drive(self, hook: str, program: Effect[T]) -> T | None:
        """Run a program to its end; None when it failed."""
        started = self._dependencies.timer()
        try:
            step = self._advance(program, None)
            while step.request is not None:
                step = self._advance(program, self._answer(step.request))
        except IrreducibleContextError:
            self._quick("flush", lambda engine: engine.tracker.flush())
            raise
        except Exception as error:  # noqa: BLE001 (telemetry never harms the agent)
            self._contain(hook, error)
            return None
        finally:
            self._leave(program)
            self._timed(hook, started)
            self._tell()
        return step.result

    def _answer(self, request: object) -> CommandResult:
        if isinstance(request, RunSubagent):
            return call_model(self._subagent, "", request.assignment, timeout_seconds=SUBAGENT_TIMEOUT_SECONDS)
        if not isinstance(request, CallModel):
            return self._local(request)  # type: ignore[arg-type]  # one of the other requests
        model = self._dependencies.model
        assert model is not None, "a model is asked only where there is one"
        return require_text(
            call_model(model, request.system, request.user, timeout_seconds=MODEL_TIMEOUT_SECONDS)
        )


class AsyncContextWindowManager(_Driven):
    """Keeps one session's context window healthy; for agents that run on an event loop."""

    _working: asyncio.Future[None] | None = None
    """As `ContextWindowManager`'s."""

    async def on_turn_start(self) -> Decision:
        """As `ContextWindowManager.on_turn_start`."""
        with self._spanned():
            return await self._drive("on_turn_start", hooks.turn_start(self._engine)) or self._unmanaged()

    async def on_turn_end(
        self, reply: object, *, reported_remaining: int | None = None, reported_used: int | None = None
    ) -> None:
        """As `ContextWindowManager.on_turn_end`."""
        with self._spanned():
            self._quick(
                "on_turn_end",
                lambda engine: hooks.turn_end(engine, read_reply(reply), reported_remaining, reported_used),
            )
        await self._after_turn()

    async def settle(self) -> None:
        """Wait for what is done after a turn in the background."""
        if self._working is not None and not self._working.done():
            await asyncio.wait({self._working})  # neither cancels it nor is cancelled with it

    async def complete(self, summary: str = "") -> Completion:
        """As `ContextWindowManager.complete`."""
        await self.settle()
        if not self._begin_end():
            return Completion(summary)
        return await self._drive("complete", complete(self._engine, summary)) or Completion(summary)

    def _milestone(self, trigger: str) -> None:
        """Saved with the next hook, which can wait for it."""
        with self._lock:
            self._engine.milestone = trigger

    async def _after_turn(self) -> None:
        engine = self._engine
        if not engine.settings.after_turn or (self._working is not None and not self._working.done()):
            return
        program = self._between_turns()
        if program is None:
            return
        work = self._drive("after_turn", program)
        if engine.settings.background:
            self._working = asyncio.ensure_future(work)
        else:
            await work

    async def on_tool_result(
        self,
        name: str,
        output: object,
        tool_call_id: str | None = None,
        *,
        interim: bool = False,
        is_error: bool = False,
    ) -> None:
        """As `ContextWindowManager.on_tool_result`."""
        await self._drive(
            "on_tool_result",
            self._engine.tool_result(name, output, tool_call_id, interim=interim, is_error=is_error),
        )

    async def add_messages(
        self, messages: Iterable[object], *, unanswered: Unanswered = "answer"
    ) -> dict[str, int]:
        """As `ContextWindowManager.add_messages`."""
        return (
            await self._drive("add_messages", take_history(self._engine, messages, unanswered=unanswered)) or {}
        )

    async def delegate(self, subtask: Subtask) -> Returned | None:
        """As `ContextWindowManager.delegate`."""
        return await self._drive("delegate", delegate(self._engine, subtask))

    async def on_overflow(self, error: object = None) -> Decision:
        """As `ContextWindowManager.on_overflow`."""
        with self._spanned():
            return await self._drive("on_overflow", hooks.overflow(self._engine, error)) or self._unmanaged()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.settle()
        self.close("completed" if kind is None else f"failed: {kind.__name__}")

    async def _drive(self, hook: str, program: Effect[T]) -> T | None:
        """Run a program to its end; None when it failed."""
        started = self._dependencies.timer()
        try:
            step = self._advance(program, None)
            while step.request is not None:
                step = self._advance(program, await self._answer(step.request))
        except IrreducibleContextError:
            self._quick("flush", lambda engine: engine.tracker.flush())
            raise
        except Exception as error:  # noqa: BLE001 (telemetry never harms the agent)
            self._contain(hook, error)
            return None
        finally:
            self._leave(program)
            self._timed(hook, started)
            self._tell()
        return step.result

    async def _answer(self, request: object) -> CommandResult:
        if isinstance(request, RunSubagent):
            return await call_model_async(
                self._subagent, "", request.assignment, timeout_seconds=SUBAGENT_TIMEOUT_SECONDS
            )
        if not isinstance(request, CallModel):
            return await asyncio.to_thread(self._local, request)  # type: ignore[arg-type]  # as above
        model = self._dependencies.model
        assert model is not None, "a model is asked only where there is one"
        return require_text(
            await call_model_async(model, request.system, request.user, timeout_seconds=MODEL_TIMEOUT_SECONDS)
        )
