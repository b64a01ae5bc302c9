"""Coding agents as they are published, run by `windowpane run` against the scripted provider."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from tests.providers.environments import AIDER, CLAUDE_AGENT_SDK
from tests.providers.formats import Reply
from tests.providers.loopback import loopback_provider
from tests.providers.npm_programs import NotInstalledError, npm_program
from tests.providers.test_frameworks import installed, variables
from tests.sampling import EVERYTHING

from windowpane.sources.proxy.programs import GEMINI_DEFAULTS
from windowpane.store.embedded import SqliteStore

pytestmark = [
    pytest.mark.timeout(900),  # the first run installs the programs
    pytest.mark.skipif(not EVERYTHING, reason="large programs: make test-all"),
]


def program(name: str) -> str:
    """Return the path of a program from npm, or skip with the reason."""
    try:
        return str(npm_program(name))
    except NotInstalledError as error:
        if os.environ.get("WINDOWPANE_REQUIRE_SERVERS"):
            raise
        pytest.skip(str(error))


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


def test_codex(tmp_path: Path) -> None:
    (tmp_path / ".codex").mkdir()
    with loopback_provider() as provider:
        provider.script = [Reply(text="Hello there.")] * 4
        (tmp_path / ".codex" / "config.toml").write_text(
            f'openai_base_url = "{provider.url}/v1"\nmodel = "gpt-5"'
        )
        command = [program("codex"), "exec", "--skip-git-repo-check", "Say hello."]

        assert run(command, {"CODEX_API_KEY": "k"}, tmp_path) == ("codex", "gpt-5", 1)


def test_gemini_cli(tmp_path: Path) -> None:
    if any(folder.stat().st_mode & 0o022 for folder in GEMINI_DEFAULTS.parents):
        pytest.skip("Gemini CLI reads no defaults from a folder that others can write to")
    with loopback_provider() as provider:
        provider.script = [Reply(text="Hello there.")] * 4
        environment = {
            "GOOGLE_GEMINI_BASE_URL": provider.url, "GEMINI_API_KEY": "k", "GEMINI_CLI_TRUST_WORKSPACE": "true",
        }  # fmt: skip
        command = [program("gemini"), "-m", "gemini-2.5-flash", "-p", "Say hello."]

        assert run(command, environment, tmp_path) == ("gemini-cli", "gemini-2.5-flash", 1)
