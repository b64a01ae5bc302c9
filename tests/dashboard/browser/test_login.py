"""The login with a real provider and a real browser: who sees what, by the pages and by address."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright.sync_api")
pytest.importorskip("authlib")
from playwright.sync_api import expect
from tests.sampling import sampled
from tests.servers.oidc import CLIENT_ID, CLIENT_SECRET, Provider, provider

from windowpane.store.embedded import SqliteStore
from windowpane_dashboard.server.background import serving

pytestmark = pytest.mark.browser

ADMIN = {"sub": "1", "name": "Ann Admin", "email": "ann@example.org", "email_verified": True}
VIEWER = {
    "sub": "2",
    "name": "Vic Viewer",
    "email": "vic@example.org",
    "email_verified": True,
    "groups": ["shop"],
}
STRANGER = {"sub": "3", "name": "<img src=x onerror=alert(1)><b>Mallory</b>", "email": "m@example.com"}
CONFIGURATION = """
dashboard:
  oidc:
    metadata_url: {metadata_url}
    client_id: {client_id}
    client_secret: {client_secret}
    cookie_secret: {cookie_secret}
  access:
    - {{email: ANN@example.org, role: admin}}
    - {{claim: groups, value: shop, projects: [shop]}}
"""


@pytest.fixture(scope="module")
def signed_store(tmp_path_factory: pytest.TempPathFactory, builders: Any) -> Path:
    """A session in each of two projects."""
    path = tmp_path_factory.mktemp("signed") / "windowpane.db"
    store = SqliteStore(path)
    for project in ("shop", "bank"):
        start = time.time() - 800
        store.append(
            builders.plain(f"session-of-{project}", start=start, turns=4, limit_tokens=200_000, end=True)
        )
        store.assign_project(f"session-of-{project}", project)
    store.close()
    return path


@pytest.fixture(scope="module")
def identity() -> Iterator[Provider]:
    """The provider that users sign in with."""
    with provider() as running:
        yield running


@pytest.fixture(scope="module")
def address(signed_store: Path, identity: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The dashboard with a login."""
    file = tmp_path_factory.mktemp("login") / "config.yml"
    file.write_text(
        CONFIGURATION.format(
            metadata_url=identity.metadata_url,
            client_id=CLIENT_ID,
            client_secret=CLIENT_SECRET,
            cookie_secret="c" * 32,
        )
    )
    before = os.environ.get("WINDOWPANE_CONFIG")
    os.environ["WINDOWPANE_CONFIG"] = str(file)
    try:
        with serving(signed_store) as url:
            yield url
    finally:
        os.environ.pop("WINDOWPANE_CONFIG")
        if before is not None:
            os.environ["WINDOWPANE_CONFIG"] = before


@pytest.fixture
def visit(
    site: Callable[..., Any], signed_store: Path, address: str, identity: Provider
) -> Callable[[dict[str, Any]], Any]:
    """Sign in as the user with these claims, on a page without cookies."""

    def signed_in(claims: dict[str, Any], *, issued_seconds_ago: float = 0.0) -> Any:
        identity.claims, identity.issued_seconds_ago = claims, issued_seconds_ago
        here = site(signed_store, url=address)
        here.open()
        here.talk.requested = True
        with here.page.expect_navigation(url=f"{address}/"):
            here.page.get_by_role("button", name="Sign in").click()
        here.settle()
        return here

    return signed_in


SESSIONS = {project: f"session-of-{project}" for project in ("shop", "bank")}


def test_without_a_login_every_page_offers_one(
    site: Callable[..., Any], signed_store: Path, address: str
) -> None:
    here = site(signed_store, url=address)
    for path in sampled(("session", "", "search", "audit"), 2):
        page = here.open(path, session=SESSIONS["bank"], text="the")
        expect(page.get_by_role("button", name="Sign in")).to_be_visible()
        assert SESSIONS["bank"] not in page.content()
    assert here.page.request.get(f"{address}/export-events?form=jsonl").status == 401


@pytest.mark.matrix
def test_an_admin_sees_everything(visit: Callable[..., Any]) -> None:
    """Every project, the chain, notes and the form of a simulation."""
    here = visit(ADMIN)
    expect(here.page.get_by_text("Ann Admin · admin")).to_be_visible()
    here.open("session", session=SESSIONS["bank"])
    here.assert_shows(re.compile("turn", re.IGNORECASE))
    here.open("audit")
    expect(here.page.get_by_role("button", name="Verify chain")).to_be_visible()


