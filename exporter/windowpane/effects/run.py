"""Asks a language model for a program: on this thread or awaited, within a time, failures as answers."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import queue
import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar

from windowpane.effects.requests import Answer, AskModel, Program

T = TypeVar("T")

Model = Callable[[str, str], Any]
"""A language model `(system, user) -> text`, sync or async."""

MAXIMUM_ANSWER_CHARACTERS: Final = 400_000
"""Of one answer; counting its tokens would keep the agent waiting."""
MODEL_TIMEOUT_SECONDS: Final = 60.0
"""A model that does not answer within this has failed."""


def run(program: Program[T], model: Model, *, timeout_seconds: float = MODEL_TIMEOUT_SECONDS) -> T:
    """Run a program that asks nothing but the model to its end, on this thread."""
    try:
        request = next(program)
        while True:
            request = program.send(said(ask(model, *_asked(request), timeout_seconds=timeout_seconds)))
    except StopIteration as end:
        result: T = end.value
        return result


def ask(model: Model, system: str, user: str, *, timeout_seconds: float) -> Answer:
    """The model's answer; a failure is an answer."""
    return within(timeout_seconds, lambda: settled(model(system, user)))


def bounded(value: Any) -> Answer:
    """What a model said as an answer: not more of it than anything here could use."""
    if isinstance(value, str) and len(value) > MAXIMUM_ANSWER_CHARACTERS:
        return Answer(error=ValueError(f"the answer has {len(value):,} characters; that is no summary"))
    return Answer(value)


def said(answer: Answer) -> Answer:
    """The answer of a language model, which has to be text; anything else is a failure."""
    if answer.failed or answer.value is None or isinstance(answer.value, str):
        return answer
    return Answer(error=TypeError(f"the model answered with a {type(answer.value).__name__}, not with text"))


async def ask_async(model: Model, system: str, user: str, *, timeout_seconds: float) -> Answer:
    """The model's answer; a failure is an answer."""
    try:
        async with asyncio.timeout(timeout_seconds):
            if is_async(model):
                return bounded(await model(system, user))
            answer = await _on_thread(lambda: model(system, user))
            return bounded(await answer.value) if inspect.isawaitable(answer.value) else answer
    except Exception as error:  # noqa: BLE001 (the program decides what a failed request means)
        return Answer(error=error)


def within(seconds: float, call: Callable[[], Any]) -> Answer:
    """The answer of *call*, made on another thread and given up on after *seconds*."""
    answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
    _begin(call, answers.put)
    try:
        return answers.get(timeout=seconds)
    except queue.Empty:
        return Answer(error=TimeoutError(f"the model did not answer within {seconds:g} s"))


async def _on_thread(call: Callable[[], Any]) -> Answer:
    """The answer of *call*, made on another thread, which keeps neither the loop nor the process from ending."""
    loop = asyncio.get_running_loop()
    coming: asyncio.Future[Answer] = loop.create_future()

    def settle(answer: Answer) -> None:
        if not coming.done():
            coming.set_result(answer)

    def tell(answer: Answer) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended: nobody waits any more
            loop.call_soon_threadsafe(settle, answer)

    _begin(call, tell)
    return await coming


def _begin(call: Callable[[], Any], tell: Callable[[Answer], object]) -> None:
    """Make *call* on a thread of its own, in this context, and *tell* what came of it."""

    def work() -> None:
        try:
            answer = bounded(call())
        except Exception as error:  # noqa: BLE001 (the program decides what a failed request means)
            answer = Answer(error=error)
        except BaseException as error:  # noqa: BLE001 (a model that wants to end the process has failed)
            answer = Answer(error=RuntimeError(f"the model raised {type(error).__name__}"))
        tell(answer)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(work,), name="windowpane-model", daemon=True).start()


def settled(value: Any) -> Any:
    """The text of a model's answer; an async model is run to its end on a loop of its own."""
    return asyncio.run(_awaited(value)) if inspect.isawaitable(value) else value


def is_async(model: Model) -> bool:
    """Whether calling *model* gives something to await."""
    return inspect.iscoroutinefunction(model) or inspect.iscoroutinefunction(
        getattr(model, "__call__", None)  # noqa: B004 (an object with an async __call__)
    )


def name_of(model: object) -> str:
    """What a model is called in events: its `name`, else the name it was defined under, else its type's."""
    named = getattr(model, "name", None) or getattr(model, "__qualname__", None) or type(model).__name__
    return str(named).replace("<locals>.", "")[:100]


async def _awaited(value: Any) -> Any:
    return await value


def _asked(request: object) -> tuple[str, str]:
    if not isinstance(request, AskModel):
        raise TypeError(f"this program asks for {type(request).__name__}; only a model can be asked here")
    return request.system, request.user
