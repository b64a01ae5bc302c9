"""Model calls of the reductions, within the session's budget: their cost, and several texts shortened in one."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from windowpane.core.events import BreakerOpened, Usage
from windowpane.effects.commands import CallModel, CommandResult, Effect
from windowpane.effects.model_calls import fenced
from windowpane.manager.engine import Engine

SEVERAL: Final = """\
There are several texts, each between its own fences. Reply with one part per text, in the same order. Start \
each part with a line that contains only "=== TEXT n ===", where n is the number of the text.
"""
_log = logging.getLogger(__name__)

_PART: Final = re.compile(r"^=== TEXT (\d{1,3}) ===[ \t]*$", re.MULTILINE)


class ModelUse(NamedTuple):
    """The calls that one reduction made, and their price; None if the model has no known price."""

    calls: int = 0
    cost_dollars: float | None = None

    def plus(self, other: ModelUse) -> ModelUse:
        """Return the sum of both."""
        costs = [use.cost_dollars for use in (self, other) if use.cost_dollars is not None]
        return ModelUse(self.calls + other.calls, sum(costs) if costs else None)


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """The answer to one call."""

    reply: CommandResult
    use: ModelUse

    @property
    def text(self) -> str:
        """The text; empty if the call failed."""
        return "" if self.reply.failed else str(self.reply.value or "").strip()

    @property
    def failure(self) -> str:
        """The reason in an event; empty if the call did not fail."""
        return f"model failed: {type(self.reply.error).__name__}" if self.reply.failed else ""


NO_CALLS: Final = ModelUse()


class LabeledText(NamedTuple):
    """A text to shorten."""

    label: str
    text: str
    max_tokens: int


@dataclass(frozen=True, slots=True)
class ShortenedTexts:
    """The answer to a call that shortens several texts."""

    answer: ModelAnswer
    texts: Sequence[str]
    """In the order of the request, empty where the answer has no part for a text; none if it has no parts."""


def may_call_model(engine: Engine) -> bool:
    """Return whether a reduction may call the language model now."""
    return bool(engine.settings.model) and _is_affordable(engine)


def may_run_subagent(engine: Engine) -> bool:
    """Return whether a reduction may run the sub-agent now."""
    return engine.settings.subagent and _is_affordable(engine)


def _is_affordable(engine: Engine) -> bool:
    reduction = engine.reduction
    return not reduction.breaker.open and reduction.model_calls.allows(
        engine.tracker.turn, engine.settings.model_calls_per_turn
    )


def call_model(engine: Engine, system: str, user: str) -> Effect[ModelAnswer]:
    """Call the language model, within the budget; the price is that of the tokens as the engine counts them."""
    engine.reduction.model_calls.spend()
    reply = yield CallModel(system, user)
    cost = None
    if engine.model_cost_of is not None and not reply.failed:
        count = engine.counter.count
        usage = Usage(input_tokens=count(system) + count(user), output_tokens=count(str(reply.value or "")))
        cost = engine.model_cost_of(usage)
    return ModelAnswer(reply, ModelUse(1, cost))


def texts_per_call(engine: Engine, most: int) -> int:
    """Return how many texts one call may shorten: 1 for a model that has not answered in parts, else *most*."""
    return most if engine.reduction.answers_in_parts else 1


def shorten_texts(engine: Engine, instruction: str, texts: Sequence[LabeledText]) -> Effect[ShortenedTexts]:
    """Have the model shorten all of *texts* in one call; a failure counts against the circuit breaker."""
    prompts = [f"{text.label}, at most {text.max_tokens} tokens:\n{fenced([text.text])}" for text in texts]
    if len(texts) == 1:
        answer = yield from call_model(engine, instruction, prompts[0])
        parts = [answer.text]
    else:
        numbered = "\n\n".join(f"TEXT {number}: {text}" for number, text in enumerate(prompts, 1))
        answer = yield from call_model(engine, f"{instruction}\n{SEVERAL}", numbered)
        parts = split_answer(answer.text, len(texts))
        if answer.text and not any(parts):
            engine.reduction.answers_in_parts = False
            _log.info(
                "%s does not answer in parts; one text is shortened per call from now on", engine.settings.model
            )
            parts = []
    breaker = engine.reduction.breaker
    if answer.reply.failed and breaker.failed():
        engine.tracker.record(BreakerOpened(breaker.reason, breaker.attempts))
    return ShortenedTexts(answer, parts)


def split_answer(answer: str, count: int) -> list[str]:
    """Return the *count* parts of an answer to several texts; a part that is missing or repeated is empty."""
    pieces = _PART.split(answer)
    parts: dict[int, list[str]] = {}
    for number, text in zip(pieces[1::2], pieces[2::2], strict=True):
        parts.setdefault(int(number), []).append(text.strip())
    return [parts[number][0] if len(parts.get(number, ())) == 1 else "" for number in range(1, count + 1)]