def test_signing_out_ends_the_login_for_a_copy_of_its_cookie_too(
    visit: Callable[..., Any], site: Callable[..., Any], signed_store: Path, address: str
) -> None:
    here = visit(ADMIN)
    copied = here.page.context.cookies()
    here.talk.requested = True
    here.page.get_by_role("button", name="Sign out").click()
    expect(here.page.get_by_role("button", name="Sign in")).to_be_visible()

    other = site(signed_store, url=address)
    other.page.context.add_cookies(copied)
    other.open("session", session=SESSIONS["bank"])
    expect(other.page.get_by_role("button", name="Sign in")).to_be_visible()
    assert SESSIONS["bank"] not in other.page.content()
    assert other.page.request.get(f"{address}/export-events?form=jsonl").status == 401

    again = visit(ADMIN)
    expect(again.page.get_by_text("Ann Admin · admin")).to_be_visible()


def test_a_viewer_logs_in_at_a_link_and_sees_only_the_granted_projects(
    site: Callable[..., Any], signed_store: Path, address: str, identity: Provider
) -> None:
    identity.claims, identity.issued_seconds_ago = VIEWER, 0.0
    here = site(signed_store, url=address)
    here.open("session", session=SESSIONS["shop"], turn="2", tab="turns")
    here.talk.requested = True
    link = f"{address}/session?session={SESSIONS['shop']}&turn=2&tab=turns"
    with here.page.expect_navigation(url=link):
        here.page.get_by_role("button", name="Sign in").click()
    here.settle()
    here.assert_shows("Turn 2")
    assert "not in the store" not in here.text()
    assert "windowpane_return" not in {cookie["name"] for cookie in here.page.context.cookies()}
    expect(here.page.get_by_text("Vic Viewer · viewer")).to_be_visible()

    here.open(project="bank")
    here.assert_shows("No session matches")
    here.open("session", session=SESSIONS["bank"])
    here.assert_shows("not in the store")
    here.open("audit", session=SESSIONS["bank"])
    here.assert_shows("No event matches")
    assert here.page.get_by_role("button", name="Verify chain").count() == 0


@pytest.mark.matrix
def test_a_viewer_changes_nothing(visit: Callable[..., Any]) -> None:
    """Neither by a test message nor by a simulation; another project's session cannot be compared either."""
    here = visit(VIEWER)
    here.open("compare", one=SESSIONS["bank"], other=SESSIONS["shop"])
    here.assert_shows("not in the store")
    here.open("alerts")
    assert here.page.get_by_text("Send a test message").count() == 0
    here.open("replay")
    assert here.page.get_by_role("button", name="Simulate").count() == 0


@pytest.mark.matrix
def test_a_download_belongs_to_its_user(visit: Callable[..., Any], signed_store: Path, address: str) -> None:
    viewer = visit(VIEWER)
    viewer.open("audit")
    link = viewer.page.get_by_role("link", name="JSON Lines").get_attribute("href")
    assert link is not None
    url = f"{address}/{link.removeprefix('/')}" if not link.startswith("http") else link
    body = viewer.page.request.get(url).text()
    assert SESSIONS["shop"] in body
    store = SqliteStore(signed_store)
    for row in store.sessions():
        assert (f'"session_id":"{row.session_id}"' in body) == (row.project == "shop")
    store.close()

    assert visit(ADMIN).page.request.get(url).status == 403


def test_a_user_without_a_rule_gets_one_clear_page(visit: Callable[..., Any], address: str) -> None:
    """On every page; the name is a claim, so its HTML is text."""
    here = visit(STRANGER)
    for path in sampled(("session", ""), 1):  # signing in opened the first page
        here.open(path)
        expect(here.page.get_by_text("You have no access")).to_be_visible()
        expect(here.page.get_by_text("<b>Mallory</b>")).to_be_visible()
        assert here.page.locator("img[src=x]").count() == 0
    assert here.page.request.get(f"{address}/export-events?form=csv").status == 401
    here.page.get_by_role("button", name="Sign out").click()
    expect(here.page.get_by_role("button", name="Sign in")).to_be_visible()


@pytest.mark.matrix
def test_an_address_counts_only_verified(visit: Callable[..., Any]) -> None:
    here = visit({**ADMIN, "email_verified": False})
    expect(here.page.get_by_text("You have no access")).to_be_visible()


@pytest.mark.matrix
def test_an_old_login_and_a_forged_cookie_count_for_nothing(visit: Callable[..., Any]) -> None:
    here = visit(ADMIN, issued_seconds_ago=13 * 3_600)
    expect(here.page.get_by_role("button", name="Sign in")).to_be_visible()

    here = visit(VIEWER)
    for cookie in here.page.context.cookies():
        if cookie["name"] == "_streamlit_user":
            here.page.context.add_cookies([{**cookie, "value": cookie["value"][:-4] + "AAAA"}])
    here.open()
    expect(here.page.get_by_role("button", name="Sign in")).to_be_visible()
