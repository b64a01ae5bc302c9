"""The way back after signing in: to a page of this dashboard and nowhere else."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from windowpane_dashboard.server.return_address import COOKIE, ReturnAddress, own_page

HOME = "https://windowpane.internal"
PROVIDER = "https://login.internal/authorize"


def login(request: Request) -> Response:
    """Answer as Streamlit does: with the provider's address and the `state` of the exchange."""
    return RedirectResponse(f"{PROVIDER}?state={request.query_params['provider']}")


def signed_in(_request: Request) -> Response:
    """Answer as Streamlit does: with its first page."""
    return RedirectResponse("/")


@pytest.fixture
def browser() -> TestClient:
    """A browser before an application with the routes of Streamlit's login."""
    routes = [Route("/auth/login", login), Route("/oauth2callback", signed_in)]
    middleware = [Middleware(ReturnAddress, redirect=f"{HOME}/oauth2callback", secret="s" * 32)]
    return TestClient(Starlette(routes=routes, middleware=middleware), HOME, follow_redirects=False)


def way_back(browser: TestClient, referer: str, *, state: str = "one", returned: str = "one") -> str:
    """Sign in from a page, and return the address to which the browser is sent."""
    browser.get("/auth/login", params={"provider": state}, headers={"Referer": referer})
    return browser.get("/oauth2callback", params={"state": returned}).headers["location"]


@pytest.mark.parametrize(
    ("page", "back"),
    [
        ("/session?session=a%2Fb&turn=3", "./session?session=a%2Fb&turn=3"),
        ("/alerts?pick=x+y", "./alerts?pick=x+y"),
        ("/windowpane/audit?session=s1", "./audit?session=s1"),
        ("/?project=shop", "./?project=shop"),
        ("/", "./"),
    ],
)
def test_a_page_is_returned_to(page: str, back: str, browser: TestClient) -> None:
    assert way_back(browser, HOME + page) == back
    assert COOKIE not in browser.cookies


@pytest.mark.parametrize(
    "referer",
    [
        "", "https://evil.example/session?session=s1", "https://windowpane.internal.evil.example/session",
        "https://windowpane.internal@evil.example/session", "http://windowpane.internal/session",
        f"{HOME}/oauth2callback?code=1", f"{HOME}/export-events?form=csv", f"{HOME}//evil.example/x",
        f"{HOME}/session?session={'x' * 3_000}", "https://[", "//evil.example/session",
    ],
)  # fmt: skip
def test_any_other_address_leads_to_the_first_page(referer: str, browser: TestClient) -> None:
    assert way_back(browser, referer) == "/"


@pytest.mark.parametrize(
    "page",
    ["/session?next=https://evil.example", "/session?session=%0d%0aSet-Cookie:+x=1", "//evil.example/session"],
)
def test_whatever_a_page_is_called_the_browser_stays_here(page: str) -> None:
    back = own_page(HOME + page, HOME)
    assert back is not None
    assert back.startswith("./session")
    assert "\n" not in back


def test_the_cookie_belongs_to_one_exchange(browser: TestClient) -> None:
    assert way_back(browser, f"{HOME}/session?session=s1", returned="two") == "/"
    browser.get("/auth/login", params={"provider": "one"}, headers={"Referer": f"{HOME}/session"})
    signed = browser.cookies[COOKIE]
    browser.cookies.clear()
    browser.cookies.set(COOKIE, signed[:-3] + "AAA", domain="windowpane.internal")
    assert browser.get("/oauth2callback", params={"state": "one"}).headers["location"] == "/"
