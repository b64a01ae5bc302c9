"""Programs that do not read their provider's base URL from the usual environment variables."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from windowpane.sources.installed_agents.settings import codex_home, codex_settings

CODEX: Final = "codex"
CODEX_API: Final = "https://api.openai.com/v1"
CODEX_CHATGPT: Final = "https://chatgpt.com/backend-api/codex"
"""The destinations of Codex, with an API key and after a login with ChatGPT."""
IN_KEYRING: Final = ("keyring", "auto")
"""Values of Codex's `cli_auth_credentials_store` with which its login may be in no file."""


GEMINI_DEFAULTS: Final = Path(__file__).with_name("gemini_defaults.json")
"""Settings of Gemini CLI that choose its key."""


class ProgramSettings(NamedTuple):
    """The settings of one program besides the usual variables."""

    upstreams: tuple[str, ...] = ()
    """Further upstreams, as `NAME=URL`."""
    arguments: tuple[str, ...] = ()
    """Further arguments, before its own; `{proxy}` is replaced by the URL of the proxy."""
    environment: Mapping[str, str] = {}
    """Further variables, with the same; those that the user has set are not replaced."""
    agent: str | None = None
    """The name of its sessions, where its calls do not state the program."""

    def command(self, program: Sequence[str], proxy_url: str) -> list[str]:
        """Return the command line of *program* behind the proxy at *proxy_url*."""
        return [program[0], *(one.replace("{proxy}", proxy_url) for one in self.arguments), *program[1:]]

    def variables(self, proxy_url: str) -> dict[str, str]:
        """Return its environment variables behind the proxy at *proxy_url*."""
        return {name: value.replace("{proxy}", proxy_url) for name, value in self.environment.items()}


def settings_of(program: str, environment: Mapping[str, str]) -> ProgramSettings:
    """Return what the program with this name or path needs; nothing for most."""
    match Path(program).stem.lower():
        case "codex":  # reads its configuration, since 0.119 not OPENAI_BASE_URL
            option = 'openai_base_url="{proxy}/' + CODEX + '"'
            return ProgramSettings((f"{CODEX}={_codex_url(environment)}",), ("-c", option))
        case "aider":  # LiteLLM reads another variable for Gemini than Google's client, with the version in it
            return ProgramSettings(environment={"GEMINI_API_BASE": "{proxy}/gemini/v1beta"}, agent="aider")
        case "gemini" if _has_gemini_key(environment):
            return ProgramSettings(environment={"GEMINI_CLI_SYSTEM_DEFAULTS_PATH": str(GEMINI_DEFAULTS)})
        case _:
            return ProgramSettings()


def _has_gemini_key(environment: Mapping[str, str]) -> bool:
    """Return whether Gemini CLI uses a key unless its own settings choose otherwise.

    With a base URL and no choice of a login in its settings it takes the URL for a gateway, which it
    then refuses (0.61). The choice is given as a default, which every setting of the user replaces.
    """
    others = ("GOOGLE_GENAI_USE_GCA", "GOOGLE_GENAI_USE_VERTEXAI")
    return bool(environment.get("GEMINI_API_KEY")) and not any(environment.get(name) == "true" for name in others)


def _codex_url(environment: Mapping[str, str]) -> str:
    """Return where Codex would send its calls: its configuration decides, then the login."""
    config = codex_settings(environment)
    configured = config.get("openai_base_url")
    if isinstance(configured, str) and configured.strip():
        return configured.strip()
    if environment.get("CODEX_API_KEY"):
        return CODEX_API
    try:
        login: Any = json.loads((codex_home(environment) / "auth.json").read_bytes())
    except (OSError, ValueError):
        login = None
    is_chatgpt = _is_chatgpt(login) if isinstance(login, dict) else _is_in_keyring(config)
    return CODEX_CHATGPT if is_chatgpt else CODEX_API


def _is_chatgpt(login: Mapping[str, Any]) -> bool:
    """Return whether a login is one of ChatGPT: every mode but an API key has its destination."""
    mode = login.get("auth_mode")
    if isinstance(mode, str):
        return mode.lower() != "apikey"
    return bool(login.get("tokens")) and not login.get("OPENAI_API_KEY")


def _is_in_keyring(config: Mapping[str, Any]) -> bool:
    """Return whether Codex may have a login of ChatGPT where only it can read it."""
    stored, forced = config.get("cli_auth_credentials_store"), config.get("forced_login_method")
    return stored in IN_KEYRING and forced != "api"
