"""The report of one turn: its window at the measured scale, its events, and hostile content as text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.report.test_report import HOSTILE, eventful

from windowpane.cli import main
from windowpane.cli.report import turn_document
from windowpane.core.events import Event, Usage
from windowpane.core.limits import WindowLimits
from windowpane.core.tracking import SessionInfo, SessionTracker
from windowpane.report import TurnReport, gather, gather_turn, turn_to_html, turn_to_text
from windowpane.report.block_sizes import scaled_to
from windowpane.store.embedded import SqliteStore


@pytest.fixture(scope="module", params=["reviewer", HOSTILE])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteStore]:
    with closing(SqliteStore(tmp_path_factory.mktemp("turns") / "store.db")) as opened:
        opened.append(eventful(request.param))
        yield opened


@pytest.fixture
def report(store: SqliteStore) -> TurnReport:
    session = store.session("eventful")
    assert session is not None
    gathered = gather_turn(store, session, 3)
    assert gathered is not None
    return gathered


def test_the_blocks_sum_to_what_the_turn_measured(report: TurnReport) -> None:
    assert report.blocks
    assert sum(one.tokens for one in report.blocks) == sum(report.turn.components.values())


def test_a_report_reads_two_turns_of_a_session_of_any_length(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, turns, read = store.session("eventful"), store.turns, []
    assert session is not None
    monkeypatch.setattr(store, "turns", lambda name, **bounds: read.append(bounds) or turns(name, **bounds))

    gather_turn(store, session, 3)

    assert read == [{"first": 2, "last": 3}]


def test_one_report_has_one_size_of_a_tool_definition(tmp_path: Path) -> None:
    """The counted size, which calibration corrects, is in none of its parts."""
    emitted: list[Event] = []
    tracker = SessionTracker(
        SessionInfo("s", "reviewer", "gpt-4o", "live", "s/1"), emit=emitted.extend, digest=str,
        limits=WindowLimits.of(100_000, "given"), clock=lambda: 1_767_261_600.0,
    )  # fmt: skip
    tracker.start()
    tracker.start_call(None)
    for name, tokens in (("read", 1_000), ("write", 501)):
        tracker.add("tool_definition", name, tokens, count_source="estimate", tool_name=name)
    tracker.add("user_message", "Go.", 100, count_source="estimate")
    tracker.measure("before", None)
    tracker.add("tool_call", "{}", 9, count_source="estimate", tool_name="read")
    tracker.end_turn(Usage(1_200, 9), at=None)
    tracker.end("done", None)
    with closing(SqliteStore(tmp_path / "store.db")) as opened:
        opened.append(emitted)
        (session,) = opened.sessions()
        gathered = gather_turn(opened, session, 1)
        report = gather(opened, session)
    assert gathered is not None
    (size,) = [one.tokens for one in gathered.blocks if one.block.tool_name == "write"]

    assert size != 501
    assert f"Tool definition of write added (≈{size} tokens)." in [one.text for one in gathered.events]
    assert f"write: {size} tokens" in [one.text for finding in report.findings for one in finding.evidence]


def test_a_turn_that_is_not_recorded_has_no_report(store: SqliteStore) -> None:
    session = store.session("eventful")
    assert session is not None
    assert gather_turn(store, session, 4_000) is None


def test_every_form_has_the_size_and_the_events(report: TurnReport) -> None:
    text, page, document = (
        turn_to_text(report),
        turn_to_html(report),
        turn_document(report).model_dump_json(),
    )
    assert report.headline.startswith("Turn 3: ")
    for form in (text, page, document):
        assert report.headline in form
        assert "Turn started." in form
    assert max(map(len, text.splitlines())) <= 80
    assert turn_to_text(report, unicode=False).isascii()


def test_the_page_has_no_characters_that_act(report: TurnReport) -> None:
    page = turn_to_html(report)
    assert "<script" not in page
    assert "http" not in page.replace("http-equiv", "")


def test_scaled_sizes_keep_their_sum() -> None:
    assert scaled_to([1, 1, 1], 100) == [33, 34, 33]
    assert scaled_to([0, 0], 7) == [0, 0]
    assert scaled_to([], 7) == []


def test_the_command_writes_a_turn_and_names_the_last_one(store: SqliteStore, tmp_path: Path) -> None:
    page = tmp_path / "turn.html"
    base = ["report", "eventful", "--store", str(store.path)]
    assert CliRunner().invoke(main, [*base, "--turn", "3", "--html", str(page)]).exit_code == 0
    assert "<h1>Turn 3: " in page.read_text(encoding="utf-8")
    failed = CliRunner().invoke(main, [*base, "--turn", "4000"])
    assert failed.exit_code == 1
    assert "turn 4000 of session eventful is not recorded; its last turn is " in failed.output
