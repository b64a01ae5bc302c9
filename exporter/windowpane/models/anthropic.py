"""Anthropic clients as language models: what summarises, judges and writes questions."""

from __future__ import annotations

from typing import Any, Final

from windowpane.models.language_model import TIMEOUT_SECONDS, AnyLanguageModel, adapted

OUTPUT_TOKENS: Final = 4_096
"""Asked for where the caller names no `max_tokens`, which this provider wants in every call."""


def language_model(
    client: Any = None, *, model: str, timeout_seconds: float = TIMEOUT_SECONDS, **parameters: Any
) -> AnyLanguageModel:
    """*model* behind `client.messages` as a callable `(system, user) -> text`; async for an async client.

    Without a client one is made from the environment. *parameters* go along with every call, such as
    `max_tokens`. Errors of the client are raised as they are.
    """
    if client is None:
        import anthropic

        client = anthropic.Anthropic()

    def arguments(system: str, user: str) -> dict[str, Any]:
        messages = [{"role": "user", "content": user}]
        fixed = {"model": model, "max_tokens": OUTPUT_TOKENS, "timeout": timeout_seconds}
        return {**fixed, "system": system, "messages": messages, **parameters}

    return adapted(client.messages.create, arguments=arguments, text=_text, name=model)


def _text(reply: Any) -> str:
    """All text blocks of the reply; thinking and tool use are left out."""
    return "".join(block.text for block in reply.content if block.type == "text")
