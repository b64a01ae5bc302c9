"""Real OpenTelemetry instrumentations that send to `windowpane serve --otlp`: windows as by `observe`."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.providers.agent_runs import QUESTION, SYSTEM, report, script, send_bare
from tests.providers.environments import INSTRUMENTATIONS, ROOT
from tests.providers.instrumented_runs import RUNS
from tests.providers.loopback import LoopbackProvider, Request, loopback_provider
from tests.providers.test_frameworks import RUN_SECONDS, installed, variables
from tests.providers.windows import windows_of
from tests.sampling import EVERYTHING

import windowpane
from windowpane.models.tokens import counter_for
from windowpane.store.embedded import SqliteStore

VOCABULARY_SECONDS = 3.0
pytestmark = [
    pytest.mark.timeout(900),  # the first run installs the instrumentations
    pytest.mark.skipif(not EVERYTHING, reason="a large environment: make test-all"),
]


@contextmanager
def receiver(folder: Path) -> Iterator[str]:
    """Run `windowpane serve --otlp` until the block ends; yields its address."""
    (folder / "config.yml").write_text("otlp: {receive_wait_seconds: 0.5}")
    command = [
        sys.executable, "-m", "windowpane", "serve", "--otlp", "--port", "0", "--otlp-port", "0",
        "--store", str(folder / "received.db"),
    ]  # fmt: skip
    environment = variables(folder) | {"WINDOWPANE_CONFIG": str(folder / "config.yml")}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as serving:
        assert serving.stdout is not None
        address = re.search(r"http://[\d.:]+", next(line for line in serving.stdout if "OTLP" in line))
        assert address is not None
        try:
            yield address[0]
        finally:
            serving.terminate()
            serving.wait(60)


def run(name: str, folder: Path) -> tuple[SqliteStore, SqliteStore]:
    """Return the store of the receiver, and that of the observed clients."""
    with receiver(folder) as address:
        module = ["-m", "tests.providers.instrumented_runs", name, address, folder / "observed.db"]
        done = subprocess.run(
            [installed(INSTRUMENTATIONS), "-W", "ignore", *module],
            cwd=ROOT, env=variables(folder) | {"OTEL_SDK_DISABLED": "false"}, capture_output=True, text=True,
            timeout=RUN_SECONDS, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    return SqliteStore(folder / "received.db"), SqliteStore(folder / "observed.db")


TOOLS_ARE_DIFFERENT = ("openai_v2", "google_genai")
"""Instrumentations that report no definitions of tools, or in another form."""
DEPENDS_ON_TOOLS = ("tool_definition", "unattributed")


def comparable(rows: list[tuple[Any, ...]], *, has_tools: bool) -> list[tuple[Any, ...]]:
    """Return *rows* without costs, with the content of a call in one order.

    The price is that of the model that a reply names, which the scripted provider makes up.
    """
    if not has_tools:
        rows = [row for row in rows if row[1] != "before" and row[2] not in DEPENDS_ON_TOOLS]
    compared: list[tuple[Any, ...]] = []
    added: list[tuple[Any, ...]] = []
    for row in rows:
        if row[1] == "added":
            added.append(row)
            continue
        compared += [*sorted(added, key=str), row[:3]]
        added = []
    return compared


@pytest.mark.parametrize("name", RUNS)
def test_the_windows_equal_those_of_an_observed_client(name: str, tmp_path: Path) -> None:
    received, observed = run(name, tmp_path)
    first, second = sorted(received.sessions(), key=lambda row: row.started_at or 0)

    assert (first.turns, second.turns) == (1, 4)
    has_tools = name not in TOOLS_ARE_DIFFERENT
    expected = windows_of(observed, observed.sessions())
    assert comparable(windows_of(received, [second]), has_tools=has_tools) == comparable(
        expected, has_tools=has_tools
    )


def test_the_windows_of_the_vercel_ai_sdk(tmp_path: Path, require_server: Callable[[str], Path]) -> None:
    """A program in another language: its windows are those of an observed client, token for token.

    The first of two conversations is there for the vocabulary, which is loaded while it is counted.
    """
    node, npm = require_server("node"), require_server("npm")
    program = tmp_path / "program"
    shutil.copytree(ROOT / "tests/providers/vercel_ai", program)
    installed = subprocess.run(
        [npm, "install", "--silent"], cwd=program, capture_output=True, text=True, check=False
    )
    if installed.returncode != 0:
        pytest.skip(f"the packages cannot be installed: {installed.stderr[-300:]}")
    with loopback_provider() as provider, receiver(tmp_path) as address:
        for session_id in ("first", "vercel"):
            provider.script, provider.requests = script(), []
            arguments = [provider.url, address, SYSTEM, QUESTION, report("CITY"), session_id]
            done = subprocess.run(
                [node, "run.mjs", *arguments],
                cwd=program,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            assert done.returncode == 0, done.stderr[-2000:]
            time.sleep(VOCABULARY_SECONDS)
        observed = observe_again(list(provider.requests), provider, tmp_path / "observed.db")
    received = SqliteStore(tmp_path / "received.db")
    (row,) = (row for row in received.sessions() if row.session_id == "otlp:vercel")
    rows = windows_of(received, [row])

    assert row.turns == 2
    assert [one[2] for one in rows if one[1] == "added" and one[2] != "unattributed"] == [
        "tool_definition", "system_prompt", "user_message", "tool_call", "tool_call", "tool_result",
        "tool_result", "assistant_response",
    ]  # fmt: skip
    assert comparable(rows, has_tools=False) == comparable(
        windows_of(observed, observed.sessions()), has_tools=False
    )


def observe_again(requests: Sequence[Request], provider: LoopbackProvider, path: Path) -> SqliteStore:
    """Return the store of an observed client that sends the same requests."""
    provider.script = script()
    windowpane.start(port=0, store=path, notify=[])
    counter_for("gpt-4o", wait=True)
    with windowpane.session(session_id="observed"):
        for request in requests:
            send_bare(request, provider)
    windowpane.stop()
    return SqliteStore(path)
