"""Costs of recorded sessions against a recomputation from the raw recordings and the published rates.

The recordings are read with nothing but JSON, so that the readers and the packaged prices are measured too.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from truth.recordings import Session
from windowpane.core.events import Event, TurnEnded
from windowpane.models.catalog import packaged_catalog


class Rate(NamedTuple):
    """Dollars per million tokens, and those of a call with more input than *long_tokens*."""

    input: float
    output: float
    cache_read: float
    cache_write: float = 0.0
    hour_write: float = 0.0
    long_tokens: int = 0
    long_input: float = 1.0
    """Factor of all rates of the input in a long call; likewise of the output."""
    long_output: float = 1.0


def _claude(into: float, out: float, **long: Any) -> Rate:
    return Rate(into, out, 0.1 * into, 1.25 * into, 2 * into, **long)


RATES: Final = {
    "claude-opus-4-20250514": _claude(15.0, 75.0),
    "claude-opus-4-5-20251101": _claude(5.0, 25.0),
    "claude-opus-4-6": _claude(5.0, 25.0),
    "claude-opus-5": _claude(5.0, 25.0),
    "claude-sonnet-4-5-20250929": _claude(3.0, 15.0, long_tokens=200_000, long_input=2.0, long_output=1.5),
    "claude-sonnet-5": _claude(2.0, 10.0),
    "claude-fable-5": _claude(10.0, 50.0),
    "gpt-5.5": Rate(5.0, 30.0, 0.5, long_tokens=272_000, long_input=2.0, long_output=1.5),
    "gpt-5.4": Rate(2.5, 15.0, 0.25, long_tokens=272_000, long_input=2.0, long_output=1.5),
    "gemini-2.5-flash": Rate(0.3, 2.5, 0.03),
    "claude-sonnet-4-20250514": _claude(3.0, 15.0, long_tokens=200_000, long_input=2.0, long_output=1.5),
    "claude-3-5-sonnet-20241022": _claude(3.0, 15.0),
    "gpt-5": Rate(1.25, 10.0, 0.125),
    "gpt-4o": Rate(2.5, 10.0, 1.25),
    "gpt-4o-mini": Rate(0.15, 0.6, 0.075),
    "gpt-4o-mini-2024-07-18": Rate(0.15, 0.6, 0.075),
    "gpt-3.5-turbo": Rate(0.5, 1.5, 0.5),
    "minimax-m2.7": Rate(0.3, 1.2, 0.06, 0.375),
}
"""Published rates of the recorded models."""


@dataclass(frozen=True, slots=True)
class RawCall:
    """The usage of one model call as its recording has it; or the dollars that the recording states."""

    model: str = ""
    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    hour_write: int = 0
    output: int = 0
    stated_dollars: float | None = None

    @property
    def dollars(self) -> float | None:
        """The cost at the published rates; None for a model without one."""
        if self.stated_dollars is not None:
            return self.stated_dollars
        rate = RATES.get(self.model.rpartition("/")[2])
        if rate is None:
            return None
        written = self.cache_write - self.hour_write
        into = (
            rate.input * self.input + rate.cache_read * self.cache_read
            + rate.cache_write * written + rate.hour_write * self.hour_write
        )  # fmt: skip
        out = rate.output * self.output
        if rate.long_tokens and self.input + self.cache_read + self.cache_write > rate.long_tokens:
            into, out = rate.long_input * into, rate.long_output * out
        return (into + out) / 1e6


def raw_calls(path: Path, format_name: str) -> list[RawCall]:
    """Return the calls of a recording; none of formats without raw usage."""
    read = _READERS.get(format_name)
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    return [] if read is None else [call for file in files for call in read(file.read_text(encoding="utf-8"))]


def _claude_code(text: str) -> Iterator[RawCall]:
    """Each line of a message repeats its usage as far as it was known: the largest counts.

    Another model that advised during the reply has its own usage in it.
    """
    counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    advised: dict[str, list[dict[str, Any]]] = {}
    models: dict[str, str] = {}
    for row in json_values(text):
        message = row.get("message")
        if not isinstance(message, dict) or message.get("model") not in RATES or not message.get("usage"):
            continue
        usage = message["usage"]
        models[message["id"]] = message["model"]
        parts = usage.get("iterations") or ()
        advised[message["id"]] = [part for part in parts if part.get("type") == "advisor_message"]
        for name, count in _claude_counts(usage).items():
            counts[message["id"]][name] = max(counts[message["id"]][name], count)
    for key, model in models.items():
        yield RawCall(model, **counts[key])
        yield from (RawCall(part["model"], **_claude_counts(part)) for part in advised[key])


def _claude_counts(usage: Mapping[str, Any]) -> dict[str, int]:
    return {
        "input": usage.get("input_tokens") or 0,
        "cache_read": usage.get("cache_read_input_tokens") or 0,
        "cache_write": usage.get("cache_creation_input_tokens") or 0,
        "hour_write": (usage.get("cache_creation") or {}).get("ephemeral_1h_input_tokens") or 0,
        "output": usage.get("output_tokens") or 0,
    }


def _codex(text: str) -> Iterator[RawCall]:
    """A count is written again without a call between: its totals have not changed then."""
    model, totals = "", None
    for row in json_values(text):
        payload = row.get("payload") or {}
        if row.get("type") == "turn_context":
            model = payload.get("model") or model
        info = payload.get("info") if payload.get("type") == "token_count" else None
        if not info or info["total_token_usage"] == totals:
            continue
        totals, last = info["total_token_usage"], info["last_token_usage"]
        if last["input_tokens"]:
            cached = last["cached_input_tokens"]
            yield RawCall(model, last["input_tokens"] - cached, cached, output=last["output_tokens"])


def _gemini(text: str) -> Iterator[RawCall]:
    values = list(json_values(text))
    messages = values[0].get("messages") or values
    last = {message["id"]: message for message in messages if message.get("tokens")}
    for message in last.values():
        tokens = message["tokens"]
        fresh = tokens["input"] - tokens["cached"] + tokens.get("tool", 0)
        yield RawCall(
            message.get("model", ""), fresh, tokens["cached"], output=tokens["output"] + tokens["thoughts"]
        )


def _pi(text: str) -> Iterator[RawCall]:
    for row in json_values(text):
        usage = (row.get("message") or {}).get("usage")
        if usage:
            yield RawCall(stated_dollars=usage["cost"]["total"])


def _opencode(text: str) -> Iterator[RawCall]:
    for value in json_values(text):
        for message in value.get("messages") or ():
            if message["info"].get("cost"):
                yield RawCall(stated_dollars=message["info"]["cost"])


def _litellm(model: str, usage: Mapping[str, Any]) -> RawCall:
    """The input total of LiteLLM contains what the cache read and wrote."""
    read, written = (usage.get(f"cache_{kind}_input_tokens") or 0 for kind in ("read", "creation"))
    fresh = usage["prompt_tokens"] - read - written
    return RawCall(model, fresh, read, written, output=usage["completion_tokens"])


def _litellm_logs(text: str) -> Iterator[RawCall]:
    for value in json_values(text):
        yield _litellm(value["response"]["model"], value["response"]["usage"])


def _openhands(text: str) -> Iterator[RawCall]:
    """The reply's usage; else the running totals of each use of a model; else the dollars of each call."""
    replies: dict[str, Mapping[str, Any]] = {}
    totals: dict[str, Mapping[str, Any]] = {}
    for row in json_values(text):
        reply = (row.get("tool_call_metadata") or {}).get("model_response")
        if reply:
            replies[reply["id"]] = reply
        state = row.get("value")
        for use, metrics in (state.get("usage_to_metrics") or {}).items() if isinstance(state, dict) else ():
            totals[use] = metrics["accumulated_token_usage"]
        for dollars in (row.get("metrics") or {}).get("costs") or ():
            yield RawCall(stated_dollars=dollars)
    for reply in replies.values():
        yield _litellm(reply["model"], reply["usage"])
    for used in totals.values():
        read, written = used["cache_read_tokens"], used["cache_write_tokens"]
        fresh = used["prompt_tokens"] - read - written
        if used["prompt_tokens"]:
            yield RawCall(used["model"], fresh, read, written, output=used["completion_tokens"])


