"""`windowpane` without a command: the sessions that the agents on this machine have recorded."""

from __future__ import annotations

import threading

import click

from windowpane.cli.dashboard_process import DashboardProcess, dashboard_process
from windowpane.cli.import_ import ImportOptions, import_recordings
from windowpane.cli.options import open_to_write, recording_folders, report_errors
from windowpane.cli.output import print_table
from windowpane.cli.serve import wait_for_stop
from windowpane.cli.sessions import session_table
from windowpane.config.paths import local_base
from windowpane.sources.imports.last_import import import_key, unchanged_reports
from windowpane.sources.imports.progress import ProgressFile
from windowpane.store.filters import SessionFilter

PORT = 8501
LISTED = 20


@report_errors
def show_sessions() -> None:
    """Serve the dashboard and import what is new, the newest first, until Ctrl-C."""
    folders = recording_folders()
    with (
        open_to_write(None) as store,
        ProgressFile(local_base(store.address)) as note,
        dashboard_process(store.address, port=PORT) as dashboard,
    ):
        note.show(0, 0)  # before the dashboard looks for an import
        threading.Thread(target=_announce, args=(dashboard,), daemon=True).start()
        options = ImportOptions()
        key = import_key(folders, options._asdict())
        if unchanged_reports(str(store.address), key) is None:
            import_recordings(folders, key, None, options, newest_first=True)
        print_table(session_table(store.sessions(SessionFilter(order="recent", limit=LISTED))))
        click.echo("Every session of this machine is stored. Ctrl-C stops the dashboard.")
        wait_for_stop()


def _announce(dashboard: DashboardProcess) -> None:
    click.echo(f"dashboard  {dashboard.wait()}", err=True)
