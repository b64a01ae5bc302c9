"""`windowpane doctor`: check the installation, the endpoints and the configuration."""

from __future__ import annotations

import os
import platform
import re
import shlex
import shutil
import socket
import sqlite3
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from importlib.machinery import PathFinder
from importlib.metadata import Distribution, PackageNotFoundError, distributions, version
from pathlib import Path
from typing import Final, Literal

import click

import windowpane
from windowpane.cli.hook import imports_of_projects, read_settings
from windowpane.cli.options import EXIT_FAILED, json_option, open_to_read, report_errors, store_option
from windowpane.cli.output import print_json
from windowpane.config.loading import load_config
from windowpane.config.outputs import ServerConfig
from windowpane.config.paths import local_base
from windowpane.config.schema import Config
from windowpane.core.store_names import ENDPOINTS, StoreName, StoreUrl
from windowpane.core.version import DISTRIBUTION, PACKAGE, install_command
from windowpane.exceptions import WindowpaneError
from windowpane.models.catalog import packaged_catalog
from windowpane.models.prices import price_list
from windowpane.models.tokens import counter_for
from windowpane.outputs.http.authentication import require_protection
from windowpane.outputs.http.http_server import LOOPBACK, host_and_port
from windowpane.outputs.http.service_discovery import http_status, reported_health
from windowpane.outputs.remote.connection import server_address
from windowpane.outputs.remote.sink import waiting_base
from windowpane.sources.hooks.failed_import import failure
from windowpane.sources.installed_agents.locations import claude_folder, default_folders
from windowpane.store.keys import KEY_VARIABLE, checked_key, key_in, keys_in
from windowpane.store.writes import chain
from windowpane.store.writes.spool import waiting_files
from windowpane.text import formats

Verdict = Literal["ok", "note", "problem"]

EXTRAS: Final = {
    "bulk": ("toktok-rs",),
    "clickhouse": ("clickhouse-connect",),
    "dashboard": ("streamlit", "plotly", "pandas"),
    "login": ("Authlib", "httpx", "itsdangerous"),
    "mcp": ("mcp",),
    "notify": ("apprise",),
    "otel": ("opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http"),
    "parquet": ("pyarrow",),
    "postgres": ("psycopg",),
    "proxy": ("httpx2",),
    "serve": ("starlette", "uvicorn"),
}
DASHBOARD_PORT: Final = 8501
ALL_INTERFACES: Final = frozenset({"0.0.0.0", "::", ""})  # noqa: S104  # checked on loopback
MINIMUM_FREE_BYTES: Final = 200 * 2**20

HERE: Final = Path(windowpane.__file__).resolve()
SUMMARY: Final = "Observability for the context windows of LLM agents"
"""Summary of our distribution: an installation from before its renaming is not another project."""
ENTRY_POINT: Final = f"{PACKAGE}.__main__"
_COMMANDS: Final = (PACKAGE, f"{PACKAGE}.exe")
_SCRIPT_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    verdict: Verdict
    subject: str
    detail: str


@click.command("doctor")
@json_option
@store_option
@click.pass_context
@report_errors
def command(ctx: click.Context, *, as_json: bool, store_path: StoreName | None) -> None:
    """Check what is installed, reachable and configured; exits with 1 when there is a problem.

    \b
    Example:
      windowpane doctor
    """
    findings = list(run_checks(store_path))
    if as_json:
        print_json(findings, list[Finding])
    else:
        for finding in findings:
            click.echo(f"{finding.verdict:<8} {finding.subject:<14} {finding.detail}")
    if any(finding.verdict == "problem" for finding in findings):
        ctx.exit(EXIT_FAILED)


