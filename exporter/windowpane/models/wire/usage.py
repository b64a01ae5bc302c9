"""Usage of one call, in the names of every interface that reports it.

Interfaces differ in the names of the counts, and in what a count includes: the input the cache, the output the
reasoning. Where releases of one interface differ, the total shows it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any, Final, Literal, NamedTuple

from msgspec.structs import replace

from windowpane.core.events import Usage
from windowpane.core.limits import MAXIMUM_TOKENS
from windowpane.models.wire.messages import field_of, items_of, member_of

Path = tuple[str, ...]
"""Name of a count, after the names of the objects that it is in."""
Count = Callable[[Any, Path], int | None]
"""Reads the count at a path of a report."""
_LONGEST_NUMBER: Final = 15


def _paths(names: str) -> tuple[Path, ...]:
    return tuple(tuple(name.split("/")) for name in names.split())


def tokens_of(value: object) -> int | None:
    """Return *value* where it is a possible number of tokens, else None; tracers write numbers as text too."""
    if isinstance(value, str):
        value = int(value) if value.isdecimal() and len(value) <= _LONGEST_NUMBER else None
    elif isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAXIMUM_TOKENS:
        return value
    return None


def count_at(report: object, path: Path) -> int | None:
    """Return the count at *path*; None where there is none."""
    for name in path[:-1]:
        report = _field(report, name)
    return None if report is None else tokens_of(_field(report, path[-1]))


def _field(report: Any, name: str) -> Any:
    # Written out for the dictionaries of a recording: eight counts for every reply.
    return report.get(name) if type(report) is dict else field_of(report, name)


class UsageReader:
    """Reads usage in the names of one interface.

    Names are separated by blanks; the first whose count is not zero is used.
    """

    def __init__(
        self,
        input: str,  # noqa: A002  # the name of the count
        output: str,
        *,
        cached: str = "",
        written: str = "",
        hour_written: str = "",
        reasoning: str = "",
        total: str = "",
        cache: Literal["in_input", "beside_input", "by_total"] = "in_input",
        reasons_within_output: bool = True,
        retains_reasoning: bool = False,
        count: Count = count_at,
    ) -> None:
        """*reasons_within_output* holds where no total contradicts it."""
        self._input, self._output = _paths(input), _paths(output)
        self._cached, self._written, self._hour_written = map(_paths, (cached, written, hour_written))
        self._reasoning, self._total = _paths(reasoning), _paths(total)
        self._cache = cache
        self._reasons_within_output = reasons_within_output
        self._retains_reasoning = retains_reasoning
        self._count = count

    def read(self, report: object, *, exclusive: bool = False, count: Count | None = None) -> Usage | None:
        """Return the usage; None where the report states neither input nor output.

        *exclusive* is whether other calls have shown that the input excludes the cache. *count* reads a report
        that is neither a dictionary nor an object of a client.
        """
        if report is None:
            return None
        count = count or self._count

        def first(paths: tuple[Path, ...]) -> int | None:
            stated = None
            for path in paths:
                value = count(report, path)
                if value:
                    return value
                stated = value if stated is None else stated
            return stated

        stated_input, stated_output = first(self._input), first(self._output)
        if stated_input is None and stated_output is None:
            return None
        sent, output = stated_input or 0, stated_output or 0
        cached, written = first(self._cached) or 0, first(self._written) or 0
        reasoning, total = first(self._reasoning) or 0, first(self._total) or 0
        if self._cache == "beside_input" or (self._cache == "by_total" and total != sent + output):
            exclusive = True
        if reasoning:
            rest = sent + (cached + written if exclusive else 0)
            within = total < rest + output + reasoning if total else self._reasons_within_output
            output = max(output, reasoning) if within else min(output + reasoning, MAXIMUM_TOKENS)
        usage = Usage.of_prompt(
            sent, output, cached=cached, written=written, reasoning=reasoning, exclusive=exclusive
        )
        hour_written = first(self._hour_written) or 0
        if hour_written or (reasoning and self._retains_reasoning):
            retained = self._retains_reasoning and reasoning > 0
            return replace(usage, reasoning_retained=retained, hour_write_tokens=hour_written)
        return usage

    def read_sent(self, report: object, *, exclusive: bool = False, count: Count | None = None) -> Usage | None:
        """Return the usage of a recorded call; None for the zeros of a failed one."""
        usage = self.read(report, exclusive=exclusive, count=count)
        return usage if usage is not None and usage.input_total else None


def read_usage(usage: object) -> Usage | None:
    """Return the usage of a reply of OpenAI or Anthropic, whose names show the interface."""
    if isinstance(usage, Usage):
        return usage
    if _field(usage, "prompt_tokens") is not None:
        return CHAT.read(usage)
    if _field(usage, "input_tokens_details") is not None:
        return RESPONSES.read(usage)
    return ANTHROPIC.read(usage)


class Iterations(NamedTuple):
    """The runs of models within one call of Anthropic, which its usage lists."""

    window_tokens: int | None = None
    """Input of the last run, the size of the window, where the usage of the call is a sum; else None."""
    compaction: Usage | None = None
    """Tokens of the runs that made summaries, which the usage of the call excludes."""
    advisors: tuple[tuple[str, Usage], ...] = ()
    """Models that the call consulted, each with the tokens of one run, which its usage excludes likewise."""


def read_iterations(usage: object) -> Iterations:
    """Return what the runs within a call add to its usage; a compaction's input is not the size of the window."""
    listed = items_of(usage, "iterations")
    runs = [read for entry in listed if field_of(entry, "type") in _RUNS and (read := ANTHROPIC.read(entry))]
    made = [
        read for entry in listed if field_of(entry, "type") == "compaction" and (read := ANTHROPIC.read(entry))
    ]
    advisors = [
        (str(field_of(entry, "model") or ""), read)
        for entry in listed
        if field_of(entry, "type") == "advisor_message" and (read := ANTHROPIC.read(entry))
    ]
    return Iterations(
        runs[-1].input_total if len(runs) > 1 else None,
        reduce(Usage.__add__, made) if made else None,
        tuple(advisors),
    )


