"""Costs of recorded sessions against a recomputation from the raw transcripts and the published rates."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from windowpane.cli import main
from windowpane.core.events import Usage
from windowpane.models.catalog import packaged_catalog
from windowpane.models.replies import read_usage
from windowpane.store.interface import SessionFilter
from windowpane.store.sqlite import SqliteStore

RATES = {
    "claude-opus-4-5-20251101": (5.0, 25.0),
    "claude-opus-4-6": (5.0, 25.0),
    "claude-opus-5": (5.0, 25.0),
    "claude-sonnet-4-5-20250929": (3.0, 15.0),
    "claude-sonnet-5": (2.0, 10.0),
    "claude-fable-5": (10.0, 50.0),
}
"""Dollars per million tokens of input and output."""
READ, WRITE, HOUR_WRITE = 0.1, 1.25, 2.0
"""Factors of the input rate for tokens read from the cache, written to it, and written to it for an hour."""
LONG_RATES = {"claude-sonnet-4-5-20250929": (6.0, 22.5)}
"""Rates of a call with more than 200,000 tokens of input, where they differ."""
LONG_CONTEXT_TOKENS = 200_000
COUNTS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
SAMPLED = 6


@dataclass
class RawCall:
    """The usage of one model call, each count at its largest over the call's lines."""

    model: str = ""
    counts: dict[str, int] = field(default_factory=dict)

    def dollars(self) -> float:
        """Return the cost at the published rates."""
        into, out = RATES[self.model]
        if sum(self.counts[name] for name in COUNTS[:3]) > LONG_CONTEXT_TOKENS:
            into, out = LONG_RATES.get(self.model, (into, out))
        hour = self.counts["hour"]
        tokens = (
            self.counts["input_tokens"]
            + READ * self.counts["cache_read_input_tokens"]
            + WRITE * (self.counts["cache_creation_input_tokens"] - hour)
            + HOUR_WRITE * hour
        )
        return (into * tokens + out * self.counts["output_tokens"]) / 1e6


def json_values(text: str) -> Iterator[dict[str, Any]]:
    """Yield the values of a text, also where two are on one line."""
    decoder, at = json.JSONDecoder(), 0
    while at < len(text):
        value, at = decoder.raw_decode(text, at)
        yield value
        while at < len(text) and text[at].isspace():
            at += 1


def raw_calls(transcript: Path) -> list[RawCall]:
    """Return the model calls of a transcript, read with nothing but JSON."""
    calls: dict[str, RawCall] = {}
    for row in json_values(transcript.read_text(encoding="utf-8")):
        message: Any = row.get("message")
        if not isinstance(message, dict) or message.get("model") not in RATES or not message.get("usage"):
            continue
        call = calls.setdefault(message["id"], RawCall(message["model"]))
        usage = message["usage"]
        found = {name: usage.get(name) or 0 for name in COUNTS}
        found["hour"] = (usage.get("cache_creation") or {}).get("ephemeral_1h_input_tokens") or 0
        for name, count in found.items():
            call.counts[name] = max(call.counts.get(name, 0), count)
    return list(calls.values())


@pytest.fixture(scope="module")
def corpus(sessions_dir: Path) -> Path:
    """The folder of long recorded sessions beside the recorded sessions."""
    folder = sessions_dir.parent / "corpus"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there: no long recorded sessions to read")
    return folder


def sampled(corpus: Path, *, everything: bool) -> list[Path]:
    """Return the transcripts to check: all, or a few of the smallest, half of them with one-hour writes."""
    files = sorted((corpus / "claude_code").glob("*.jsonl"), key=lambda file: file.stat().st_size)
    if everything:
        return files
    hour = [file for file in files if any(call.counts["hour"] for call in raw_calls(file))][: SAMPLED // 2]
    return hour + [file for file in files if file not in hour][: SAMPLED - len(hour)]


def test_a_session_costs_what_its_raw_usage_costs(corpus: Path, tmp_path: Path) -> None:
    """The stored cost of each session differs by at most 0.1% from the usage of its transcript at the rates."""
    wrong = {}
    for number, file in enumerate(sampled(corpus, everything="WINDOWPANE_TEST_ALL" in os.environ)):
        store_file = tmp_path / f"{number}.db"
        assert CliRunner().invoke(main, ["import", str(file), "--store", str(store_file)]).exit_code == 0
        with closing(SqliteStore(store_file)) as store:
            stored = sum(row.cost_dollars or 0.0 for row in store.sessions(SessionFilter(limit=1_000)))
        expected = sum(call.dollars() for call in raw_calls(file))
        if abs(stored - expected) > expected / 1_000:
            wrong[file.name] = (stored, expected)

    assert not wrong


def test_every_model_of_the_recordings_has_a_price_or_is_known_to_have_none(corpus: Path) -> None:
    """A model that the package has no price for is listed here, so that a report without a cost is expected."""
    entries = json.loads((corpus / "MANIFEST.json").read_text(encoding="utf-8"))
    models = {model for entry in entries for model in entry["figures"]["models"]}
    catalog = packaged_catalog()

    unpriced = {model for model in models if catalog.cost_dollars(model, Usage(1_000), None) is None}
    assert unpriced <= {"gpt-5.3-codex-spark"}


def test_one_hour_writes_cost_more() -> None:
    """Of 1,000,000 tokens written to the cache, those kept for an hour cost twice the input rate, others 1.25."""
    catalog = packaged_catalog()
    five_minutes = Usage(cache_write_tokens=1_000_000)
    partly_an_hour = Usage(cache_write_tokens=1_000_000, hour_write_tokens=400_000)

    assert catalog.cost_dollars("claude-opus-4-5", five_minutes, None) == pytest.approx(6.25)
    assert catalog.cost_dollars("claude-opus-4-5", partly_an_hour, None) == pytest.approx(0.6 * 6.25 + 0.4 * 10)


def test_a_live_reply_states_its_one_hour_writes() -> None:
    """Anthropic's usage splits the cache writes by how long they are kept."""
    usage = read_usage(
        {
            "input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 0,
            "cache_creation_input_tokens": 1_000,
            "cache_creation": {"ephemeral_5m_input_tokens": 400, "ephemeral_1h_input_tokens": 600},
        }
    )  # fmt: skip

    assert usage is not None
    assert (usage.cache_write_tokens, usage.hour_write_tokens) == (1_000, 600)
