"""Every page by axe-core: nothing serious, in light and in dark."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright.sync_api")
pytest.importorskip("axe_playwright_python")
pytestmark = pytest.mark.browser

PAGES = {
    "fleet": "",
    "session": "session?session=pi-managed-8k&turn=40",
    "compare": "compare?one=pi-managed-8k&other=pi-managed-32k",
    "replay": "replay",
    "alerts": "alerts",
    "audit": "audit",
}
RUN = """async () => (await axe.run(document, {resultTypes: ["violations"]})).violations.map(
  found => ({id: found.id, impact: found.impact, nodes: found.nodes.map(node => node.html.slice(0, 200))}))"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_has_a_serious_finding(site: Callable[..., Any], demo_store: Path, scheme: str) -> None:
    """Names, roles, contrast, structure."""
    here = site(demo_store, scheme=scheme)
    script = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    found = {}
    for name, address in PAGES.items():
        page = here.open(address)
        page.locator("[data-testid=stSkeleton]").first.wait_for(state="detached", timeout=30_000)
        page.evaluate(script)
        found[name] = [one for one in page.evaluate(RUN) if one["impact"] in ("serious", "critical")]

    assert not any(found.values()), found
