"""Messages in place of a page: nothing recorded yet, a failed read, an error that nothing foresaw."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import streamlit as st

from windowpane.config.paths import default_store, local_base
from windowpane.exceptions import SchemaVersionError, StoreError, WindowpaneError
from windowpane.sources.imports.progress import ImportProgress, running_import
from windowpane_dashboard.page import widget_state

logger = logging.getLogger(__name__)

READ_ERRORS: Final = (WindowpaneError, sqlite3.Error, OSError)
IMPORT_SECONDS: Final = 0.5
"""Time after which a page without a session is drawn again, while an import runs."""


@contextmanager
def report_read_errors(what: str, detail: str = "") -> Iterator[None]:
    """Replace a failing read by a message (what failed, what still works, what to try) and stop the page."""
    try:
        yield
    except READ_ERRORS as error:
        logger.exception("%s", what)
        show_failure(what, error, detail)


def show_failure(what: str, error: Exception, detail: str = "") -> None:
    """Report the failed read and stop the page."""
    st.error(what + ".", icon=":material/error:")
    st.text(f"{type(error).__name__}: {error}")
    if detail:
        st.text(detail)
    if isinstance(error, SchemaVersionError):
        st.text("It was written by a newer release: upgrade Windowpane, then reload this page.")
    elif isinstance(error, StoreError | sqlite3.Error):
        st.text("Running agents are not affected. To list the damage:")
        st.code("windowpane doctor\nwindowpane audit verify", language=None)
    else:
        st.text("Check that the file exists and can be read by this user, then reload this page.")
    widget_state.stop()


def show_empty(what: str) -> None:
    """Show that the store holds nothing yet and the commands that fill it, and stop the page.

    While an import into the store runs, show that instead, and draw the page again.
    """
    progress = running_import(local_base(default_store()))
    if progress is not None:
        _follow_import(progress)
        widget_state.stop()
    st.subheader("Nothing to show yet", anchor=False)
    st.text(what)
    st.text("Import the sessions that your coding agents have already recorded on this machine:")
    st.code("windowpane import", language=None)
    st.text("Or look around with recorded demo sessions:")
    st.code("windowpane demo", language=None)
    st.text("To watch an agent of your own, start Windowpane inside it:")
    st.code("import windowpane\n\nwindowpane.start()\nclient = windowpane.observe(client)", language=None)
    widget_state.stop()


def show_import() -> None:
    """Show the progress of an import that runs into the store, if one does."""
    progress = running_import(local_base(default_store()))
    if progress is not None:
        _draw(progress)


@st.fragment(run_every=IMPORT_SECONDS)
def _follow_import(progress: ImportProgress) -> None:
    """Draw the progress, and the page again when there is more."""
    _draw(progress)
    if running_import(local_base(default_store())) != progress:
        st.rerun()


def _draw(progress: ImportProgress) -> None:
    text = f"{progress.done:,} of {progress.total:,} recordings of this machine are read, the newest first"
    st.progress(progress.share, text)


def show_unforeseen(error: Exception) -> bool:
    """Report an error that nothing handled; return True, so that nothing else is drawn for *error*.

    Streamlit has already logged the traceback. The page shows only the kind of the error: its message may hold
    text of an agent.
    """
    with st.container(key="unforeseen"):
        st.error(
            "Something failed here that should not, so a part of this page is missing.", icon=":material/error:"
        )
        st.text(
            "Running agents are not affected and the store is unchanged; other pages, turns and sessions may "
            "still open. Reload this page to try again."
        )
        st.text(f"If it fails again, report it with the lines about {type(error).__name__} from the output of:")
        st.code("windowpane dashboard", language=None)
    widget_state.finish_drawing()
    return True
