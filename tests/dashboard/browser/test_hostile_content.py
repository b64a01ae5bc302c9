"""Hostile names and texts on every page: shown, cut, and without effect."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from windowpane.core.events import (
    AlertFired,
    BlockAdded,
    BlocksEvicted,
    ContentCompressed,
    Event,
    FactOutcome,
    FidelityEvaluated,
    NotificationFailed,
    SessionDescribed,
)
from windowpane.core.names import TITLE_CHARACTERS
from windowpane.store.embedded import SqliteStore
from windowpane.store.replays import ReplayRow, ReplayRunRow, StoredReplay

pytest.importorskip("playwright.sync_api")
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

MARKUP: Final = (
    "<script>document.title='owned'</script><img src=http://127.0.0.1:9/x onerror=\"document.title='owned'\">"
    " **bold** :fire: [link](http://127.0.0.1:9/x) http://127.0.0.1:9/auto $x^2$ <b>loud</b>"
    " <a href='javascript:document.title=1'>go</a>"
)
TURNED: Final = (
    "safe \u202eeslaf\u202c \u2066x\u2069 \u200bzero \x1b[31mred\x1b[0m \x07 العربية \U0001f469\u200d\U0001f4bb"
)
TURNING: Final = re.compile(
    b"|".join(
        re.escape(form)
        for character in "\u202a\u202b\u202d\u202e\u2066\u2067\u2068\u200b\u200e\u200f"
        for form in (character.encode(), b"\\u%04x" % ord(character))
    )
)
"""Characters that turn the text around them or are not seen, as they are and as JSON writes them."""
WORD: Final = "w" * 1_000_000
LINE: Final = ("ten megabytes on one line " * 400_000)[:10_000_000]
TEXTS: Final = (MARKUP, TURNED, WORD, LINE)
NAME: Final = f"{MARKUP[:160]} {TURNED} {'n' * 200}"
OTHER: Final = f"other {NAME}"
LONG_NAME: Final = f"{MARKUP} {TURNED} {'long ' * 2_000}"
"""Over ten thousand characters, for names that are not in the address."""


def hostile(event: Event, digest: Callable[[str], str], index: int) -> Event:
    """The same event with hostile words wherever an agent's words can be."""
    data = event.data
    match data:
        case BlockAdded():
            text = TEXTS[index % len(TEXTS)]
            tool = data.block.tool_name and LONG_NAME
            own = replace(data.block, text=text, digest=digest(text), tool_name=tool, target=tool and LONG_NAME)
            data = replace(data, block=own)
        case BlocksEvicted():
            blocks_of = tuple(replace(one, reason=LONG_NAME, tool_name=LONG_NAME) for one in data.blocks)
            data = replace(data, policy=LONG_NAME, blocks=blocks_of)
        case ContentCompressed():
            data = replace(data, method=MARKUP, reason=TURNED)
        case FidelityEvaluated():
            facts = tuple(
                FactOutcome("identifier", outcome, digest(text), text)
                for outcome, text in (("lost", MARKUP), ("kept", TURNED), ("lost", WORD))
            )
            data = replace(data, facts=facts)
        case AlertFired():
            data = replace(data, summary=LONG_NAME)
    return event._replace(data=data, context=replace(event.context, model=LONG_NAME))


@pytest.fixture(scope="module")
def hostile_store(tmp_path_factory: pytest.TempPathFactory, builders: Any) -> Path:
    """Two sessions and a replay in which every word is hostile, their texts captured."""
    from hashlib import blake2b

    def digest(text: str) -> str:
        return blake2b(text.encode(), digest_size=16).hexdigest()

    path = tmp_path_factory.mktemp("hostile") / "windowpane.db"
    store = SqliteStore(path, capture=True, redact=lambda text: text)
    for name in (NAME, OTHER):
        events = builders.rich(start=time.time() - 800, session_id=name, agent=LONG_NAME)
        failure = NotificationFailed("utilization", 12, MARKUP, "firing", 5, MARKUP + TURNED)
        fired = next(event for event in events if isinstance(event.data, AlertFired))
        events.append(fired._replace(n=events[-1].n + 1, data=failure))
        described = SessionDescribed(
            title=LONG_NAME, title_source="agent", folder=LONG_NAME, repository=LONG_NAME, branch=LONG_NAME,
            agent_version=LONG_NAME, label=LONG_NAME,
        )  # fmt: skip
        events.append(fired._replace(n=events[-1].n + 1, data=described))
        if name == OTHER:
            events = [one._replace(context=replace(one.context, parent_session_id=NAME)) for one in events]
        store.append([hostile(event, digest, index) for index, event in enumerate(events)])
    run = ReplayRunRow(
        NAME, MARKUP, "managed", MARKUP, MARKUP, 8_192, {"turns": 2, "tokens_sent": 5, "overflows": 1},
        f"# {MARKUP}\n# {TURNED}\n", (3_000, 9_000),
    )  # fmt: skip
    runs = (run, replace(run, setup=f"other {MARKUP}"))
    store.save_replay(StoredReplay(ReplayRow("r1", NAME, time.time(), 1, 2, (MARKUP, TURNED, WORD)), runs))
    store.give_title(OTHER, f"{MARKUP[:60]} {TURNED}"[:TITLE_CHARACTERS])
    store.close()
    return path


