"""`windowpane advise`: context health over sessions, and the level at which their agent should compact."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

import click
from pydantic import SerializeAsAny

from windowpane.cli.documents import Document, document_of
from windowpane.cli.options import (
    SessionNames,
    json_option,
    open_to_read,
    report_errors,
    session_filters,
    store_option,
)
from windowpane.cli.output import frameless_table, print_json, print_table
from windowpane.core.characters import plain
from windowpane.core.store_names import StoreName
from windowpane.core.vocabulary import MISSTEPS
from windowpane.store.filters import SessionFilter
from windowpane.text.formats import rate

if TYPE_CHECKING:
    from windowpane.evaluation.replay.compaction_threshold import ThresholdAdvice
    from windowpane.report.context_health import ContextHealth, HealthRow


@click.command("advise")
@click.option("--agent", help="Only sessions of this agent, by its exact name.")
@click.option("--days", type=click.IntRange(1), help="Only sessions of the last days.")
@session_filters
@json_option
@store_option
@report_errors
def command(
    agent: str | None,
    days: int | None,
    *,
    as_json: bool,
    store_path: StoreName | None,
    **names: Unpack[SessionNames],
) -> None:
    """Show whether agents get worse as their window fills, and at which size it should be compacted.

    Reads the latest 200 sessions that match. Missteps are failed tool calls, repeated reads and calls, and
    corrections by the user; each session is compared with itself. The sessions are then replayed at lower levels
    of compaction: dollars, compactions and rules that stay visible, with the lines for the agent's settings.

    \b
    Example:
      windowpane advise --repository shop --days 30
    """
    from windowpane.evaluation.replay.compaction_threshold import SessionEvidence, advice_by_agent  # slow to load
    from windowpane.report.context_health import health_of, latest_sessions, read_session_health

    query = SessionFilter(agent=agent, at_from=_since(days), **names)
    sessions, evidence = [], []
    with open_to_read(store_path) as store:
        for row in latest_sessions(store, query):
            turns = store.turns(row.session_id)
            sessions.append(read_session_health(store, row, turns))
            evidence.append(SessionEvidence.read(store, row, turns))
    health, advice = health_of(sessions), advice_by_agent(evidence)
    if as_json:
        print_json(_document(health, advice))
        return
    _print_health(health)
    for one in advice:
        _print_advice(one)
    if not advice:
        click.echo("\nNo level can be compared: fewer than 3 recorded compactions with a price.")


def _since(days: int | None) -> float | None:
    import time

    return None if days is None else time.time() - days * 86_400


# -- context health -------------------------------------------------------------------------------------------


def _print_health(health: ContextHealth) -> None:
    from windowpane.report.context_health import NOUNS

    click.echo(health.headline)
    columns = {"calls": 7, **{noun: len(noun) for noun in NOUNS.values()}, "sessions": 8}
    for title, rows in (("window", health.by_tenth), ("compactions", health.by_compactions)):
        if rows:
            table = frameless_table({title: (11, None)}, columns)
            for row in rows:
                table.add_row(
                    row.label, f"{row.calls:,}", *(_rate(row, one) for one in MISSTEPS), f"{row.sessions:,}"
                )
            click.echo()
            print_table(table)
    if health.sessions:
        click.echo(
            "\nPer 100 calls of all sessions; in brackets the quartiles of the sessions with 10 calls there."
        )


def _rate(row: HealthRow, misstep: Any) -> str:
    quartiles = row.rates[misstep]
    spread = "" if quartiles is None else f" ({rate(quartiles[0])}–{rate(quartiles[2])})"
    return f"{rate(row.pooled[misstep])}{spread}"


# -- level of compaction --------------------------------------------------------------------------------------


def _print_advice(advice: ThresholdAdvice) -> None:
    from windowpane.evaluation.replay.advice_text import (
        LEVEL_COLUMNS,
        advice_sentences,
        level_cells,
        setting_lines,
    )

    click.echo(f"\n{plain(advice.agent)}: {advice_sentences(advice)}")
    table = frameless_table({LEVEL_COLUMNS[0]: (10, None)}, dict.fromkeys(LEVEL_COLUMNS[1:], 6))
    for one in (advice.present, *advice.lower):
        table.add_row(*level_cells(advice, one))
    print_table(table)
    settings = setting_lines(advice)
    if settings is not None:
        click.echo(f"\n{settings.file}:\n{settings.lines}")
        if settings.note:
            click.echo(settings.note)


# -- JSON -----------------------------------------------------------------------------------------------------


class HealthDocument(Document):
    """The context health of the sessions."""

    sessions: int
    calls: int
    answer: str
    changes: Sequence[SerializeAsAny[Document]]
    by_tenth: Sequence[SerializeAsAny[Document]]
    by_compactions: Sequence[SerializeAsAny[Document]]


class AdviceDocument(Document):
    """Context health, and the advice for each agent."""

    health: HealthDocument
    thresholds: Sequence[SerializeAsAny[Document]]


def _document(health: ContextHealth, advice: Sequence[ThresholdAdvice]) -> AdviceDocument:
    from windowpane.evaluation.replay.advice_text import advice_sentences, setting_lines
    from windowpane.evaluation.replay.compaction_threshold import ThresholdAdvice
    from windowpane.report.context_health import Change, HealthRow
    from windowpane.sources.installed_agents.settings import SettingLines

    change, row = document_of(Change, is_evident=bool), document_of(HealthRow)
    agent = document_of(ThresholdAdvice, answer=str, best=int | None, settings=SettingLines | None)
    measured = HealthDocument.of(
        health,
        sessions=len(health.sessions),
        answer=health.headline,
        changes=[change.of(one) for one in health.changes],
        by_tenth=[row.of(one) for one in health.by_tenth],
        by_compactions=[row.of(one) for one in health.by_compactions],
    )
    thresholds = [
        agent.of(
            one,
            answer=advice_sentences(one),
            best=None if one.best is None else one.best.level_tokens,
            settings=setting_lines(one),
        )
        for one in advice
    ]
    return AdviceDocument(health=measured, thresholds=thresholds)
