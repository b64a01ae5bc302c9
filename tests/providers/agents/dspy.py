"""Programs of DSPy, whose models send their calls by its own client."""

from __future__ import annotations

import asyncio
from typing import Any

import dspy
from dspy.utils.exceptions import LMError
from tests.providers.agent_runs import QUESTION, SYSTEM
from tests.providers.formats import Refusal, Reply
from tests.providers.loopback import LoopbackProvider

import windowpane

dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=False)
ANSWER = "[[ ## answer ## ]]\nThey are alike.\n\n[[ ## completed ## ]]"


def model(provider: LoopbackProvider, name: str = "openai/gpt-4o", path: str = "/v1", **more: Any) -> dspy.LM:
    return dspy.LM(name, api_key="k", api_base=f"{provider.url}{path}", cache=False, engine="lm15", **more)


def opening() -> list[dict[str, Any]]:
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}]


def predict(provider: LoopbackProvider) -> None:
    with windowpane.observe_everything(), dspy.context(lm=model(provider)):
        for _ in range(2):
            assert dspy.Predict("question -> answer")(question=QUESTION).answer == "They are alike."


def predict_async(provider: LoopbackProvider) -> None:
    with windowpane.observe_everything(), dspy.context(lm=model(provider)):
        asyncio.run(dspy.Predict("question -> answer").acall(question=QUESTION))


def streamed(provider: LoopbackProvider) -> None:
    """A streamed program, whose client stops reading at the stream's own end."""

    async def read() -> None:
        program = dspy.streamify(dspy.Predict("question -> answer"), async_streaming=True)
        async for _ in program(question=QUESTION):
            pass

    with windowpane.observe_everything(), dspy.context(lm=model(provider)):
        asyncio.run(read())


def anthropic(provider: LoopbackProvider) -> None:
    with windowpane.observe_everything():
        model(provider, "anthropic/claude-sonnet-4-5", "", max_tokens=1_000)(messages=opening())


def gemini(provider: LoopbackProvider) -> None:
    with windowpane.observe_everything():
        model(provider, "gemini/gemini-2.5-flash", "/v1beta")(messages=opening())


def responses(provider: LoopbackProvider) -> None:
    with windowpane.observe_everything():
        model(provider, model_type="responses")(messages=opening())


def refused(provider: LoopbackProvider) -> None:
    made = model(provider, num_retries=0)
    with windowpane.observe_everything():
        for _ in range(2):
            try:
                made(messages=opening())
                raise AssertionError("expected an error")
            except LMError:
                pass
        made(messages=opening())


def answers(count: int) -> Any:
    return lambda: [Reply(ANSWER)] * count


predict.replies = answers(2)  # type: ignore[attr-defined]
predict_async.replies = streamed.replies = answers(1)  # type: ignore[attr-defined]
anthropic.replies = gemini.replies = responses.replies = lambda: [Reply()]  # type: ignore[attr-defined]
refused.replies = lambda: [Refusal("overflow"), Refusal("rate_limit"), Reply()]  # type: ignore[attr-defined]
SCENARIOS = {
    agent.__name__: agent for agent in (predict, predict_async, streamed, anthropic, gemini, responses, refused)
}
