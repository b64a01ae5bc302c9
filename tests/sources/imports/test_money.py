"""Costs of recorded sessions against a recomputation from the raw transcripts and the published rates."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.sampling import EVERYTHING

from windowpane.cli import main
from windowpane.core.events import Usage
from windowpane.models.catalog import packaged_catalog
from windowpane.models.wire.usage import read_usage
from windowpane.store.embedded import SqliteStore
from windowpane.store.filters import SessionFilter
from windowpane.store.records import SessionRow, TurnRow

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
SAMPLED = {"claude_code": 6, "codex": 2}
"""Recordings to check of each format, the smallest."""


@pytest.fixture
def raw_calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A function that reads the calls of a recording with nothing but JSON, priced at the published rates."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield importlib.import_module("truth.money").raw_calls
    for name in [name for name in sys.modules if name.partition(".")[0] == "truth"]:
        sys.modules.pop(name)


@pytest.fixture(scope="module")
def corpus(sessions_dir: Path) -> Path:
    """The folder of long recorded sessions beside the recorded sessions."""
    folder = sessions_dir.parent / "corpus"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there: no long recorded sessions to read")
    return folder


def sampled(corpus: Path, format_name: str, raw_calls: Any) -> list[Path]:
    """Return the recordings to check: all, or a few of the smallest, half of them with one-hour writes."""
    files = sorted((corpus / format_name).glob("*.jsonl"), key=lambda file: file.stat().st_size)
    if EVERYTHING:
        return files
    sample = SAMPLED[format_name]
    hour = [file for file in files if any(call.hour_write for call in raw_calls(file, format_name))][
        : sample // 2
    ]
    return hour + [file for file in files if file not in hour][: sample - len(hour)]


def recorded_dollars(store: SqliteStore, session: SessionRow) -> float:
    """Return the cost of a session without what is estimated of the outputs."""
    catalog = packaged_catalog()

    def dollars(turn: TurnRow, output: int | None) -> float:
        return catalog.cost_dollars(turn.model, Usage(turn.input_tokens or 0, output or 0), turn.at) or 0.0

    estimated = [turn for turn in store.turns(session.session_id) if turn.is_cost_estimated]
    added = sum(
        dollars(turn, turn.output_tokens) - dollars(turn, turn.recorded_output_tokens) for turn in estimated
    )
    return (session.cost_dollars or 0.0) - added


@pytest.mark.parametrize("format_name", SAMPLED)
def test_a_session_costs_what_its_raw_usage_costs(
    corpus: Path, tmp_path: Path, raw_calls: Any, format_name: str
) -> None:
    wrong = {}
    for number, file in enumerate(sampled(corpus, format_name, raw_calls)):
        store_file = tmp_path / f"{number}.db"
        assert CliRunner().invoke(main, ["import", str(file), "--store", str(store_file)]).exit_code == 0
        with closing(SqliteStore(store_file)) as store:
            stored = sum(recorded_dollars(store, row) for row in store.sessions(SessionFilter(limit=1_000)))
        expected = sum(call.dollars or 0.0 for call in raw_calls(file, format_name))
        if not expected or abs(stored - expected) > expected / 1_000:
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
    usage = read_usage(
        {
            "input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 0,
            "cache_creation_input_tokens": 1_000,
            "cache_creation": {"ephemeral_5m_input_tokens": 400, "ephemeral_1h_input_tokens": 600},
        }
    )  # fmt: skip

    assert usage is not None
    assert (usage.cache_write_tokens, usage.hour_write_tokens) == (1_000, 600)
