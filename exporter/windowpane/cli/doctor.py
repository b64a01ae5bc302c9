"""`windowpane doctor`: what is installed, reachable and misconfigured."""

from __future__ import annotations

import os
import platform
import shutil
import socket
import sqlite3
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final, Literal, NamedTuple
from urllib.request import urlopen

import click

import windowpane
from windowpane.cli.options import (
    EXIT_FAILED,
    chosen_store,
    json_option,
    open_to_read,
    plain_errors,
    print_json,
    store_option,
)
from windowpane.exceptions import WindowpaneError
from windowpane.limits import PriceCatalogue
from windowpane.paths import default_store
from windowpane.server import DEFAULT_PORT, LOOPBACK
from windowpane.sources.discover import default_places
from windowpane.sources.registry import all_readers
from windowpane.tokens import counter_for

Verdict = Literal["ok", "note", "problem"]

EXTRAS: Final = {
    "dashboard": ("streamlit", "plotly", "pandas"),
    "notify": ("apprise",),
    "otel": ("opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http"),
    "parquet": ("pyarrow",),
}
DASHBOARD_PORT: Final = 8501
MINIMUM_FREE_BYTES: Final = 200 * 2**20


class Finding(NamedTuple):
    """One thing that was looked at."""

    verdict: Verdict
    subject: str
    said: str


@click.command("doctor")
@json_option
@store_option
@click.pass_context
@plain_errors
def command(ctx: click.Context, *, as_json: bool, store_path: Path | None) -> None:
    """Say what is installed, reachable and misconfigured; exits with 1 when something is wrong.

    \b
    Example:
      windowpane doctor
    """
    found = list(examine(_store_meant(store_path)))
    if as_json:
        print_json([finding._asdict() for finding in found])
    else:
        for finding in found:
            click.echo(f"{finding.verdict:<8} {finding.subject:<14} {finding.said}")
    if any(finding.verdict == "problem" for finding in found):
        ctx.exit(EXIT_FAILED)


def _store_meant(given: Path | None) -> Path:
    """The configured store; the default where the configuration, which is examined too, cannot be used."""
    try:
        return chosen_store(given)
    except WindowpaneError:
        return default_store()


def examine(store: Path) -> Iterator[Finding]:
    """Every finding, in the order in which a person would ask."""
    yield Finding("ok", "windowpane", f"{windowpane.__version__} on Python {platform.python_version()}")
    yield Finding("ok", "sqlite", sqlite3.sqlite_version)
    yield from _extras()
    yield _vocabulary()
    yield _catalogue()
    yield from _store(store)
    yield from _configuration()
    yield _endpoint("metrics", DEFAULT_PORT, "/healthz", "windowpane serve")
    yield _endpoint("dashboard", DASHBOARD_PORT, "/_stcore/health", "windowpane dashboard")
    yield _recordings()
    key = os.environ.get("WINDOWPANE_AUDIT_KEY") or os.environ.get("WINDOWPANE_AUDIT_KEY_FILE")
    said = "set: new chains detect tampering" if key else "not set: chains detect accidents, not tampering"
    yield Finding("ok" if key else "note", "audit key", said)


def _extras() -> Iterator[Finding]:
    for extra, packages in EXTRAS.items():
        try:
            versions = ", ".join(f"{package} {version(package)}" for package in packages)
        except PackageNotFoundError as error:
            yield Finding("note", extra, f"{error.name} is missing; pip install 'windowpane[{extra}]'")
        else:
            yield Finding("ok", extra, versions)


def _vocabulary() -> Finding:
    try:
        counted = counter_for("gpt-4o", wait=True).count("Windowpane counts tokens")
    except WindowpaneError as error:
        return Finding("problem", "tokenizer", str(error))
    return Finding("ok", "tokenizer", f"packaged vocabularies load ({counted} tokens in a test sentence)")


def _catalogue() -> Finding:
    info = PriceCatalogue().lookup("gpt-4o")
    if info is None or info.limit_tokens is None:
        return Finding("problem", "models", "the model catalogue does not know gpt-4o; reinstall genai-prices")
    return Finding("ok", "models", f"genai-prices {version('genai-prices')}: windows and prices, offline")


def _store(path: Path) -> Iterator[Finding]:
    if not path.exists():
        yield Finding("note", "store", f"none yet at {path}; `windowpane import` makes it")
        return
    try:
        with open_to_read(path) as store:
            size = store.size()
    except (WindowpaneError, click.ClickException) as error:
        yield Finding("problem", "store", str(error))
        return
    megabytes = size.bytes / 2**20
    yield Finding(
        "ok", "store", f"{path}: {size.sessions:,} sessions, {size.events:,} events, {megabytes:,.1f} MB"
    )
    if path.stat().st_mode & 0o077:
        yield Finding("problem", "store", f"{path} can be read by others; chmod 600 it")
    if not os.access(path, os.W_OK):
        yield Finding("problem", "store", f"{path} cannot be written")
    free = shutil.disk_usage(path.parent).free
    if free < MINIMUM_FREE_BYTES:
        yield Finding("problem", "disk", f"{free / 2**20:,.0f} MB free beside the store")


def _configuration() -> Iterator[Finding]:
    from windowpane.config import load_config

    try:
        load_config()
    except WindowpaneError as error:
        yield Finding("problem", "configuration", str(error))
    else:
        named = os.environ.get("WINDOWPANE_CONFIG")
        yield Finding(
            "ok", "configuration", f"{named} is valid" if named else "defaults and environment are valid"
        )


def _endpoint(subject: str, port: int, path: str, how: str) -> Finding:
    """Whether something of ours answers on *port*, something else does, or nothing."""
    with socket.socket() as probe:
        probe.settimeout(0.5)
        if probe.connect_ex((LOOPBACK, port)) != 0:
            return Finding("note", subject, f"nothing on port {port}; start it with `{how}`")
    try:
        with urlopen(f"http://{LOOPBACK}:{port}{path}", timeout=2) as answer:
            return Finding("ok", subject, f"answers on port {port} ({answer.status})")
    except OSError as error:
        return Finding(
            "problem", subject, f"port {port} is taken by something that does not answer {path}: {error}"
        )


def _recordings() -> Finding:
    readers = all_readers()
    places = default_places(readers)
    if not places:
        return Finding(
            "note", "recordings", "none in the usual places; `windowpane import PATH` reads any folder"
        )
    return Finding(
        "ok", "recordings", ", ".join(str(place) for place in places) + "; read them: windowpane import"
    )