def run_checks(store: StoreName | None) -> Iterator[Finding]:
    """Run all checks; those after an invalid configuration use the defaults."""
    try:
        config, configuration = load_config(), [_configured()]
    except WindowpaneError as error:
        problems = str(error).splitlines()
        config, configuration = Config(), [Finding("problem", "configuration", line) for line in problems]
    yield Finding("ok", "windowpane", f"{windowpane.__version__} on Python {platform.python_version()}")
    yield from _other_packages()
    yield Finding("ok", "sqlite", sqlite3.sqlite_version)
    yield from _extras()
    yield _vocabulary()
    yield _catalog()
    yield from _store(store or config.store.path, config)
    yield from configuration
    yield _metrics(config.server)
    yield _endpoint(
        "dashboard", host_and_port(LOOPBACK, DASHBOARD_PORT), "/_stcore/health", "windowpane dashboard"
    )
    yield _recordings()
    yield from _hooks()
    yield _audit_key(config)


def _is_endpoint(path: StoreName) -> bool:
    return isinstance(path, StoreUrl) and path.scheme in ENDPOINTS


def _other_packages() -> Iterator[Finding]:
    """Report whatever else is called windowpane and is installed over this package or found before it."""
    for distribution in other_distributions():
        yield Finding(
            "problem",
            "windowpane",
            f"{distribution} has the same module name; uninstall it and install {DISTRIBUTION} again",
        )
    for module in other_modules():
        yield Finding("problem", "windowpane", f"{module} is imported where it comes first; rename or remove it")
    for script in other_commands():
        yield Finding("problem", "windowpane", f"{script} is another program; remove it or put it later in PATH")


def _extras() -> Iterator[Finding]:
    for extra, packages in EXTRAS.items():
        try:
            versions = ", ".join(f"{package} {version(package)}" for package in packages)
        except PackageNotFoundError as error:
            yield Finding("note", extra, f"{error.name} is missing; {install_command(extra)}")
        else:
            yield Finding("ok", extra, versions)


def _vocabulary() -> Finding:
    try:
        tokens = counter_for("gpt-4o", wait=True).count("Windowpane counts tokens")
    except WindowpaneError as error:
        return Finding("problem", "tokenizer", str(error))
    return Finding("ok", "tokenizer", f"packaged vocabularies load ({tokens} tokens in a test sentence)")


def _catalog() -> Finding:
    info = packaged_catalog().lookup("gpt-4o")
    if info is None or info.limit_tokens is None:
        return Finding(
            "problem", "models", "the model catalog does not know gpt-4o; reinstall windowpane-observability"
        )
    return Finding("ok", "models", f"windows and prices of genai-prices {price_list().release}, offline")


def _store(path: StoreName, config: Config) -> Iterator[Finding]:
    base = local_base(path)
    own = waiting_base(base, config.ingest, config.project) if _is_endpoint(path) else base
    where = f"next to {path}" if isinstance(path, Path) else f"in {base.parent}"
    if waiting := waiting_files(own):
        detail = f"{len(waiting)} files {where} hold events that could not be stored; the next agent stores them"
        yield Finding("note", "spool", detail)
    others = set(base.parent.glob(f"{base.name}-*.spool-*.jsonl")).difference(waiting) if own != base else ()
    if others:
        detail = f"{len(others)} files {where} wait for an agent with another project or token"
        yield Finding("note", "spool", detail)
    if isinstance(path, StoreUrl) and _is_endpoint(path):
        yield from _server(path, config)
        return
    if isinstance(path, Path) and not path.exists() and not path.is_symlink():
        yield Finding("note", "store", f"none yet at {path}; `windowpane import` creates it")
        return
    try:
        with open_to_read(path) as store:
            size = store.size()
            with store.engine.lend() as connection:
                is_unaccepted = chain.is_unaccepted(connection)
    except (WindowpaneError, click.ClickException) as error:
        yield Finding("problem", "store", str(error))
        return
    yield Finding(
        "ok", "store", f"{path}: {size.sessions:,} sessions, {size.events:,} events, {formats.size(size.bytes)}"
    )
    if is_unaccepted and _audit_key(config).verdict == "ok":
        detail = f"the store holds events that were recorded without the key: {chain.ACCEPT}"
        yield Finding("problem", "audit key", detail)
    if isinstance(path, Path):
        yield from _file(path)


