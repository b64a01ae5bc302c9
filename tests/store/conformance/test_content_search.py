"""Search for text of a session: matches, the blocks that held them, and an index in step with the store."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.store.conformance.conftest import Stores
from tests.store.conformance.direct_access import fetch

from windowpane.core.events import Event
from windowpane.store.search import content_index
from windowpane.store.search.content import ContentFilter, ContentHits, snippet_of, terms_of
from windowpane.store.store import Store

Session = Callable[..., list[Event]]


def without_name(text: str) -> str:
    """A redactor that hides one name."""
    return text.replace("certainly 3", "[redacted:name]")


@pytest.fixture
def store(stores: Stores) -> Store:
    """An empty store that captures."""
    return stores.open(capture=True, redact=without_name)


def index_all(store: Store) -> None:
    while store.index_text():
        pass


def indexed_with(store: Store, trigram: str) -> int:
    with store._engine.lend() as database:
        return len(list(database.dialect.content_index.candidates(database, [trigram]) or ()))


def texts(hits: ContentHits) -> list[str]:
    return [hit.snippet.line for hit in hits.hits]


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize(
    "query", ["certainly 5", "CERTAINLY 5", "ainly 5", '"tainly 5"', "5 certain", "ly5 OR x", "5"]
)
def test_a_text_is_found_by_any_part(store: Store, make_session: Session, query: str, *, indexed: bool) -> None:
    store.append(make_session())
    if indexed:
        index_all(store)

    snippets = texts(store.find_content(ContentFilter(query)))

    assert ("certainly 5" in snippets) == (query != "ly5 OR x")


@pytest.mark.parametrize("indexed", [False, True])
def test_a_phrase_comes_before_its_terms_apart(store: Store, make_session: Session, *, indexed: bool) -> None:
    store.append(make_session(turns=13))
    if indexed:
        index_all(store)

    lines = texts(store.find_content(ContentFilter("file 2")))

    assert lines[0].startswith("file 2file")
    assert any("file 12" in line for line in lines[1:])
    assert len(lines) == len(set(lines))


@pytest.mark.parametrize("indexed", [False, True])
def test_the_latest_text_comes_first_whatever_was_stored_first(
    store: Store, make_session: Session, monkeypatch: pytest.MonkeyPatch, *, indexed: bool
) -> None:
    """An import stores sessions in the order of their files."""
    store.append(make_session("new", turns=9, start=2e9))
    store.append(make_session("old", turns=6, start=1e9))
    if indexed:
        index_all(store)

    result = store.find_content(ContentFilter("certainly"))
    first = store.find_content(ContentFilter("certainly", limit=2))

    moments = [[one.at or 0.0 for one in hit.occurrences] for hit in result.hits]
    assert len(moments) > 2
    assert moments == [sorted(one, reverse=True) for one in sorted(moments, key=max, reverse=True)]
    assert first.hits == result.hits[:2]
    assert (result.is_whole, first.is_whole) == (True, False)
    monkeypatch.setattr("windowpane.store.search.content.SORTED_TEXTS", 2)
    assert not store.find_content(ContentFilter("certainly", limit=2)).is_whole


@pytest.mark.parametrize("indexed", [False, True])
def test_a_hit_names_the_block_that_held_the_text(store: Store, make_session: Session, *, indexed: bool) -> None:
    store.append(make_session("first"))
    store.append(make_session("second"))
    if indexed:
        index_all(store)

    (hit,) = store.find_content(ContentFilter('"file 2file"')).hits
    (in_first,) = store.find_content(ContentFilter('"file 2file"', session_id="first")).hits

    assert [one.session_id for one in hit.occurrences] == ["second", "first"]
    assert [one.session_id for one in in_first.occurrences] == ["first"]
    block = hit.occurrences[0]
    assert (block.content_type, block.tool_name, block.turn) == ("tool_result", "read", 4)
    assert store.content(hit.digest) == "file 2" * 9


def test_only_redacted_text_is_indexed(store: Store, make_session: Session) -> None:
    store.append(make_session())
    index_all(store)

    assert not store.find_content(ContentFilter('"certainly 3"')).hits
    assert texts(store.find_content(ContentFilter("redacted"))) == ["[redacted:name]"]


def test_deleted_texts_are_no_longer_found(store: Store, make_session: Session) -> None:
    store.append(make_session())
    index_all(store)
    assert indexed_with(store, "y 5") == 1
    store.append(make_session("later", 9))

    while store.prune(max_bytes=1):
        pass

    result = store.find_content(ContentFilter("certainly"))
    assert (result.hits, result.texts, result.waiting) == ((), 0, 0)
    assert indexed_with(store, "y 5") == 0


@pytest.mark.parametrize("indexed", [False, True])
def test_retention_deletes_the_texts_that_no_other_session_has(
    store: Store, make_session: Session, *, indexed: bool
) -> None:
    store.append(make_session("old", 9, start=1_000_000.0))
    store.append(make_session("new", 8))
    if indexed:
        index_all(store)

    store.prune(before=2_000_000.0)

    assert not store.find_content(ContentFilter('"certainly 8"')).hits
    (hit,) = store.find_content(ContentFilter('"certainly 7"')).hits
    assert [one.session_id for one in hit.occurrences] == ["new"]
    stored = set(fetch(store, "SELECT digest FROM contents"))
    assert set(fetch(store, "SELECT digest FROM content_numbers")) <= stored


def test_a_rebuilt_store_is_indexed_again(store: Store, make_session: Session) -> None:
    store.append(make_session())
    index_all(store)
    before = store.find_content(ContentFilter("certainly"))

    store.rebuild_projections()
    assert store.find_content(ContentFilter("certainly")).waiting == before.texts
    index_all(store)

    after = store.find_content(ContentFilter("certainly"))
    assert after.waiting == 0
    assert set(texts(after)) == set(texts(before))


def test_a_search_reads_a_bounded_amount(
    store: Store, make_session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windowpane.store.search.content.READ_CHARACTERS", 1_000)
    store.append(make_session())
    index_all(store)

    result = store.find_content(ContentFilter("ce"))

    assert not result.is_whole
    assert len(result.hits) < 5


def test_an_unchanged_store_is_not_written_to(store: Store, make_session: Session) -> None:
    """Indexing nothing does not change the version, so that no page is drawn again."""
    store.append(make_session())
    index_all(store)
    version = store.version()

    assert store.index_text() == 0
    assert store.version() == version


@pytest.mark.parametrize("text", ["half \ud800 pair needle", "nul \0 needle", "long " * 300_000 + "needle"])
def test_unusual_texts_are_indexed_and_removed(store: Store, make_session: Session, text: str) -> None:
    events = make_session()
    added = next(event for event in events if event.type == "block.added")
    store.append([added._replace(data=type(added.data)(replace_text(added, text)))])
    index_all(store)

    result = store.find_content(ContentFilter("needle"))

    assert len(result.hits) == (len(text) < content_index.INDEXED_CHARACTERS)
    assert store.prune(max_bytes=1) == 1
    assert not store.find_content(ContentFilter("half")).hits


def replace_text(event: Event, text: str) -> object:
    from dataclasses import replace

    return replace(event.data.block, text=text)  # type: ignore[union-attr]


def test_quotation_marks_make_one_term() -> None:
    assert terms_of('Read "two  words" read x"y') == ["read", "two  words", 'x"y']


def test_a_snippet_shows_the_match_with_text_around_it() -> None:
    snippet = snippet_of("a" * 100 + " Needle " + "b" * 300, ["needle"])

    assert snippet.match == "Needle"
    assert snippet.line.startswith("…aaa")
    assert snippet.line.endswith("b…")
