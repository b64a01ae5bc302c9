"""OpenAI clients as language models: what summarises, judges and writes questions."""

from __future__ import annotations

from typing import Any

from windowpane.models.language_model import TIMEOUT_SECONDS, AnyLanguageModel, adapted


def language_model(
    client: Any = None, *, model: str, timeout_seconds: float = TIMEOUT_SECONDS, **parameters: Any
) -> AnyLanguageModel:
    """*model* behind `client.chat.completions` as a callable `(system, user) -> text`; async for an async client.

    Without a client one is made from the environment. *parameters* go along with every call, such as
    `max_completion_tokens` or `reasoning_effort`. Errors of the client are raised as they are.
    """
    if client is None:
        import openai

        client = openai.OpenAI()

    def arguments(system: str, user: str) -> dict[str, Any]:
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        return {"model": model, "messages": messages, "timeout": timeout_seconds, **parameters}

    return adapted(client.chat.completions.create, arguments=arguments, text=_text, name=model)


def _text(reply: Any) -> str:
    """The text of the first choice; empty where the model refused or gave none."""
    return str(reply.choices[0].message.content or "") if reply.choices else ""