def _server(store: StoreUrl, config: Config) -> Iterator[Finding]:
    """Check the address of a server that this machine sends its events to."""
    try:
        server = server_address(store.url, insecure=config.ingest.insecure)
        socket.create_connection((server.host, server.port), timeout=2).close()
    except WindowpaneError as error:
        yield Finding("problem", "store", str(error))
        return
    except OSError as error:
        detail = f"{store} cannot be reached now ({error.strerror or error}); events wait in files meanwhile"
        yield Finding("note", "store", detail)
    else:
        yield Finding("ok", "store", f"events are sent to {server.url}, which can be reached")
    detail = "a server does not receive recordings yet: hooks, `import` and `watch` need the file of a store"
    yield Finding("note", "recordings", detail)


def _file(path: Path) -> Iterator[Finding]:
    """Check the permissions of a store's file and the space next to it."""
    if path.stat().st_mode & 0o077:
        yield Finding("problem", "store", f"{path} can be read by other users; run chmod 600")
    if not os.access(path, os.W_OK):
        yield Finding("problem", "store", f"{path} cannot be written")
    free = shutil.disk_usage(path.parent).free
    if free < MINIMUM_FREE_BYTES:
        yield Finding("problem", "disk", f"{formats.size(free)} free next to the store")


def _configured() -> Finding:
    file = os.environ.get("WINDOWPANE_CONFIG")
    return Finding("ok", "configuration", f"{file} is valid" if file else "defaults and environment are valid")


def _metrics(server: ServerConfig) -> Finding:
    """Check the configured endpoint of the metrics."""
    try:
        require_protection(
            server.address, has_token=server.bearer_token is not None, tls=server.tls, insecure=server.insecure
        )
    except WindowpaneError as error:
        return Finding("problem", "metrics", str(error))
    if server.port == 0:
        return Finding("note", "metrics", "on any free port, as configured; `windowpane serve` prints it")
    host = LOOPBACK if server.address in ALL_INTERFACES else server.address
    return _endpoint(
        "metrics", host_and_port(host, server.port), "/healthz", "windowpane serve", tls=server.tls is not None
    )


