"""The visitor of a page: who is signed in, and what they may see and do.

Without a configured provider any visitor may do everything. With one, every page and every download asks here.
Whatever is missing or unclear (no login, an old one, no matching rule, a configuration that cannot be read) means
no access.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import streamlit as st

from windowpane.config.dashboard import FULL_ACCESS, Access, DashboardConfig
from windowpane.config.loading import load_config
from windowpane.config.paths import LOGIN_VARIABLE
from windowpane.core.characters import plain
from windowpane.exceptions import ConfigurationError, WindowpaneError
from windowpane_dashboard.page import ended_logins
from windowpane_dashboard.page.login_cookie import claims_in

NAME_CHARACTERS: Final = 80


class LoginRequiredError(WindowpaneError):
    """No user is signed in, or the login is too old or was ended."""


class NoAccessError(WindowpaneError):
    """The signed-in user matches no rule, or the login's configuration cannot be read."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """A person before a page."""

    access: Access
    name: str = ""
    """Name or address; empty without a login."""
    key: str = ""
    """Identifies the user at the provider, for addresses that only they may open; empty without a login."""


def of_claims(claims: Mapping[str, Any]) -> Visitor:
    """Return the visitor with these claims, which are empty without a login.

    Raises `LoginRequiredError` or `NoAccessError`. The configuration is read each time: a removed rule counts at
    once.
    """
    try:
        settings = load_config().dashboard
    except ConfigurationError as error:
        if login_is_on():
            raise NoAccessError(f"The configuration cannot be read: {error}") from error
        settings = DashboardConfig()
    if settings.oidc is None:
        if login_is_on():
            raise NoAccessError("The login was removed from the configuration; restart the dashboard.")
        return Visitor(FULL_ACCESS)
    if not claims or not settings.is_current(claims, time.time()) or ended_logins.is_ended(claims):
        raise LoginRequiredError
    access = settings.access_of(claims)
    if access is None:
        raise NoAccessError("No rule of this dashboard gives you access to a project.")
    return Visitor(access, name_of(claims), _key(claims))


def current() -> Visitor:
    """Return the visitor of the page that is drawn."""
    return of_claims(_claims())


def of_request(cookies: Mapping[str, str]) -> Visitor:
    """Return the visitor who sent a request. Raises `LoginRequiredError` or `NoAccessError`."""
    return of_claims(claims_in(cookies) if login_is_on() else {})


def login_is_on() -> bool:
    """Return whether the dashboard was started with a login."""
    return bool(os.environ.get(LOGIN_VARIABLE))


def name_of(claims: Mapping[str, Any]) -> str:
    """Return the name that a user is shown by: a claim, so it may hold anything."""
    names = (claims.get(name) for name in ("name", "preferred_username", "email", "sub"))
    return next((plain(name)[:NAME_CHARACTERS] for name in names if isinstance(name, str) and name.strip()), "?")


def require() -> Visitor:
    """Return the visitor; where they have no access, show why and what to do, and stop the page."""
    try:
        visitor = current()
    except LoginRequiredError:
        _show_login()
        st.stop()
    except NoAccessError as refusal:
        _show_refusal(str(refusal))
        st.stop()
    return visitor


def show_menu(visitor: Visitor) -> None:
    """Show who is signed in, and the button that signs out."""
    if not visitor.name:
        return
    role = "admin" if visitor.access.is_admin else "viewer"
    with st.container(horizontal=True, horizontal_alignment="right", vertical_alignment="center"):
        st.text(f"{visitor.name} · {role}", width="content")
        st.button("Sign out", icon=":material/logout:", on_click=st.logout, type="tertiary")


def _claims() -> dict[str, Any]:
    if not login_is_on():
        return {}
    claims = st.user.to_dict()
    return claims if claims.get("is_logged_in") is True else {}


def _key(claims: Mapping[str, Any]) -> str:
    return sha256(f"{claims.get('iss')}\n{claims.get('sub')}".encode("utf-8", "surrogatepass")).hexdigest()


def _show_login() -> None:
    st.subheader("Sign in to see the sessions", anchor=False)
    st.text("This dashboard shows the context windows of agents to the people of its projects.")
    home = _home()
    if home is not None and st.context.url is not None and _origin(st.context.url) != home:
        st.text("Sign-in works at one address only. Open the dashboard there:")
        st.link_button(home, _same_page_at(home, st.context.url), icon=":material/open_in_new:")
        return
    st.button("Sign in", icon=":material/login:", on_click=st.login, type="primary")


def _show_refusal(reason: str) -> None:
    st.subheader("You have no access", anchor=False)
    claims = _claims()
    if claims:
        st.text(f"You are signed in as {name_of(claims)}.")
    st.text(reason)
    st.text("The operator of this dashboard can add you to dashboard.access in its configuration.")
    if claims:
        st.button("Sign out", icon=":material/logout:", on_click=st.logout)


def _home() -> str | None:
    """Return the origin that users are sent back to after signing in."""
    auth = st.secrets.get("auth") or {}
    redirect = auth.get("redirect_uri")
    return None if redirect is None else _origin(redirect)


def _same_page_at(origin: str, url: str) -> str:
    """Return the address of the page at *url*, with its parameters, at another origin."""
    return f"{origin}{urlsplit(url).path}?{urlencode(st.query_params.to_dict())}"


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
