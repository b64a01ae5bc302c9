"""`windowpane search`: captured content with a word in it, and the blocks that held it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from windowpane.cli.documents import Document, document_of
from windowpane.cli.options import (
    json_option,
    of_project,
    open_existing,
    pick_session,
    project_filter_option,
    report_errors,
    store_option,
)
from windowpane.cli.output import print_json
from windowpane.core.characters import plain
from windowpane.core.store_names import StoreName
from windowpane.report.block_life import LifeStep, life_steps
from windowpane.text import formats
from windowpane.text.labels import CONTENT_LABELS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windowpane.store.search.content import ContentHits, Occurrence
    from windowpane.store.store import Store


@click.command("search")
@click.argument("terms", metavar="WORDS...", nargs=-1, required=True)
@click.option("--session", help="Search one session only, by its id or the start of it.")
@click.option("--limit", type=click.IntRange(1, 1_000), default=20, show_default=True, help="Matches to print.")
@click.option("--life", is_flag=True, help="Print how each block was added, used, removed and replaced.")
@project_filter_option
@json_option
@store_option
@report_errors
def command(
    terms: tuple[str, ...],
    session: str | None,
    limit: int,
    *,
    life: bool,
    project: str | None,
    as_json: bool,
    store_path: StoreName | None,
) -> None:
    """Find captured content that contains all WORDS or parts of words, the latest first.

    Only content of sessions recorded with content capture can be found. Put quotation marks around words
    that belong together.

    \b
    Example:
      windowpane search '"connection refused"' --life
    """
    from windowpane.store.search.content import ContentFilter

    with open_existing(store_path) as store:
        chosen = None if session is None else pick_session(of_project(store, project), session).session_id
        _index_waiting(store)
        result = of_project(store, project).find_content(ContentFilter(" ".join(terms), chosen, limit))
        if as_json:
            print_json(_document(store, result) if life else result)
            return
        for line in _lines(store, result, life=life):
            click.echo(plain(line))


def _index_waiting(store: Store) -> None:
    """Index what `windowpane serve` would have indexed meanwhile, so that nothing is missed."""
    if not store.index_text():
        return
    click.echo("indexing for search …", err=True)
    while store.index_text():
        pass


def _document(store: Store, result: ContentHits) -> Document:
    lives = {hit.digest: _life(store, hit.occurrences[0]) for hit in result.hits}
    return document_of(type(result), lives=dict[str, list[LifeStep]]).of(result, lives=lives)


def _lines(store: Store, result: ContentHits, *, life: bool) -> Iterator[str]:
    if result.texts == 0:
        yield "No content was captured, so there is nothing to search. Record with content capture:"
        yield "  windowpane import --capture"
        return
    for hit in result.hits:
        block = hit.occurrences[0]
        what = CONTENT_LABELS[block.content_type] + (f" of {block.tool_name}" if block.tool_name else "")
        others = f", and {formats.count(len(hit.occurrences) - 1, 'other block')}" if hit.occurrences[1:] else ""
        yield f"{block.session_id} turn {block.turn}: {what} ({formats.tokens(block.tokens)} tokens){others}"
        yield f"  {hit.snippet.line}"
        if life:
            yield from (f"  turn {step.turn}: {step.text}" for step in _life(store, block))
    more = "" if result.is_whole else " There may be more: add a word, or raise --limit."
    captured = "the captured ones" if result.texts is None else f"{result.texts:,} captured"
    yield f"{formats.count(len(result.hits), 'passage')} of {captured}.{more}"
    if result.waiting:
        yield f"{formats.count(result.waiting, 'passage')} not indexed: upgrade SQLite to 3.34 or newer."


def _life(store: Store, block: Occurrence) -> list[LifeStep]:
    life = store.block_life(block.session_id, block.block_id)
    return [] if life is None else life_steps(life)
