"""The start of the dashboard's server: `windowpane dashboard` and `windowpane demo` call `run`."""

from __future__ import annotations

import gc
import importlib
import logging
import os
import socket
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from windowpane.config.dashboard import OidcConfig
from windowpane.config.paths import LOGIN_VARIABLE, local_base
from windowpane.core.store_names import StoreName, StoreUrl, full_name
from windowpane.core.version import install_command
from windowpane.exceptions import WindowpaneError
from windowpane.outputs.http.authentication import is_local_host_header
from windowpane.outputs.http.local_dashboard import announced
from windowpane.store.keys import KEY_FILE_VARIABLE, OLD_KEY_FILES_VARIABLE
from windowpane_dashboard.server.login import origin_of, redirect_url, streamlit_secrets

if TYPE_CHECKING:
    from starlette.routing import Route

APP: Final = Path(__file__).parents[1] / "app.py"
CONFIGURATION: Final = Path(__file__).parents[1] / ".streamlit" / "config.toml"
WARM: Final = (
    "pandas.io.formats.style",
    "plotly.tools",
    "pyarrow.pandas_compat",
    "streamlit.material_icon_names",
    "windowpane.alerts.summary",
    "windowpane.store.embedded",
    "windowpane_dashboard.charts.window_chart",
    "windowpane_dashboard.page.downloads",
    "windowpane_dashboard.queries.fleet",
    "windowpane_dashboard.queries.window",
)
"""Modules that are loaded before the first page is requested."""
DEFAULT_PORT: Final = 8501
DEFAULT_ADDRESS: Final = "127.0.0.1"


class DashboardError(WindowpaneError):
    """Raised when the dashboard cannot be started; the message gives the reason and a remedy."""


def run(
    store: StoreName,
    port: int = DEFAULT_PORT,
    address: str = DEFAULT_ADDRESS,
    *,
    public_url: str | None = None,
    insecure: bool = False,
    login: OidcConfig | None = None,
) -> None:
    """Serve the dashboard of *store* and block until stopped. Raises `DashboardError`.

    An address beyond loopback is an error unless there is a *login* over HTTPS or *insecure*. Requests have to
    name this machine or the host of *public_url*. Nothing is sent anywhere but to the provider of the login, and
    no browser is opened.
    """
    redirect = None if login is None else redirect_url(login, public_url=public_url, address=address, port=port)
    check_address(address, insecure=insecure, redirect=redirect)
    try:
        import streamlit as st
    except ImportError as error:
        raise DashboardError(f"the dashboard is not installed; run: {install_command('dashboard')}") from error
    check_port(port, address)
    from starlette.middleware import Middleware

    from windowpane_dashboard.page import ended_logins
    from windowpane_dashboard.page.messages import show_unforeseen
    from windowpane_dashboard.server.logout import Logout
    from windowpane_dashboard.server.own_origin import OwnOriginOnly
    from windowpane_dashboard.server.return_address import ReturnAddress

    store = store if isinstance(store, StoreUrl) else store.absolute()
    leave_current_folder()
    os.environ["WINDOWPANE_STORE"] = full_name(store)
    os.environ[LOGIN_VARIABLE] = "" if login is None else "1"
    secrets = None if login is None or redirect is None else streamlit_secrets(login, redirect)
    warm_up()
    reached_at = public_url or (None if redirect is None else origin_of(redirect))
    middleware = [Middleware(OwnOriginOnly, address=address, public_url=reached_at)]
    if secrets is not None and redirect is not None:
        secret = secrets["auth"]["cookie_secret"]
        middleware += [Middleware(ReturnAddress, redirect=redirect, secret=secret), Middleware(Logout)]
        ended_logins.prepare()
    app = st.App(APP, routes=routes(), middleware=middleware, on_script_error=show_unforeseen, secrets=secrets)
    host = f"[{address}]" if ":" in address else address
    with announced(local_base(store), f"http://{host}:{port}"):
        app.run(config=server_config(port, address))


def routes() -> tuple[Route, ...]:
    """Return the routes that this package answers itself, before Streamlit's."""
    from windowpane_dashboard.page import downloads
    from windowpane_dashboard.server import index_page

    return (*downloads.ROUTES, *index_page.ROUTES)


def leave_current_folder() -> None:
    """Change to this package's folder; the files that variables name stay the same.

    Streamlit reads `.streamlit/config.toml` and `secrets.toml` of the current folder, which may be any project,
    and sets variables of the environment from them.
    """
    for name, separator in (
        ("WINDOWPANE_CONFIG", "\0"),
        (KEY_FILE_VARIABLE, "\0"),
        (OLD_KEY_FILES_VARIABLE, os.pathsep),
    ):
        if given := os.environ.get(name):
            paths = [str(Path(path).expanduser().absolute()) for path in given.split(separator) if path]
            os.environ[name] = separator.join(paths)
    os.chdir(APP.parent)


def warm_up() -> None:
    """Load the modules of the pages and exclude them from garbage collection.

    Streamlit collects all garbage after every script run, which takes longer than drawing a small page while it
    scans the libraries' own objects each time.
    """
    logging.disable(logging.WARNING)  # Streamlit warns that its server does not run yet
    for name in WARM:
        importlib.import_module(name)
    logging.disable(logging.NOTSET)
    importlib.import_module("plotly.graph_objects").Figure().add_bar(x=[1]).to_json()
    gc.collect()
    gc.freeze()


def server_config(port: int, address: str) -> dict[str, object]:
    """Return Streamlit's settings from the package's own file, which override the user's configuration.

    Streamlit looks for a configuration next to the program that was started, which is the command and not this
    package, so the file is read here.
    """
    settings = tomllib.loads(CONFIGURATION.read_text(encoding="utf-8"))
    return {**dict(_dotted(settings)), "server.port": port, "server.address": address}


def _dotted(settings: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, object]]:
    for name, value in settings.items():
        if isinstance(value, dict):
            yield from _dotted(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def check_address(address: str, *, insecure: bool, redirect: str | None = None) -> None:
    """Raise `DashboardError` for an address that other machines can reach, unless *insecure*.

    With a login, whose users return to *redirect*, it is allowed behind a proxy that speaks HTTPS with browsers.
    """
    if insecure or is_local_host_header(f"[{address}]" if ":" in address else address):
        return
    if redirect is None:
        raise DashboardError(
            f"the dashboard has no login, and other machines can reach {address or 'every address'}; listen on "
            "127.0.0.1 behind a proxy with a login, set dashboard.oidc, or add --insecure to serve everyone"
        )
    if not redirect.startswith("https://"):
        raise DashboardError(
            f"other machines can reach {address or 'every address'}, and {redirect} is not encrypted; set "
            "public_url to the https address of a proxy, or add --insecure"
        )


def check_port(port: int, address: str) -> None:
    """Raise `DashboardError` where the port cannot be used."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            raise DashboardError(
                f"port {port} on {address} cannot be used ({error.strerror}); "
                f"choose another with: windowpane dashboard --port {port + 1}"
            ) from error
