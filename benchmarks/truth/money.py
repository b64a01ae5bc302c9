"""Costs of recorded sessions against a recomputation from the raw recordings and the published rates.

The recordings are read with nothing but JSON, so that the readers and the packaged prices are measured too.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from truth.recordings import Session
from windowpane.core.events import TurnEnded


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
    "claude-opus-4-5-20251101": _claude(5.0, 25.0),
    "claude-opus-4-6": _claude(5.0, 25.0),
    "claude-opus-5": _claude(5.0, 25.0),
    "claude-sonnet-4-5-20250929": _claude(3.0, 15.0, long_tokens=200_000, long_input=2.0, long_output=1.5),
    "claude-sonnet-5": _claude(2.0, 10.0),
    "claude-fable-5": _claude(10.0, 50.0),
    "gpt-5.5": Rate(5.0, 30.0, 0.5, long_tokens=272_000, long_input=2.0, long_output=1.5),
    "gpt-5.4": Rate(2.5, 15.0, 0.25, long_tokens=272_000, long_input=2.0, long_output=1.5),
    "gemini-2.5-flash": Rate(0.3, 2.5, 0.03),
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
        rate = RATES.get(self.model)
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
    return [] if read is None else list(read(path.read_text(encoding="utf-8")))


def _claude_code(text: str) -> Iterator[RawCall]:
    """Each line of a message repeats its usage as far as it was known: the largest counts."""
    counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    models: dict[str, str] = {}
    for row in json_values(text):
        message = row.get("message")
        if not isinstance(message, dict) or message.get("model") not in RATES or not message.get("usage"):
            continue
        usage = message["usage"]
        models[message["id"]] = message["model"]
        found = {
            "input": usage.get("input_tokens"),
            "cache_read": usage.get("cache_read_input_tokens"),
            "cache_write": usage.get("cache_creation_input_tokens"),
            "hour_write": (usage.get("cache_creation") or {}).get("ephemeral_1h_input_tokens"),
            "output": usage.get("output_tokens"),
        }
        for name, count in found.items():
            counts[message["id"]][name] = max(counts[message["id"]][name], count or 0)
    for key, model in models.items():
        yield RawCall(model, **counts[key])


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


_READERS: Final[Mapping[str, Callable[[str], Iterator[RawCall]]]] = {
    "claude_code": _claude_code, "codex": _codex, "gemini_cli": _gemini, "pi": _pi, "opencode": _opencode,
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
        if isinstance(value, dict):
            yield value


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
        "the published rates (for pi and opencode: against the sum of what the recording states). No published "
        f"rate here: {models or 'none'}."
    )
    return [
        intro,
        "",
        "| format | recordings | calls | recomputed | Windowpane | largest difference of a recording |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
        *(_row(name, found) for name, found in sorted(rows.items())),
    ]


def _dollars(session: Session) -> float:
    return sum(event.data.cost_dollars or 0.0 for event in session.events if isinstance(event.data, TurnEnded))


def _row(name: str, found: Sequence[tuple[float, float, int]]) -> str:
    largest = max(abs(own - raw) / raw for raw, own, _ in found)
    raw, own, calls = (sum(column) for column in zip(*found, strict=True))
    return f"| {name} | {len(found)} | {calls:,} | ${raw:,.2f} | ${own:,.2f} | {largest:.3%} |"
