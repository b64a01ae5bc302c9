"""Install the wheel alone and with each extra by itself, on each Python that is here, and use what it is for.

Usage: python deploy/try_installs.py [--write] [PYTHON...]          (needs uv; PYTHON: 3.12, or a path)

Each installation is a new virtual environment from the wheel, as a user gets it: nothing of the checkout is on
its path. `--write` writes into docs/install.md what each extra brings and on which Pythons it worked.
"""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "install.md"
WAIT_SECONDS = 600.0
_TABLE = re.compile(r"(<!-- extras: [^>]*-->\n).*?(<!-- /extras -->)", re.DOTALL)
_ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")


@dataclass(frozen=True)
class Installed:
    """A virtual environment with the wheel, and a store of the demo's sessions."""

    environment: Path
    home: Path

    @property
    def store(self) -> Path:
        return self.home / "demo.db"

    def start(self, *arguments: object) -> subprocess.Popen[str]:
        """Start the command, with a new home folder."""
        return subprocess.Popen(
            [self.environment / "bin" / "windowpane", *map(str, arguments)],
            cwd=self.home,
            env={"HOME": str(self.home), "PATH": "/usr/bin:/bin", "NO_COLOR": "1", "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def prints(self, expected: str, *arguments: object, text: str = "") -> None:
        """Run the command to its end, which must print *expected*."""
        process = self.start(*arguments)
        output, _ = process.communicate(text, timeout=WAIT_SECONDS)
        command = " ".join(map(str, arguments))
        assert expected in output, f"windowpane {command}: no {expected!r} in …{output[-600:]}"

    def answers(self, path: str, expected: str, *arguments: object) -> None:
        """Start a server, whose *path* must answer with *expected*, and stop it."""
        process = self.start(*arguments)
        assert process.stdout is not None
        try:
            printed = ""
            for line in process.stdout:
                printed += line
                if address := _ADDRESS.search(line):
                    break
            else:
                raise AssertionError(printed)
            body = _get(f"{address.group()}{path}")
            assert expected in body, f"{path}: {body[:500]}"
        finally:
            process.terminate()
            process.communicate(timeout=WAIT_SECONDS)

    def imports(self, *modules: str) -> None:
        """Import modules, which need the extra."""
        code = "; ".join(f"import {module}" for module in modules)
        subprocess.run(
            [self.environment / "bin" / "python", "-P", "-c", code],
            cwd=self.home,
            check=True,
            timeout=WAIT_SECONDS,
        )


def free_port() -> int:
    """Return a port on which nothing listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _get(url: str) -> str:
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return str(answer.read().decode())
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)


def library(installed: Installed) -> None:
    """Import the demo's sessions, and read them."""
    installed.prints("sessions", "demo", "--once", "--store", installed.store)
    installed.prints("pi-managed-8k", "sessions", "--store", installed.store)
    installed.prints("The window at the last turn", "report", "pi-managed-8k", "--store", installed.store)
    installed.prints("intact", "audit", "verify", "--store", installed.store)


INITIALIZE = (
    '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",'
    '"capabilities":{},"clientInfo":{"name":"try","version":"1"}}}\n'
)
USES: dict[str, Callable[[Installed], None]] = {
    "bulk": lambda here: here.imports("toktok"),
    "clickhouse": lambda here: here.prints("CREATE TABLE", "clickhouse", "schema"),
    "dashboard": lambda here: here.answers(
        "/_stcore/health", "ok", "dashboard", "--port", free_port(), "--store", here.store
    ),
    "login": lambda here: here.imports("authlib.integrations.starlette_client", "itsdangerous", "httpx"),
    "mcp": lambda here: here.prints('"serverInfo"', "mcp", "--store", here.store, text=INITIALIZE),
    "notify": lambda here: here.prints("did not accept it", "alerts", "test", "ntfy://127.0.0.1:9/windowpane"),
    "otel": lambda here: here.imports("windowpane.outputs.otlp.metrics", "windowpane.outputs.otlp.logs"),
    "parquet": lambda here: here.prints(
        "events", "audit", "export", "--format", "parquet", "--output", "e.parquet", "--store", here.store
    ),
    "postgres": lambda here: here.prints(
        "127.0.0.1", "sessions", "--store", "postgresql://nobody@127.0.0.1:9/none"
    ),
    "proxy": lambda here: here.prints("ran", "run", "--store", here.store, "--", "echo", "ran"),
    "serve": lambda here: here.answers("/healthz", "ok", "serve", "--port", "0", "--store", here.store),
}
"""A use of each extra, without a network."""


def run(*command: object) -> str:
    """Run a command, whose errors are shown, and return what it printed."""
    return subprocess.run([*map(str, command)], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def tried(wheel: Path, extra: str, python: str, folder: Path) -> tuple[int, int]:
    """Return the bytes and packages of an installation that worked. Raises `AssertionError` where it does not."""
    environment = folder / "environment"
    run("uv", "venv", "--quiet", "--python", python, environment)
    name = f"{wheel}[{extra}]" if extra else wheel
    run("uv", "pip", "install", "--quiet", "--python", environment / "bin" / "python", name)
    packages = run(
        "uv", "pip", "list", "--quiet", "--format", "freeze", "--python", environment / "bin" / "python"
    )
    size = sum(
        path.lstat().st_size for path in environment.rglob("*") if path.suffix != ".pyc" and path.is_file()
    )
    installed = Installed(environment, folder)
    library(installed)
    if extra:
        USES[extra](installed)
    return size, len(packages.splitlines())


def main(arguments: list[str]) -> int:
    """Try every extra on every Python; 1 where one does not work."""
    pythons = [one for one in arguments if one != "--write"] or ["3.11", "3.12", "3.13", "3.14"]
    pythons = [
        one
        for one in pythons
        if not subprocess.run(["uv", "python", "find", "--quiet", one], check=False).returncode
    ]
    with (ROOT / "pyproject.toml").open("rb") as file:
        optional = tomllib.load(file)["project"]["optional-dependencies"]
    extras = ["", *(name for name in optional if name not in ("all", "dev"))]
    rows = ["| installed | MB | packages | worked on Python |", "| --- | ---: | ---: | --- |"]
    failed = False
    with tempfile.TemporaryDirectory() as temporary:
        run("uv", "build", "--quiet", "--wheel", "--out-dir", temporary)
        (wheel,) = Path(temporary).glob("*.whl")
        for extra in extras:
            worked, size, packages = [], 0, 0
            for python in pythons:
                with tempfile.TemporaryDirectory() as folder:
                    try:
                        size, packages = tried(wheel, extra, python, Path(folder))
                        worked.append(python)
                    except (AssertionError, subprocess.SubprocessError, OSError) as error:
                        failed = True
                        print(f"{extra or 'the library'} on {python}: {error}", file=sys.stderr)
            name = f"`[{extra}]`" if extra else "the library"
            rows.append(f"| {name} | {size / 1e6:.0f} | {packages} | {', '.join(worked) or 'none'} |")
            print(rows[-1], flush=True)
    if "--write" in arguments:
        text = PAGE.read_text(encoding="utf-8")
        page, count = _TABLE.subn(lambda match: f"{match[1]}\n{chr(10).join(rows)}\n\n{match[2]}", text)
        assert count == 1, f"{PAGE} has {count} places for the table, expected 1"
        PAGE.write_text(page, encoding="utf-8")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