def advised_cost(
    own: float | None, advisors: Iterable[tuple[str, Usage]], price: Callable[[str, Usage], float | None]
) -> float | None:
    """Return the cost of a call with that of the models that it consulted; None where one is unknown."""
    costs = [own, *(price(model, usage) for model, usage in advisors)]
    return None if None in costs else math.fsum(cost for cost in costs if cost is not None)


_RUNS: Final = ("message", "fallback_message")


def _gemini_count(report: object, path: Path) -> int | None:
    """Return a count; the prompt excludes the results of the provider's own tools, which are counted apart."""
    tokens = tokens_of(member_of(report, path[0]))
    if tokens is None or path[0] != "promptTokenCount":
        return tokens
    return min(tokens + (tokens_of(member_of(report, "toolUsePromptTokenCount")) or 0), MAXIMUM_TOKENS)


def _converse_count(report: object, path: Path) -> int | None:
    """Return a count; cache writes are listed by the time that they are kept for."""
    if path[0] != "cacheDetails":
        return count_at(report, path)
    written = [entry for entry in items_of(report, "cacheDetails") if field_of(entry, "ttl") == "1h"]
    return sum(tokens_of(field_of(entry, "inputTokens")) or 0 for entry in written)


CHAT: Final = UsageReader(
    "prompt_tokens", "completion_tokens",
    cached="prompt_tokens_details/cached_tokens cache_read_input_tokens prompt_cache_hit_tokens",
    written="prompt_tokens_details/cache_write_tokens cache_creation_input_tokens",
    reasoning="completion_tokens_details/reasoning_tokens", total="total_tokens",
)  # fmt: skip
"""OpenAI's chat completions, and what providers add to them."""
RESPONSES: Final = UsageReader(
    "input_tokens", "output_tokens",
    cached="input_tokens_details/cached_tokens", written="input_tokens_details/cache_write_tokens",
    reasoning="output_tokens_details/reasoning_tokens", total="total_tokens", retains_reasoning=True,
)  # fmt: skip
ANTHROPIC: Final = UsageReader(
    "input_tokens", "output_tokens",
    cached="cache_read_input_tokens", written="cache_creation_input_tokens",
    hour_written="cache_creation/ephemeral_1h_input_tokens",
    reasoning="output_tokens_details/thinking_tokens output_tokens_details/reasoning_tokens",
    cache="beside_input", retains_reasoning=True,
)  # fmt: skip
GEMINI: Final = UsageReader(
    "promptTokenCount", "candidatesTokenCount", cached="cachedContentTokenCount", reasoning="thoughtsTokenCount",
    total="totalTokenCount", reasons_within_output=False, count=_gemini_count,
)  # fmt: skip
CONVERSE: Final = UsageReader(
    "inputTokens", "outputTokens", cached="cacheReadInputTokens", written="cacheWriteInputTokens",
    hour_written="cacheDetails", cache="beside_input", count=_converse_count,
)  # fmt: skip
LANGCHAIN: Final = UsageReader(
    "input_tokens", "output_tokens",
    cached="input_token_details/cache_read", written="input_token_details/cache_creation",
    reasoning="output_token_details/reasoning", total="total_tokens",
)  # fmt: skip
"""The `usage_metadata` of LangChain's messages."""
FLAT: Final = UsageReader(
    "input_tokens inputTokens prompt_tokens", "output_tokens outputTokens completion_tokens",
    cached="cache_read_tokens cacheReadTokens", written="cache_write_tokens cacheWriteTokens",
    reasoning="reasoning_tokens reasoningTokens",
)  # fmt: skip
"""Counts without details, as agents and frameworks record them."""
STRANDS: Final = UsageReader(
    "inputTokens", "outputTokens", cached="cacheReadInputTokens", written="cacheWriteInputTokens",
    total="totalTokens", cache="by_total",
)  # fmt: skip
"""Strands, which reports Bedrock's counts and, in the same names, those of other providers."""
CODEX_ROLLOUT: Final = UsageReader(
    "input_tokens", "output_tokens", cached="cached_input_tokens", written="cache_write_input_tokens",
    reasoning="reasoning_output_tokens", total="total_tokens", retains_reasoning=True,
)  # fmt: skip
CLINE: Final = UsageReader("tokensIn", "tokensOut", cached="cacheReads", written="cacheWrites")
GEMINI_CLI: Final = UsageReader(
    "input", "output", cached="cached", reasoning="thoughts", total="total", reasons_within_output=False
)
OPENCODE: Final = UsageReader(
    "input", "output", cached="cache/read", written="cache/write", reasoning="reasoning", total="total",
    cache="beside_input",
)  # fmt: skip
PI: Final = UsageReader("input", "output", cached="cacheRead", written="cacheWrite", cache="beside_input")
INSPECT_AI: Final = UsageReader(
    "input_tokens", "output_tokens", cached="input_tokens_cache_read", written="input_tokens_cache_write",
    reasoning="reasoning_tokens", total="total_tokens", cache="by_total",
)  # fmt: skip
LANGFUSE: Final = UsageReader(
    "input", "output",
    cached="input_cached_tokens input_cache_read cache_read_input_tokens input_cached",
    written="input_cache_creation cache_creation_input_tokens input_cache_write",
    reasoning="output_reasoning_tokens output_reasoning reasoning_tokens",
    total="total", cache="by_total", reasons_within_output=False,
)  # fmt: skip
GEN_AI: Final = UsageReader(
    "gen_ai.usage.input_tokens gen_ai.usage.prompt_tokens llm.usage.prompt_tokens",
    "gen_ai.usage.output_tokens gen_ai.usage.completion_tokens llm.usage.completion_tokens",
    cached="gen_ai.usage.cache_read.input_tokens gen_ai.usage.cache_read_input_tokens gen_ai.usage.cached_tokens"
    " gen_ai.usage.input_tokens.cached gen_ai.usage.input_cached_tokens",
    written="gen_ai.usage.cache_creation.input_tokens gen_ai.usage.cache_creation_input_tokens"
    " gen_ai.usage.cache_write.input_tokens gen_ai.usage.input_tokens.cache_write",
    reasoning="gen_ai.usage.reasoning.output_tokens gen_ai.usage.reasoning_tokens"
    " gen_ai.usage.output_tokens.reasoning",
)  # fmt: skip
"""OpenTelemetry's conventions, current and earlier ones."""
OPENINFERENCE: Final = UsageReader(
    "llm.token_count.prompt", "llm.token_count.completion",
    cached="llm.token_count.prompt_details.cache_read", written="llm.token_count.prompt_details.cache_write",
    reasoning="llm.token_count.completion_details.reasoning", total="llm.token_count.total",
)  # fmt: skip
VERCEL: Final = UsageReader(
    "ai.usage.inputTokens ai.usage.promptTokens gen_ai.usage.input_tokens",
    "ai.usage.outputTokens ai.usage.completionTokens gen_ai.usage.output_tokens",
    cached="ai.usage.cachedInputTokens ai.usage.inputTokenDetails.cacheReadTokens",
    written="ai.usage.inputTokenDetails.cacheWriteTokens",
    reasoning="ai.usage.reasoningTokens ai.usage.outputTokenDetails.reasoningTokens",
    total="ai.usage.totalTokens",
)  # fmt: skip
CLAUDE_CODE_EVENT: Final = UsageReader(
    "input_tokens", "output_tokens", cached="cache_read_tokens", written="cache_creation_tokens",
    cache="beside_input",
)  # fmt: skip
CODEX_EVENT: Final = UsageReader(
    "input_token_count", "output_token_count", cached="cached_token_count", written="cache_write_token_count",
    reasoning="reasoning_token_count",
)  # fmt: skip
GEMINI_CLI_EVENT: Final = UsageReader(
    "input_token_count", "output_token_count", cached="cached_content_token_count",
    reasoning="thoughts_token_count", total="total_token_count", reasons_within_output=False,
)  # fmt: skip