def _tau2_bench(text: str) -> Iterator[RawCall]:
    """The usage does not state what was read from the cache; the dollars beside it contain its discount."""
    for value in json_values(text):
        for simulation in value["simulations"]:
            for message in simulation["messages"]:
                if message["role"] == "assistant" and message.get("usage"):
                    yield RawCall(stated_dollars=message["cost"])


def _inspect_ai(text: str) -> Iterator[RawCall]:
    for value in json_values(text):
        for sample in value["samples"]:
            for event in sample["events"]:
                if event["event"] == "model":
                    usage = event["output"]["usage"]
                    read = usage.get("input_tokens_cache_read") or 0
                    yield RawCall(event["model"], usage["input_tokens"], read, output=usage["output_tokens"])


_OTLP_FIELDS: Final = {
    "model": ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name"),
    "input": ("gen_ai.usage.input_tokens", "llm.token_count.prompt"),
    "output": ("gen_ai.usage.output_tokens", "llm.token_count.completion"),
}


def _otlp(text: str) -> Iterator[RawCall]:
    """A span of a call has its usage by the conventions; one around it repeats none of these attributes."""
    for attributes in _span_attributes(list(json_values(text))):
        found = {
            field: next((attributes[name] for name in names if name in attributes), None)
            for field, names in _OTLP_FIELDS.items()
        }
        if found["input"] is not None:
            yield RawCall(str(found["model"]), int(found["input"]), output=int(found["output"] or 0))


