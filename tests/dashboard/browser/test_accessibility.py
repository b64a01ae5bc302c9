"""Every page by axe-core: nothing serious, in light and in dark."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from tests.sampling import EVERYTHING

from windowpane.evaluation.replay import StoreSource, combine_setups, run_matrix, to_stored_replay
from windowpane.store.embedded import SqliteStore

pytest.importorskip("playwright.sync_api")
pytest.importorskip("axe_playwright_python")

pytestmark = pytest.mark.browser

SESSION = "session?session=pi-managed-8k&turn=40"
PAGES = {
    "fleet": "",
    "compare": "compare?one=pi-managed-8k&other=pi-managed-32k",
    "trends": "trends",
    "replay, filled in": "replay?simulate=pi-managed-8k&policies=hybrid,lru&window=32768",
    "alerts": "alerts",
    "audit": "audit",
    "search": "search?text=file",
}
"""The session page is tested with its tabs."""
MORE_PAGES = {
    "replay": "replay",
    "session, found text": f"{SESSION}&tab=find&text=file",
    "session, a block": f"{SESSION}&block=b2",
}
"""Parts of them are on pages above."""
CHECKS = {"light": {}, "dark": {} if EVERYTHING else {"runOnly": ["color-contrast"]}}
"""The themes differ in their colours only."""
TABS = "[data-testid=stTabs]"
RUN = """async ([part, checks]) => (await axe.run(part, {resultTypes: ["violations"], ...checks})).violations.map(
  found => ({id: found.id, impact: found.impact, nodes: found.nodes.map(node => node.html.slice(0, 200))}))"""


STYLED = """[...document.querySelectorAll("style")].some(one => one.textContent.includes("stCaptionContainer"))"""
"""The style sheet of the dashboard comes last, and makes quiet text readable."""


def findings(here: Any, pages: dict[str, str], scheme: str = "light") -> dict[str, list[dict[str, Any]]]:
    """Serious and critical violations by page; pages without any are omitted."""
    result = {}
    for name, address in pages.items():
        here.open(address)
        result[name] = serious_findings(here, "html", scheme)
    return {name: serious for name, serious in result.items() if serious}


def serious_findings(here: Any, part: str, scheme: str) -> list[dict[str, Any]]:
    """Serious and critical violations in a part of the page that is open."""
    if not here.page.evaluate("'axe' in window"):
        here.page.evaluate(files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8"))
    here.page.wait_for_function(STYLED)
    return [
        one for one in here.page.evaluate(RUN, [part, CHECKS[scheme]]) if one["impact"] in ("serious", "critical")
    ]


@pytest.fixture(scope="module")
def replayed(demo_store: Path) -> Path:
    """The demo's store, to which the result of a simulation is added."""
    store = SqliteStore(demo_store)
    matrix = run_matrix(
        [StoreSource(demo_store, "pi-managed-8k")], combine_setups(limits=[32_768], policies=["hybrid", "fifo"])
    )
    store.save_replay(to_stored_replay(matrix, name="two policies", at=1_700_000_000.0))
    store.close()
    return demo_store


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.matrix)])
def test_no_page_has_a_serious_finding(site: Callable[..., Any], replayed: Path, scheme: str) -> None:
    pages = PAGES | (MORE_PAGES if EVERYTHING else {})
    assert findings(site(replayed, scheme=scheme), pages, scheme) == {}


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.matrix)])
def test_no_tab_of_a_session_has_a_serious_finding(site: Callable[..., Any], replayed: Path, scheme: str) -> None:
    here = site(replayed, scheme=scheme)
    here.open(SESSION)
    assert serious_findings(here, "html", scheme) == []

    found = {section: serious_findings(here, TABS, scheme) for section in here.sections()}

    assert len(found) >= 10
    assert {name: serious for name, serious in found.items() if serious} == {}


@pytest.mark.matrix
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_empty_page_has_a_serious_finding(
    site: Callable[..., Any], empty_store: SqliteStore, scheme: str
) -> None:
    pages = PAGES | MORE_PAGES | {"session": SESSION}
    assert findings(site(Path(empty_store.path), scheme=scheme), pages, scheme) == {}


@pytest.mark.matrix
def test_a_failing_store_has_no_serious_finding(site: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "corrupt.db"
    path.write_bytes(b"this is not a database" * 500)
    here = site(path)

    assert findings(here, {"fleet": ""}) == {}
    here.assert_shows("windowpane doctor")