def _endpoint(subject: str, address: str, path: str, start: str, *, tls: bool = False) -> Finding:
    """Check whether Windowpane, another program, or nothing responds at *address*."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=0.5).close()
    except OSError:
        return Finding("note", subject, f"nothing on port {port}; start it with `{start}`")
    if tls:
        return Finding("ok", subject, f"port {port} is in use; it was not checked further because of TLS")
    status = http_status(f"http://{address}{path}", timeout_seconds=2)
    if status == HTTPStatus.OK and reported_health(f"http://{address}{path}", timeout_seconds=2) == "degraded":
        return Finding("problem", subject, f"port {port}: the store takes no events; see http://{address}{path}")
    if status == HTTPStatus.OK:
        return Finding("ok", subject, f"responds on port {port}")
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        return Finding("problem", subject, f"port {port} reports a failure; see http://{address}{path}")
    response = "no HTTP" if status is None else f"HTTP status {status}"
    return Finding("problem", subject, f"port {port} is in use by another program ({path}: {response})")


def _audit_key(config: Config) -> Finding:
    """Check whether the configuration has a valid audit key."""
    try:
        if given := os.environ.get(KEY_VARIABLE):
            checked_key(given.encode(), KEY_VARIABLE)
        keys_in(config.store.audit_old_key_files, "store.audit_old_key_files")
        if not (key_in(config.store.audit_key_file, "store.audit_key_file") or given):
            return Finding("note", "audit key", "not set: chains detect accidents, not tampering")
    except WindowpaneError as error:
        return Finding("problem", "audit key", str(error))
    return Finding("ok", "audit key", "set: new chains detect tampering")


def _recordings() -> Finding:
    folders = default_folders()
    if not folders:
        return Finding(
            "note", "recordings", "none in the default folders; `windowpane import PATH` reads any folder"
        )
    return Finding("ok", "recordings", ", ".join(map(str, folders)) + "; read them: windowpane import")


def _hooks() -> Iterator[Finding]:
    """Report an import that failed, and hooks that import modules of the project that Claude Code opens."""
    if reason := failure():
        yield Finding("problem", "hooks", f"the last import by a hook failed: {reason}")
    usual, project = claude_folder() / "settings.json", Path.cwd() / ".claude"
    for path in dict.fromkeys((usual, project / "settings.json", project / "settings.local.json")):
        with suppress(click.ClickException):  # Claude Code reports settings that it cannot read
            if imports_of_projects(read_settings(path)):
                command = "windowpane hook install --write"
                command += "" if path == usual else f" --settings {shlex.quote(str(path))}"
                detail = f"{path}: its hooks run code of any project that is opened; run: {command}"
                yield Finding("problem", "hooks", detail)


def other_distributions(path: Iterable[str] | None = None) -> Iterator[str]:
    """Yield name and version of each installed distribution but ours that has a module `windowpane`.

    *path* holds the folders to search, by default `sys.path`.
    """
    seen = set()
    for distribution in distributions(path=list(sys.path if path is None else path)):
        name = _field(distribution, "Name")
        if name not in seen and not _is_ours(distribution, name) and _has_our_module(distribution, name):
            seen.add(name)
            yield f"distribution {name} {distribution.version}"


def other_modules(path: Iterable[str] | None = None) -> Iterator[Path]:
    """Yield the modules `windowpane` in the folders of *path* that are not this package.

    By default *path* is `sys.path` and the current folder, from which `python -c` and `python -m` import first.
    """
    for folder in dict.fromkeys([*sys.path, str(Path.cwd())] if path is None else path):
        spec = PathFinder.find_spec(PACKAGE, [folder])
        if spec is not None and spec.origin is not None and Path(spec.origin).resolve() != HERE:
            yield Path(spec.origin)


def other_commands(search_path: str | None = None) -> Iterator[Path]:
    """Yield the programs `windowpane` in PATH, up to the first that runs this package.

    A script of another virtual environment with this package runs it too.
    """
    folders = os.get_exec_path() if search_path is None else search_path.split(os.pathsep)
    for folder in dict.fromkeys(folders):
        for name in _COMMANDS:
            script = Path(folder) / name
            if script.is_file() and os.access(script, os.X_OK):
                if _runs_this_package(script):
                    return
                yield script


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _field(distribution: Distribution, name: str) -> str:
    metadata = distribution.metadata
    return metadata[name] if name in metadata else ""  # noqa: SIM401  # typed without `get` before Python 3.12


def _is_ours(distribution: Distribution, name: str) -> bool:
    return _normalized(name) == DISTRIBUTION or _field(distribution, "Summary") == SUMMARY


def _has_our_module(distribution: Distribution, name: str) -> bool:
    if _normalized(name) == PACKAGE or PACKAGE in (distribution.read_text("top_level.txt") or "").split():
        return True
    listed = (distribution.read_text(file) or "" for file in ("RECORD", "installed-files.txt", "SOURCES.txt"))
    if not any(PACKAGE in text for text in listed):
        return False  # to take apart what every distribution lists takes half a second
    return any(file.parts[0] in {PACKAGE, f"{PACKAGE}.py"} for file in distribution.files or ())


def _runs_this_package(script: Path) -> bool:
    """Return whether *script* names our entry point; a Windows launcher holds it at its end."""
    try:
        with script.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _SCRIPT_BYTES))
            return ENTRY_POINT.encode() in file.read()
    except OSError:
        return True  # unknown, so not reported
