"""OpenAI and Anthropic clients as language models that summarize, judge and write questions.

Each adapter returns a callable `(system, user) -> text`, async for an async client. Errors of the client are
raised unchanged.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

LanguageModel = Callable[[str, str], str]
"""`(system, user) -> text`."""
AsyncLanguageModel = Callable[[str, str], Awaitable[str]]
AnyLanguageModel = LanguageModel | AsyncLanguageModel

TIMEOUT_SECONDS: Final = 60.0
"""Timeout of one attempt; retries by the client come on top."""
ANTHROPIC_OUTPUT_TOKENS: Final = 4_096
"""Default `max_tokens`, which Anthropic requires in every call."""


def openai_model(
    client: Any = None, *, model: str, timeout_seconds: float = TIMEOUT_SECONDS, **parameters: Any
) -> AnyLanguageModel:
    """Return *model* behind `client.chat.completions` as a callable `(system, user) -> text`.

    Without a client one is created from the environment. *parameters* are sent with every call, such as
    `max_completion_tokens` or `reasoning_effort`. The text is that of the first choice, empty after a refusal.
    """
    if client is None:
        import openai

        client = openai.OpenAI()

    def arguments(system: str, user: str) -> dict[str, Any]:
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        return {"model": model, "messages": messages, "timeout": timeout_seconds, **parameters}

    def text(reply: Any) -> str:
        return str(reply.choices[0].message.content or "") if reply.choices else ""

    return _language_model(client.chat.completions.create, arguments=arguments, text=text, name=model)


def anthropic_model(
    client: Any = None, *, model: str, timeout_seconds: float = TIMEOUT_SECONDS, **parameters: Any
) -> AnyLanguageModel:
    """Return *model* behind `client.messages` as a callable `(system, user) -> text`.

    Without a client one is created from the environment. *parameters* are sent with every call, such as
    `max_tokens`. The text is that of all text blocks, without thinking and tool use.
    """
    if client is None:
        import anthropic

        client = anthropic.Anthropic()

    def arguments(system: str, user: str) -> dict[str, Any]:
        messages = [{"role": "user", "content": user}]
        fixed = {"model": model, "max_tokens": ANTHROPIC_OUTPUT_TOKENS, "timeout": timeout_seconds}
        return {**fixed, "system": system, "messages": messages, **parameters}

    def text(reply: Any) -> str:
        return "".join(block.text for block in reply.content if block.type == "text")

    return _language_model(client.messages.create, arguments=arguments, text=text, name=model)


def _language_model(
    create: Callable[..., Any],
    *,
    arguments: Callable[[str, str], Mapping[str, Any]],
    text: Callable[[Any], str],
    name: str,
) -> AnyLanguageModel:
    """Return a callable around *create*, async if *create* is; events name the model by *name*."""

    def call(system: str, user: str) -> str:
        return text(create(**arguments(system, user)))

    async def call_async(system: str, user: str) -> str:
        return text(await create(**arguments(system, user)))

    model: AnyLanguageModel = call_async if inspect.iscoroutinefunction(inspect.unwrap(create)) else call
    model.name = name  # type: ignore[union-attr]  # functions accept attributes
    return model
