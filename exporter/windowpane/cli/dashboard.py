"""`windowpane dashboard`: the browser application."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext

import click

from windowpane.cli.dashboard_process import end_process
from windowpane.cli.options import report_errors, store_option
from windowpane.config.loading import load_config
from windowpane.config.paths import READ_ONLY_VARIABLE, local_base
from windowpane.core.store_names import StoreName, full_name
from windowpane.core.version import install_command
from windowpane.sources.imports.progress import running_import
from windowpane.sources.installed_agents.locations import default_folders
from windowpane.store.filters import SessionFilter
from windowpane.store.keys import KEY_FILE_VARIABLE, OLD_KEY_FILES_VARIABLE
from windowpane.store.open import open_store, store_exists


@click.command("dashboard")
@click.option("--port", type=click.IntRange(1, 65_535), default=8501, show_default=True)
@click.option("--address", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--insecure", is_flag=True, help="Serve other machines, although the dashboard has no login.")
@click.option("--read-only", is_flag=True, help="Show no form that adds notes or titles to sessions.")
@store_option
@report_errors
def command(port: int, address: str, *, insecure: bool, read_only: bool, store_path: StoreName | None) -> None:
    """Serve the dashboard for the store; Ctrl-C stops it.

    Into a store without a session, the sessions of this machine are imported meanwhile, the newest first.

    \b
    Example:
      windowpane dashboard --port 8600
    """
    try:
        from windowpane_dashboard.server.launch import run  # streamlit is an extra
    except ImportError as error:
        raise click.ClickException(
            f"the dashboard requires Streamlit ({error.name} is missing); run: {install_command('dashboard')}"
        ) from error
    config = load_config()
    configured = config.store
    if configured.audit_key_file is not None:  # the pages read only the environment
        os.environ[KEY_FILE_VARIABLE] = str(configured.audit_key_file)
    if configured.audit_old_key_files:
        os.environ[OLD_KEY_FILES_VARIABLE] = os.pathsep.join(map(str, configured.audit_old_key_files))
    if read_only:
        os.environ[READ_ONLY_VARIABLE] = "1"
    store = store_path or configured.path
    with nullcontext() if read_only else _import_into_empty(store):
        run(
            store,
            port=port,
            address=address,
            public_url=config.public_url,
            insecure=insecure,
            login=config.dashboard.oidc,
        )


@contextmanager
def _import_into_empty(store: StoreName) -> Iterator[None]:
    """Import the sessions of this machine into a store that holds none, while the block runs."""
    if not default_folders() or running_import(local_base(store)) is not None or not _is_empty(store):
        yield
        return
    process = subprocess.Popen(  # this program
        [sys.executable, "-P", "-m", "windowpane", "import", "--newest-first"],
        env={**os.environ, "WINDOWPANE_STORE": full_name(store)},  # it may hold a password: no argument
        stdout=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        end_process(process)


def _is_empty(store: StoreName) -> bool:
    if not store_exists(store):
        return True
    with closing(open_store(store)) as opened:
        return not opened.sessions(SessionFilter(limit=1))
