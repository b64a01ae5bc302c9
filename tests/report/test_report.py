"""The report of one session: its content, and that hostile content is escaped."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from windowpane.alerts.engine import AlertEngine
from windowpane.cli.report import session_document
from windowpane.core.characters import plain
from windowpane.core.events import (
    BlocksEvicted,
    ContentCompressed,
    Event,
    EvictedBlock,
    FidelityEvaluated,
    OverflowDetected,
    Usage,
)
from windowpane.core.limits import WindowLimits
from windowpane.core.tracking import SessionInfo, SessionTracker
from windowpane.report import SessionReport, gather, to_html, to_text
from windowpane.report.headline import FactTotals
from windowpane.report.session_report import ReportedCacheBreak
from windowpane.store.embedded import SqliteStore
from windowpane.store.filters import EventFilter
from windowpane.text import formats

HOSTILE = '<script>alert(1)</script> & "quotes" \u202e\x1b[31m'


def eventful(agent: str) -> list[Event]:
    """A session that fills its window, evicts, compresses with two lost facts, and fetches one result again."""
    events: list[Event] = []
    tracker = SessionTracker(
        SessionInfo("eventful", agent, "gpt-4o", "live", "stream"),
        emit=events.extend,
        digest=lambda text: f"{hash(text) & (1 << 64) - 1:032x}",
        limits=WindowLimits.of(10_000, "given"),
    )
    tracker.start(1_000.0)
    for number in range(8):
        tracker.add(
            "tool_call",
            f'{{"path": "part-{number}.py"}}',
            20,
            tool_call_id=f"c{number}",
            tool_name="read",
            at=1_000.0 + number,
        )
        tracker.end_turn(Usage(500 + 1_200 * number, 20), at=1_000.0 + number, cost_dollars=0.01)
        tracker.add("tool_result", f"content {number}", 1_180, tool_call_id=f"c{number}", at=1_000.5 + number)
    results = [slot.block for slot in tracker.window.slots() if slot.block.content_type == "tool_result"]
    gone = results[0]
    tracker.evict(
        BlocksEvicted(
            "hybrid",
            (EvictedBlock(gone.id, "tool_result", gone.tokens, "drop", HOSTILE),),
            gone.tokens,
            gone.tokens,
        ),
        at=1_009.0,
    )
    summary = tracker.make_replacement("summary", "in short", 200, replaces=results[1].id)
    compressed = tracker.compress(
        ContentCompressed(
            "compaction", "pressure", "accepted", 2_360, 200, removed=(results[1].id, results[2].id),
            results=(summary.id,), method="extractive",
        ),
        (summary,),
        at=1_010.0,
    )  # fmt: skip
    tracker.record(
        FidelityEvaluated(
            "probe",
            0.6,
            1.0,
            facts_total=5,
            facts_kept=3,
            facts_lost=1,
            facts_contradicted=1,
            of=compressed.event_id,
        ),
        1_010.0,
    )
    tracker.add("tool_call", '{"path": "part-0.py"}', 20, tool_call_id="again", tool_name="read", at=1_011.0)
    tracker.end_turn(Usage(7_000, 20), at=1_011.0)
    tracker.end("completed", 1_012.0)
    return list(AlertEngine().interleave(events))


def dropping() -> list[Event]:
    """A session of which a call has half the tokens of the one before, and nothing recorded explains it."""
    events: list[Event] = []
    tracker = SessionTracker(
        SessionInfo("dropping", "reviewer", "gpt-4o", "live", "stream"), emit=events.extend, digest=str
    )
    tracker.start(1_000.0)
    for number, total in enumerate((113_063, 59_765)):
        tracker.add("user_message", "next", 1_000, at=1_000.0 + number)
        tracker.end_turn(Usage(total, 20), at=1_000.0 + number)
    tracker.end("completed", 1_002.0)
    return events


@pytest.fixture(scope="module", params=["reviewer", HOSTILE])
def report(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SessionReport]:
    with closing(SqliteStore(tmp_path_factory.mktemp("report") / "store.db")) as store:
        store.append(eventful(request.param))
        session = store.session("eventful")
        assert session is not None
        yield gather(store, session)


class TestContent:
    def test_it_counts_the_events(self, report: SessionReport) -> None:
        (compression,) = report.compressions

        assert [eviction.tokens_freed for eviction in report.evictions] == [1_180]
        assert compression.sizes[2] == "content"
        assert (compression.window_before, compression.window_after) == (8_900, 7_000)
        assert compression.ratio == pytest.approx(11.8)
        assert "ratio 11.80  window 8.9k to 7k" in to_text(report)
        assert compression.facts is not None
        assert (compression.facts.lost, compression.facts.damaged) == (1, 2)
        assert [regret.tokens for regret in report.regrets] == [1_180]
        assert report.alerts

    def test_a_regret_is_named_in_every_form(self, report: SessionReport) -> None:
        (regret,) = report.regrets

        assert regret.what == "tool result of read: part-0.py"
        for text in (to_text(report), to_html(report), str(session_document(report))):
            assert "part-0.py" in text.split("egrets")[-1]

    def test_a_removal_without_a_cause_is_no_evicted_block(self, tmp_path: Path) -> None:
        with closing(SqliteStore(tmp_path / "store.db")) as store:
            store.append(dropping())
            report = gather(store, session := store.sessions()[0])

        assert (session.evicted_blocks, session.evicted_tokens) == (0, 53_298)
        assert report.headline.endswith("; 53,298 tokens removed.")
        text = " ".join(to_text(report).split())
        assert "Removals 0 items, 53,298 tokens turn 2 unknown – 53.3k freed cause unknown" in text
        assert "53,298 tokens removed: cause unknown" in to_html(report)
        assert "<td>unknown</td><td>–</td><td>53,298</td><td>cause unknown</td>" in to_html(report)

    def test_the_headline_names_the_worst(self, report: SessionReport) -> None:
        assert "contradicted 1 and lost 1 of 5 facts" in report.headline
        assert "3 of 5 facts kept, 1 lost, 1 contradicted" in " ".join(to_text(report).split())
        assert "needed again" in report.headline

    def test_the_text_fits_80_columns_and_has_every_section(self, report: SessionReport) -> None:
        text = to_text(report)

        for heading in ("Turns by zone", "Removals", "Compactions", "Needed again", "Alerts", "Cost"):
            assert heading in text
        assert max(map(len, text.splitlines())) <= 80

    def test_a_long_row_is_wrapped_without_cutting_a_number(self, report: SessionReport) -> None:
        (one,) = report.compressions
        wide = replace(
            one, strategy="tool_result_summarization", outcome="rejected", facts=FactTotals(120, 40, 0, 80, 0)
        )

        text = to_text(replace(report, compressions=[wide]))

        assert max(map(len, text.splitlines())) <= 80
        assert "80 lost" in " ".join(text.split())

    def test_an_estimate_is_marked(self, report: SessionReport) -> None:
        guessed = replace(report, session=replace(report.session, count_source="estimate"))
        share = formats.percent(report.session.utilization)

        assert f"] {share} " in to_text(report)
        assert f"] ≈{share} " in to_text(guessed)
        assert f"] ~{share} " in to_text(guessed, unicode=False)
        assert f"<b>≈{share}</b>" in to_html(guessed)

    def test_the_page_has_no_characters_that_act(self, report: SessionReport) -> None:
        page = to_html(replace(report, session=replace(report.session, session_id=HOSTILE, agent=HOSTILE)))

        assert HOSTILE.split("<", maxsplit=1)[0] in page
        assert [line for line in page.split("\n") if plain(line) != line] == []

    def test_a_clock_outside_the_calendar_ends_no_report(self, report: SessionReport) -> None:
        """Times of the year 33658 are unknown; everything else is reported."""
        late = replace(report, session=replace(report.session, started_at=1e12, last_at=1e12 + 60))

        assert "– to –" in to_text(late)
        assert to_html(late)
        assert session_document(late).model_dump()["session"]["started_at"] == 1e12

    def test_a_cache_break_names_its_cost(self, report: SessionReport) -> None:
        broken = [ReportedCacheBreak(7, "changed", 900, 1_000, 0.5, "b123")]

        page = to_html(replace(report, cache_breaks=broken))

        assert "<td>$0.50</td></tr>" in page
        assert "b123" not in page

    def test_the_page_has_contradictions_first_with_both_sides(self, report: SessionReport) -> None:
        done = replace(
            report.compressions[0], worst=("lost goal: ship it", "rule: “push” where it was “never push”")
        )

        page = to_html(replace(report, compressions=[done]))

        listed = page[page.index("<h2>Lost or contradicted by compactions</h2>") :]
        assert listed.index("“push” where it was “never push”") < listed.index("lost goal: ship it")

    def test_a_long_table_of_the_page_is_folded(self, report: SessionReport) -> None:
        many = [replace(report.evictions[0], turn=1_000 + n) for n in range(300)]

        seen, _, folded = to_html(replace(report, evictions=many)).partition("<summary>188 more</summary>")

        assert [n for n in range(300) if f"<td>{1_000 + n}</td>" in seen] == list(range(12))
        assert [n for n in range(300) if f"<td>{1_000 + n}</td>" in folded] == list(range(12, 200))
        assert "and 100 more" in folded

    def test_ascii_terminals_get_ascii(self, report: SessionReport) -> None:
        assert to_text(report, unicode=False).isascii()

    def test_json_is_plain_and_complete(self, report: SessionReport) -> None:
        document = json.loads(session_document(report).model_dump_json())

        assert document["answer"] == report.headline
        assert len(document["turns"]) == len(report.turns)


class TestDamagedEvents:
    @pytest.mark.parametrize("body", [b"\xff\x00", b'{"type": "\xff"}', b'{"schema": 1,'])
    def test_intact_events_are_reported_and_the_damaged_one_is_named(self, tmp_path: Path, body: bytes) -> None:
        with closing(SqliteStore(tmp_path / "store.db")) as store:
            store.append(eventful("reviewer"))
            (evicted,) = store.events(EventFilter(types=("blocks.evicted",)))
            with closing(sqlite3.connect(store.path)) as connection:
                connection.execute("UPDATE events SET body = ? WHERE seq = ?", (body, evicted.seq))
                connection.commit()
            session = store.session("eventful")
            assert session is not None
            report = gather(store, session)

        (damaged,) = report.damaged
        assert (damaged.seq, damaged.turn) == (evicted.seq, evicted.event.context.turn)
        assert not report.evictions
        assert len(report.compressions) == len(report.regrets) == 1
        text, page, document = to_text(report), to_html(report), session_document(report).model_dump()
        assert f"seq {evicted.seq}, blocks.evicted: not a JSON object" in text
        assert "Compactions" in text
        assert f"<td>{evicted.seq}</td><td>blocks.evicted</td><td class=long>not a JSON object" in page
        assert document["damaged"][0]["seq"] == evicted.seq


class TestHostileContent:
    def test_nothing_from_the_agent_becomes_markup(self, report: SessionReport) -> None:
        page = to_html(report)
        tags = set(re.findall(r"<([a-zA-Z]+)", page))

        assert "<script" not in page
        assert tags <= {
            "html", "head", "meta", "title", "style", "body", "main", "h", "p", "span", "b", "section", "div",
            "svg", "g", "path", "circle", "text", "line", "polygon", "polyline", "i", "table", "thead", "tbody",
            "tr", "th", "td", "footer", "details", "summary",
        }  # fmt: skip

    def test_the_page_fetches_nothing(self, report: SessionReport) -> None:
        page = to_html(report)

        assert "default-src 'none'" in page
        assert not re.search(r"(?:src|href|url)\s*[=(]", page.replace("default-src", "").replace("-src", ""))

    def test_the_terminal_gets_no_control_characters(self, report: SessionReport) -> None:
        assert "\x1b" not in to_text(report)
        assert "\u202e" not in to_text(report)


def test_the_report_names_the_calls_that_its_cost_does_not_contain(report: SessionReport) -> None:
    turns = [
        *report.turns[:-1],
        replace(report.turns[-1], model="new-model"),
        replace(report.turns[0], input_tokens=None),
    ]
    partial = replace(report, turns=turns)
    sentences = [
        "1 call of new-model not included: no price is known",
        "1 turn not included: the usage was not recorded",
    ]

    assert session_document(partial).model_dump(mode="json")["missing_costs"] == sentences
    assert all(sentence in to_text(partial) and sentence in to_html(partial) for sentence in sentences)


def test_the_head_of_a_report_reads_as_a_sentence(report: SessionReport) -> None:
    """One turn is not "1 turns", missing times are not dashes, and the source of the limit is in words."""
    row = replace(
        report.session,
        turns=1,
        exchanges=1,
        windows=2,
        started_at=None,
        last_at=None,
        limit_source="observed_floor",
    )
    text = to_text(replace(report, session=row))

    assert "\n1 turn, 1 exchange, 2 windows   no times recorded\n" in text
    assert "tokens (at least, as observed)" in text


def test_a_zone_of_a_compaction_before_the_first_recorded_call_is_beside_the_turns(report: SessionReport) -> None:
    row = replace(report.session, worst_zone="overflow")
    text = to_text(replace(report, session=row, zone_turns={"green": 8}, worst_turn=None))

    assert re.search(r"Turns by zone .*green 8.*overflow before the first recorded call", text)


def test_a_turn_that_overflowed_before_its_call_is_the_worst(tmp_path: Path) -> None:
    """The window was reduced in time, so that no call was in the zone that the headline names."""
    events: list[Event] = []
    tracker = SessionTracker(
        SessionInfo("reduced", "a", "gpt-4o", "live", "stream"),
        emit=events.extend,
        digest=lambda text: f"{hash(text) & (1 << 64) - 1:032x}",
        limits=WindowLimits.of(10_000, "given"),
    )
    tracker.start(1_000.0)
    tracker.add("user_message", "question", 500, at=1_001.0)
    tracker.end_turn(None, at=1_002.0)
    long = tracker.add("tool_result", "long", 12_000, at=1_003.0)
    tracker.measure("before", at=1_004.0)
    tracker.record(OverflowDetected("proactive", "reduced", 12_520, 10_000), 1_004.0)
    removed = EvictedBlock(long.id, "tool_result", long.tokens, "drop", "does not fit")
    tracker.evict(BlocksEvicted("hybrid", (removed,), long.tokens, long.tokens), at=1_005.0)
    tracker.end_turn(None, at=1_006.0)
    with closing(SqliteStore(tmp_path / "store.db")) as store:
        store.append(events)
        session = store.session("reduced")
        assert session is not None
        report = gather(store, session)

    assert report.worst_turn == 2
    assert "Overflow at turn 2" in to_text(report)
