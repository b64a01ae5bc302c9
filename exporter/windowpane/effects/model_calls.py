"""Calls of a language model, on this thread or awaited, with a timeout and with failures as results."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import queue
import threading
from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import Any, Final, TypeVar

from windowpane.effects.commands import CallModel, CommandResult, Effect

T = TypeVar("T")

Model = Callable[[str, str], Any]
"""A language model `(system, user) -> text`, sync or async."""

MAXIMUM_ANSWER_CHARACTERS: Final = 400_000
"""Longest accepted answer; counting the tokens of a longer one would block the agent."""
MODEL_TIMEOUT_SECONDS: Final = 60.0


def run_effect(effect: Effect[T], model: Model, *, timeout_seconds: float = MODEL_TIMEOUT_SECONDS) -> T:
    """Run *effect* on this thread; its only commands may be model calls, any other raises `TypeError`."""
    try:
        command = next(effect)
        while True:
            if not isinstance(command, CallModel):
                raise TypeError(f"{type(command).__name__} cannot be carried out here, only CallModel can")
            answer = call_model(model, command.system, command.user, timeout_seconds=timeout_seconds)
            command = effect.send(require_text(answer))
    except StopIteration as end:
        result: T = end.value
        return result


def call_model(model: Model, system: str, user: str, *, timeout_seconds: float) -> CommandResult:
    """Call *model* on another thread and wait at most *timeout_seconds*; an async model gets an event loop."""
    results: queue.SimpleQueue[CommandResult] = queue.SimpleQueue()
    _start_thread(lambda: _awaited(model(system, user)), results.put)
    try:
        return results.get(timeout=timeout_seconds)
    except queue.Empty:
        return CommandResult(error=TimeoutError(f"the model did not answer within {timeout_seconds:g} s"))


async def call_model_async(model: Model, system: str, user: str, *, timeout_seconds: float) -> CommandResult:
    """Await *model* for at most *timeout_seconds*; a sync model runs on another thread."""
    try:
        async with asyncio.timeout(timeout_seconds):
            if is_async(model):
                return _limited(await model(system, user))
            result = await _on_thread(lambda: model(system, user))
            return _limited(await result.value) if inspect.isawaitable(result.value) else result
    except Exception as error:  # noqa: BLE001 (the effect decides what a failed command means)
        return CommandResult(error=error)


def require_text(result: CommandResult) -> CommandResult:
    """Return *result* if it failed or holds text or None, else a failure with `TypeError`."""
    if result.failed or result.value is None or isinstance(result.value, str):
        return result
    return CommandResult(
        error=TypeError(f"the model answered with a {type(result.value).__name__}, not with text")
    )


def is_async(model: Model) -> bool:
    """Return True if *model* is an async function or an object with an async `__call__`."""
    return inspect.iscoroutinefunction(model) or inspect.iscoroutinefunction(
        getattr(model, "__call__", None)  # noqa: B004 (an object with an async __call__)
    )


def model_name(model: object) -> str:
    """Return the name of a model in events: its `name`, else its qualified name, else its type."""
    name = getattr(model, "name", None) or getattr(model, "__qualname__", None) or type(model).__name__
    return str(name).replace("<locals>.", "")[:100]


def fenced(parts: Iterable[str]) -> str:
    """Return *parts* between fences, so that no text inside them can pass for an instruction of the prompt.

    Each fence holds a digest of the content, so the content cannot close it.
    """
    body = "\n\n".join(parts)
    mark = blake2b(body.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    return f"<<<content {mark}\n{body}\n{mark} content>>>"


async def _on_thread(call: Callable[[], Any]) -> CommandResult:
    """Return the result of *call* on a daemon thread, which never delays the loop or the end of the process."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[CommandResult] = loop.create_future()

    def resolve(result: CommandResult) -> None:
        if not future.done():
            future.set_result(result)

    def deliver(result: CommandResult) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has closed and the caller no longer waits
            loop.call_soon_threadsafe(resolve, result)

    _start_thread(call, deliver)
    return await future


def _start_thread(call: Callable[[], Any], deliver: Callable[[CommandResult], object]) -> None:
    """Make *call* on a new thread, in this context, and *deliver* its result there."""

    def work() -> None:
        try:
            result = _limited(call())
        except Exception as error:  # noqa: BLE001 (the effect decides what a failed command means)
            result = CommandResult(error=error)
        except BaseException as error:  # noqa: BLE001 (a model that wants to end the process has failed)
            result = CommandResult(error=RuntimeError(f"the model raised {type(error).__name__}"))
        deliver(result)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(work,), name="windowpane-model", daemon=True).start()


def _limited(value: Any) -> CommandResult:
    if isinstance(value, str) and len(value) > MAXIMUM_ANSWER_CHARACTERS:
        return CommandResult(
            error=ValueError(
                f"the answer has {len(value):,} characters, at most {MAXIMUM_ANSWER_CHARACTERS:,} are accepted"
            )
        )
    return CommandResult(value)


def _awaited(value: Any) -> Any:
    return asyncio.run(_await(value)) if inspect.isawaitable(value) else value


async def _await(value: Any) -> Any:
    return await value
