"""Programs that do not read the usual variables: what `windowpane run` gives them besides."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from tests.providers.loopback import loopback_provider

from windowpane.sources.proxy.programs import CODEX_API, CODEX_CHATGPT, ProgramSettings, settings_of
from windowpane.store.embedded import SqliteStore

CODEX = """#!{python}
import json, re, sys, urllib.request
(_, option, setting, *rest) = sys.argv
assert option == "-c" and rest == ["exec", "Hello."], sys.argv
url = re.fullmatch('openai_base_url="(.*)"', setting)[1] + "/responses"
call = {{"model": "gpt-5", "input": [{{"role": "user", "content": rest[1]}}], "stream": True}}
headers = {{"User-Agent": "codex_exec/0.169.0", "Content-Type": "application/json"}}
request = urllib.request.Request(url, json.dumps(call).encode(), headers)
assert b"response.completed" in urllib.request.urlopen(request).read()
"""


@pytest.mark.parametrize(
    ("config", "login", "expected"),
    [
        (None, None, CODEX_API),
        ('openai_base_url = "http://lan:1/v1"', {"auth_mode": "chatgpt"}, "http://lan:1/v1"),
        ("openai_base_url = ", {"auth_mode": "apikey", "tokens": {}}, CODEX_API),
        ('model = "gpt-5"', {"auth_mode": "chatgpt", "OPENAI_API_KEY": None}, CODEX_CHATGPT),
        (None, {"OPENAI_API_KEY": None, "tokens": {"access_token": "t"}}, CODEX_CHATGPT),
        (None, {"OPENAI_API_KEY": "k", "tokens": {"access_token": "t"}}, CODEX_API),
        (None, ["unexpected"], CODEX_API),
        (None, {"auth_mode": "personalAccessToken"}, CODEX_CHATGPT),
        ('cli_auth_credentials_store = "keyring"', None, CODEX_CHATGPT),
        ('cli_auth_credentials_store = "auto"\nforced_login_method = "api"', None, CODEX_API),
        ('cli_auth_credentials_store = "auto"', {"auth_mode": "apikey"}, CODEX_API),
    ],
)
def test_codex_keeps_its_destination(config: str | None, login: object, expected: str, tmp_path: Path) -> None:
    if config is not None:
        (tmp_path / "config.toml").write_text(config)
    if login is not None:
        (tmp_path / "auth.json").write_text(json.dumps(login))
    settings = settings_of("/usr/bin/codex", {"CODEX_HOME": str(tmp_path)})

    assert settings.upstreams == (f"codex={expected}",)
    assert settings.command(["codex", "exec"], "http://127.0.0.1:9") == [
        "codex", "-c", 'openai_base_url="http://127.0.0.1:9/codex"', "exec",
    ]  # fmt: skip


def test_a_key_of_the_environment_comes_before_a_login(tmp_path: Path) -> None:
    (tmp_path / "auth.json").write_text(json.dumps({"auth_mode": "chatgpt"}))
    settings = settings_of("codex", {"CODEX_HOME": str(tmp_path), "CODEX_API_KEY": "k"})

    assert settings.upstreams == (f"codex={CODEX_API}",)


def test_gemini_cli_uses_its_key() -> None:
    settings = settings_of("gemini", {"GEMINI_API_KEY": "k"})
    defaults = json.loads(Path(settings.environment["GEMINI_CLI_SYSTEM_DEFAULTS_PATH"]).read_bytes())

    assert defaults["security"]["auth"]["selectedType"] == "gemini-api-key"
    assert settings_of("gemini", {}) == ProgramSettings()
    assert settings_of("gemini", {"GEMINI_API_KEY": "k", "GOOGLE_GENAI_USE_GCA": "true"}) == ProgramSettings()


def test_aider_has_the_variable_of_its_library() -> None:
    settings = settings_of("aider", {})

    assert settings.variables("http://127.0.0.1:9") == {"GEMINI_API_BASE": "http://127.0.0.1:9/gemini/v1beta"}
    assert settings.agent == "aider"  # its calls are those of LiteLLM's client
    assert settings_of("claude", {}) == ProgramSettings()


def test_run_reports_that_no_call_came(tmp_path: Path) -> None:
    command = ["windowpane", "run", "--store", str(tmp_path / "windowpane.db"), "--", sys.executable, "-c", ""]
    done = subprocess.run(
        [sys.executable, "-m", *command], capture_output=True, text=True, check=False, timeout=60
    )

    assert (done.returncode, done.stdout) == (0, "")
    assert "came through the proxy: nothing was recorded" in done.stderr


def test_run_observes_the_calls_of_codex(tmp_path: Path) -> None:
    program = tmp_path / "codex"
    program.write_text(CODEX.format(python=sys.executable))
    program.chmod(0o755)
    store = tmp_path / "windowpane.db"
    with loopback_provider() as provider:
        (tmp_path / "config.toml").write_text(f'openai_base_url = "{provider.url}/v1"')
        command = ["windowpane", "run", "--store", str(store), "--", str(program), "exec", "Hello."]
        environment = {**os.environ, "CODEX_HOME": str(tmp_path)}
        done = subprocess.run(
            [sys.executable, "-m", *command],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    assert done.returncode == 0, done.stderr
    with closing(SqliteStore(store)) as stored:
        (session,) = stored.sessions()
    assert (session.agent, session.turns) == ("codex", 1)