class Messages(list[bytes]):
    """All messages of the dashboard to a browser: also texts that only a tooltip or an open list shows."""

    def listen(self, site: Any) -> None:
        """Keep what this page receives from now on."""
        site.page.on("websocket", lambda socket: socket.on("framereceived", self._keep))

    def _keep(self, frame: bytes | str) -> None:
        self.append(frame if isinstance(frame, bytes) else frame.encode())

    def turning(self) -> list[bytes]:
        """Characters that turn text or are not seen, each with the text before it."""
        return [
            frame[max(0, found.start() - 80) : found.end()] for frame in self for found in TURNING.finditer(frame)
        ]


@pytest.fixture
def here(site: Callable[..., Any], hostile_store: Path) -> Any:
    """The site, with the messages that its page receives."""
    opened = site(hostile_store)
    opened.messages = Messages()
    opened.messages.listen(opened)
    return opened


def assert_harmless(here: Any, what: str) -> None:
    """Nothing ran, nothing was fetched, nothing became markup, nothing turned around or burst the page."""
    page = here.page
    assert here.messages.turning()[:3] == [], what
    main = page.locator("[data-testid=stMain]")
    assert page.title() == "Windowpane", what
    for made in ("script", "img[src*='127.0.0.1:9']", "a[href*='127.0.0.1:9']", "a[href^='javascript']", "b"):
        assert main.locator(made).count() == 0, f"{what}: {made}"
    assert main.locator("strong", has_text=re.compile("^bold$")).count() == 0, what
    text = here.text()
    assert not set(text) & set("\u202e\u2066\x1b\x07"), what
    assert "cannot be read" not in text, what
    assert len(text) < 150_000, f"{what}: {len(text)} characters"
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), what
    assert here.outside == [], what


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("", {}),
        pytest.param("session", {"session": NAME, "turn": "15"}, marks=pytest.mark.matrix),
        pytest.param(
            "session", {"session": NAME, "turn": "20", "events": "noteworthy"}, marks=pytest.mark.matrix
        ),
        pytest.param("session", {"session": f"gone {NAME}"}, marks=pytest.mark.matrix),
        ("compare", {"one": NAME, "other": OTHER}),
        pytest.param("compare", {"one": f"gone {NAME}", "other": OTHER}, marks=pytest.mark.matrix),
        ("replay", {"id": "r1"}),
        ("alerts", {"pick": f"utilization:12:{NAME}"}),
        ("audit", {}),
        ("trends", {"top": "files"}),
        pytest.param("search", {"text": "megabytes", "session": NAME}, marks=pytest.mark.matrix),
        pytest.param(
            "session", {"session": NAME, "turn": "20", "tab": "find", "text": "eslaf"}, marks=pytest.mark.matrix
        ),
        pytest.param(
            "audit",
            {"session": NAME, "types": "blocks.evicted,content.compressed", "text": "bold"},
            marks=pytest.mark.matrix,
        ),
    ],
)
def test_hostile_text_has_no_effect(here: Any, path: str, query: dict[str, str]) -> None:
    page = here.open(path, **query)
    assert_harmless(here, path)
    closed = page.locator("details:not([open]) summary")
    for position in range(closed.count(), 0, -1):
        closed.first.click()
        expect(closed).to_have_count(position - 1)
        here.settle()
    for box in page.locator("[data-testid=stDataFrame] .dvn-scroller").all()[:1]:
        box.click(position={"x": 17, "y": 52})
        here.settle()

    assert_harmless(here, f"{path}, opened")


def test_hostile_titles_have_no_effect_in_a_picker(here: Any) -> None:
    page = here.open("compare")
    page.get_by_role("combobox", name="Session A").click()
    options = page.get_by_role("listbox")
    options.get_by_role("option").first.wait_for()

    assert not set(options.inner_text()) & set("\u202e\u2066\x1b\x07")
    assert options.locator("script, img, a, b, strong").count() == 0
    page.keyboard.press("Escape")
    here.settle()
    assert_harmless(here, "a picker was opened")


def test_hostile_text_has_no_effect_in_any_tab(here: Any) -> None:
    page = here.open("session", session=NAME, turn="20", events="noteworthy")
    page.get_by_role("tab").first.wait_for()

    opened = []
    for section in here.sections():
        assert_harmless(here, section)
        opened.append(section)

    assert "Sub-agents" in opened


@pytest.mark.parametrize("cause", [pytest.param("eviction", marks=pytest.mark.matrix), "compression"])
def test_a_hostile_block_is_read_without_effect(here: Any, hostile_store: Path, cause: str) -> None:
    store = SqliteStore(hostile_store)
    store.add_note(NAME, 20, f"{MARKUP}\n{TURNED}")
    store.give_title(NAME, f"{MARKUP} {TURNED}")
    removed = [row.block_id for row in store.removed_blocks(NAME, 99) if row.removed_by == cause]
    store.close()
    for block in removed[:4]:
        page = here.open("session", session=NAME, turn="20", block=block, tab="notes")
        assert_harmless(here, f"block {block}")
        whole = page.get_by_text(re.compile("^Show all"))
        if whole.count():
            whole.click()
            page.get_by_text(re.compile("^Characters 1 to ")).wait_for()
            assert_harmless(here, f"all of block {block}")


def test_the_lost_texts_are_shown_folded(here: Any) -> None:
    page = here.open("session", session=NAME, turn="15", tab="compressions")

    page.get_by_text("characters …").first.wait_for()
    expect(page.get_by_role("region", name="Text before")).to_be_visible()
    here.assert_shows("document.title='owned'")
    assert_harmless(here, "the turn of a compression")
