"""Coding agents as they are published, run by `windowpane run` against the scripted provider."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import platformdirs
import pytest
from tests.providers.environments import AIDER, CLAUDE_AGENT_SDK
from tests.providers.formats import Reply
from tests.providers.loopback import loopback_provider
from tests.providers.test_frameworks import installed, variables

from windowpane.sources.proxy.programs import GEMINI_DEFAULTS
from windowpane.store.embedded import SqliteStore

PACKAGES = ("@openai/codex", "@google/gemini-cli")
pytestmark = [
    pytest.mark.timeout(900),  # the first run installs the programs
    pytest.mark.skipif(not os.environ.get("WINDOWPANE_TEST_ALL"), reason="large programs: make test-all"),
]


@pytest.fixture(scope="module")
def programs() -> Path:
    """Return the folder of Node's programs, which are installed once."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    key = hashlib.sha256(" ".join(PACKAGES).encode()).hexdigest()[:16]
    folder = platformdirs.user_cache_path("windowpane-tests") / f"npm-{key}"
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [npm, "install", "--silent", *PACKAGES], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"the programs cannot be installed: {done.stderr[-300:]}")
    return folder / "node_modules" / ".bin"


def run(command: list[str], environment: dict[str, str], folder: Path) -> tuple[str, str, int]:
    """Run a program with its calls through a proxy; return agent, model and turns of its session."""
    store = folder / "windowpane.db"
    done = subprocess.run(
        [sys.executable, "-m", "windowpane", "run", "--store", store, "--", *command],
        cwd=folder, env={**variables(folder), **environment}, stdin=subprocess.DEVNULL, capture_output=True,
        text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert "Hello there." in done.stdout
    with closing(SqliteStore(store)) as stored:
        (session,) = stored.sessions()
    return session.agent, session.model, session.turns


def test_claude_code(tmp_path: Path) -> None:
    package = next(installed(CLAUDE_AGENT_SDK).parents[1].glob("lib/python*/site-packages/claude_agent_sdk"))
    with loopback_provider() as provider:
        provider.script = [Reply(text="Hello there.")] * 4
        environment = {
            "ANTHROPIC_BASE_URL": provider.url, "ANTHROPIC_API_KEY": "k", "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }  # fmt: skip
        command = [str(package / "_bundled" / "claude"), "--model", "claude-sonnet-4-5", "-p", "Say hello."]

        assert run(command, environment, tmp_path) == ("claude-code", "claude-sonnet-4-5", 1)


def test_aider(tmp_path: Path) -> None:
    with loopback_provider() as provider:
        provider.script = [Reply(text="Hello there.")] * 4
        environment = {"OPENAI_API_BASE": f"{provider.url}/v1", "OPENAI_API_KEY": "k"}
        command = [
            str(installed(AIDER).with_name("aider")), "--model", "openai/gpt-4o", "--message", "Say hello.",
            "--yes-always", "--no-git", "--no-pretty", "--no-check-update", "--no-show-model-warnings",
            "--analytics-disable",
        ]  # fmt: skip

        assert run(command, environment, tmp_path) == ("aider", "gpt-4o", 1)


def test_codex(programs: Path, tmp_path: Path) -> None:
    (tmp_path / ".codex").mkdir()
    with loopback_provider() as provider:
        provider.script = [Reply(text="Hello there.")] * 4
        (tmp_path / ".codex" / "config.toml").write_text(
            f'openai_base_url = "{provider.url}/v1"\nmodel = "gpt-5"'
        )
        command = [str(programs / "codex"), "exec", "--skip-git-repo-check", "Say hello."]

        assert run(command, {"CODEX_API_KEY": "k"}, tmp_path) == ("codex", "gpt-5", 1)


def test_gemini_cli(programs: Path, tmp_path: Path) -> None:
    if any(folder.stat().st_mode & 0o022 for folder in GEMINI_DEFAULTS.parents):
        pytest.skip("Gemini CLI reads no defaults from a folder that others can write to")
    with loopback_provider() as provider:
        provider.script = [Reply(text="Hello there.")] * 4
        environment = {
            "GOOGLE_GEMINI_BASE_URL": provider.url, "GEMINI_API_KEY": "k", "GEMINI_CLI_TRUST_WORKSPACE": "true",
        }  # fmt: skip
        command = [str(programs / "gemini"), "-m", "gemini-2.5-flash", "-p", "Say hello."]

        assert run(command, environment, tmp_path) == ("gemini-cli", "gemini-2.5-flash", 1)
