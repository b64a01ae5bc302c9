"""Agents that call Gemini by the client of google-genai."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

from google.genai import errors, types
from tests.providers.agent_runs import QUESTION, SECOND_QUESTION, SYSTEM, gemini_client, report, script
from tests.providers.formats import Refusal, Reply
from tests.providers.loopback import LoopbackProvider

import windowpane

MODEL = "gemini-2.5-flash"


def weather(city: str) -> str:
    """Return the weather in a city."""
    return report(city)


weather.__annotations__ = {"city": str, "return": str}  # early releases do not read them as text


CONFIG = types.GenerateContentConfig(system_instruction=SYSTEM, tools=[weather])


def chat(provider: LoopbackProvider) -> None:
    """A chat with automatic function calling."""
    client = windowpane.observe(gemini_client(provider))
    session = client.chats.create(model=MODEL, config=CONFIG)
    for question in (QUESTION, SECOND_QUESTION):
        session.send_message(question)


def chat_stream(provider: LoopbackProvider) -> None:
    client = windowpane.observe(gemini_client(provider))
    session = client.chats.create(model=MODEL, config=CONFIG)
    for question in (QUESTION, SECOND_QUESTION):
        for _ in session.send_message_stream(question):
            pass


def chat_async(provider: LoopbackProvider) -> None:
    async def converse() -> None:
        client = windowpane.observe(gemini_client(provider))
        session = client.aio.chats.create(model=MODEL, config=CONFIG)
        for question in (QUESTION, SECOND_QUESTION):
            await session.send_message(question)

    asyncio.run(converse())


def chat_async_stream(provider: LoopbackProvider) -> None:
    async def converse() -> None:
        client = windowpane.observe(gemini_client(provider))
        session = client.aio.chats.create(model=MODEL, config=CONFIG)
        for question in (QUESTION, SECOND_QUESTION):
            async for _ in await session.send_message_stream(question):
                pass

    asyncio.run(converse())


def own_list(provider: LoopbackProvider) -> None:
    """An agent that keeps its own contents, with a cache, thoughts and a result that it blanks."""
    client = windowpane.observe(gemini_client(provider))
    contents: list[Any] = [{"role": "user", "parts": [{"text": QUESTION}]}]
    for number in range(4):
        config = types.GenerateContentConfig(cached_content="cachedContents/c1")
        reply = client.models.generate_content(model=MODEL, contents=contents, config=config)
        contents.append(reply.candidates[0].content)
        for call in reply.function_calls or ():
            part = types.Part.from_function_response(
                name=call.name, response={"result": report(call.args["city"])}
            )
            contents.append(types.Content(role="user", parts=[part]))
        if not reply.function_calls:
            contents.append({"role": "user", "parts": [{"text": f"{SECOND_QUESTION} ({number})"}]})
        if number == 2:
            contents[2].parts[0].function_response.response = {"result": "[cleared]"}


own_list.replies = lambda: [  # type: ignore[attr-defined]
    Reply(reply.text, reply.calls, thinking="The user wants a comparison.", cached_tokens=20)
    for reply in script()
    if isinstance(reply, Reply)
]


def refused(provider: LoopbackProvider) -> None:
    """An overflow and a rate limit, which the agent gets as they are, then a reply."""
    client = windowpane.observe(gemini_client(provider))
    for expected in ("exceeds the maximum number of tokens", "Rate limit reached"):
        try:
            client.models.generate_content(model=MODEL, contents=QUESTION)
        except errors.ClientError as error:
            assert expected in str(error)  # noqa: PT017
    client.models.generate_content(model=MODEL, contents=QUESTION)


refused.replies = lambda: [Refusal("overflow"), Refusal("rate_limit"), Reply()]  # type: ignore[attr-defined]


def dropped_stream(provider: LoopbackProvider) -> None:
    """An agent that stops reading midway: the turn has what came until then."""
    client = windowpane.observe(gemini_client(provider))
    stream = client.models.generate_content_stream(model=MODEL, contents=QUESTION)
    assert next(stream).text == "On "
    stream.close()
    del stream
    gc.collect()


dropped_stream.compared = False  # type: ignore[attr-defined]  # the bare client reads all of it
dropped_stream.replies = lambda: [Reply()]  # type: ignore[attr-defined]

SCENARIOS = {
    agent.__name__: agent
    for agent in (chat, chat_stream, chat_async, chat_async_stream, own_list, refused, dropped_stream)
}