def _span_attributes(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, list):
        for item in value:
            yield from _span_attributes(item)
    elif isinstance(value, dict):
        own = value.get("attributes")
        if isinstance(own, list):
            yield {one["key"]: next(iter(one["value"].values()), None) for one in own}
        elif isinstance(own, dict):
            yield own
        for name, item in value.items():
            if name != "attributes":
                yield from _span_attributes(item)


_READERS: Final[Mapping[str, Callable[[str], Iterator[RawCall]]]] = {
    "claude_code": _claude_code, "codex": _codex, "gemini_cli": _gemini, "pi": _pi, "opencode": _opencode,
    "litellm_logs": _litellm_logs, "openhands": _openhands, "tau2_bench": _tau2_bench, "inspect_ai": _inspect_ai,
    "otlp": _otlp,
}  # fmt: skip


def json_values(text: str) -> Iterator[dict[str, Any]]:
    """Yield the objects of a text, one or several a line or one in all; the rest of a damaged line is skipped."""
    decoder, at = json.JSONDecoder(), 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        try:
            value, at = decoder.raw_decode(text, at)
        except ValueError:
            at = (text.find("\n", at) + 1) or len(text)
            continue
        yield from (one for one in (value if isinstance(value, list) else [value]) if isinstance(one, dict))


# -- table ----------------------------------------------------------------------------------------------------


def money_section(sessions: Sequence[Session]) -> list[str]:
    """Return the table of the recordings' costs by format."""
    by_path: dict[Path, list[Session]] = defaultdict(list)
    for session in sessions:
        by_path[session.path].append(session)
    rows: dict[str, list[tuple[float, float, int]]] = defaultdict(list)
    unpriced: set[str] = set()
    for path, own in by_path.items():
        calls = raw_calls(path, own[0].format)
        unpriced |= {call.model for call in calls if call.dollars is None}
        recomputed = sum(call.dollars or 0.0 for call in calls)
        if recomputed:
            rows[own[0].format].append((recomputed, sum(map(_dollars, own)), len(calls)))
    models = ", ".join(f"`{model}`" for model in sorted(unpriced - {""}))
    intro = (
        "The dollars of each recording, its sub-agents included, against a recomputation from the raw usage at "
        "the published rates (for pi, opencode, tau2_bench and the first release of OpenHands: against the sum "
        "of what the recording states). Without a published rate, and without dollars in the product: "
        f"{models or 'none'}."
    )
    return [
        intro,
        "",
        "| format | recordings | calls | recomputed | Windowpane | largest difference of a recording |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
        *(_row(name, found) for name, found in sorted(rows.items())),
    ]


def _dollars(session: Session) -> float:
    """Return what Windowpane computes of the recorded usage, without its estimates of outputs."""
    return sum(_recorded(event, event.data) for event in session.events if isinstance(event.data, TurnEnded))


def _recorded(event: Event, ended: TurnEnded) -> float:
    usage, output = ended.usage, ended.recorded_output_tokens
    if usage is None or output is None:
        return ended.cost_dollars or 0.0
    recorded = replace(usage, output_tokens=output)
    return packaged_catalog().cost_dollars(event.context.model, recorded, event.at) or 0.0


def _row(name: str, found: Sequence[tuple[float, float, int]]) -> str:
    largest = max(abs(own - raw) / raw for raw, own, _ in found)
    raw, own, calls = (sum(column) for column in zip(*found, strict=True))
    return f"| {name} | {len(found)} | {calls:,} | ${raw:,.2f} | ${own:,.2f} | {largest:.3%} |"
