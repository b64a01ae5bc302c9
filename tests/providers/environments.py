"""Virtualenvs in which frameworks are installed, since they pin conflicting releases of the clients.

They are made on demand by pip, in one folder under the user's cache, and kept until the requirements change.
Where the package index cannot be reached the tests are skipped with the reason, or fail in CI.

Usage: python -m tests.providers.environments [all]

It makes the virtualenv of the tests of every run, or of all.
"""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
import tomllib
import venv
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CLIENTS = (
    "anthropic", "boto3", "google-genai", "langchain", "langchain-anthropic", "langchain-google-genai",
    "langchain-openai", "openai", "openai-agents", "pydantic-ai-slim[anthropic,bedrock,google,openai]",
)  # fmt: skip
"""Frameworks whose newest releases agree on the clients."""
LITELLM = ("litellm", "mcp", "openai", "smolagents")  # LiteLLM needs mcp where a call has tools
CHDB = ("chdb", "lz4")
"""ClickHouse's engine inside a process, half a gigabyte."""
LIGHT = (CLIENTS, LITELLM, CHDB)
"""The virtualenvs of every run of the tests."""
AGNO = ("agno", "anthropic", "openai")
AUTOGEN = ("autogen-agentchat", "autogen-ext[openai]", "openai")
LLAMA_INDEX = (
    "anthropic<1",
    "llama-index-llms-anthropic",
    "llama-index-llms-openai",
)  # fails with 2.12 by itself
STRANDS = ("boto3", "openai", "strands-agents[anthropic,openai]")
AIDER = ("aider-chat",)
BEDROCK = ("boto3", "langchain-aws", "llama-index-llms-bedrock-converse", "openai", "smolagents")
CLAUDE_AGENT_SDK = ("anthropic", "claude-agent-sdk", "mcp")
CREWAI = ("crewai", "openai")
DSPY = ("anthropic", "dspy", "google-genai", "openai")
GOOGLE_ADK = ("google-adk", "litellm")
CLOUDS = ("anthropic[bedrock,vertex]", "openai")
INSTRUMENTATIONS = (
    "anthropic", "google-genai<3", "httpx", "openai<3", "openinference-instrumentation-anthropic",
    "openinference-instrumentation-openai", "opentelemetry-exporter-otlp-proto-http",
    "opentelemetry-instrumentation-anthropic", "opentelemetry-instrumentation-google-genai==1.3b0",
    "opentelemetry-instrumentation-openai", "opentelemetry-instrumentation-openai-v2==2.3b0", "wrapt<2",
)  # fmt: skip
"""Official ones (prereleases), OpenInference's and Traceloop's, with clients that they instrument."""
HEAVY = (
    AGNO, AIDER, AUTOGEN, BEDROCK, CLAUDE_AGENT_SDK, CLOUDS, CREWAI, DSPY, GOOGLE_ADK, INSTRUMENTATIONS,
    LLAMA_INDEX, STRANDS,
)  # fmt: skip
"""The virtualenvs of the long run."""
OLDEST_CLIENTS = ("anthropic==0.40.0", "boto3==1.35.0", "google-genai==1.5.0", "openai==1.66.0")
OLDEST_LANGCHAIN = (
    "langchain==1.0.0", "langchain-anthropic==1.0.0", "langchain-google-genai==4.0.0", "langchain-openai==1.0.0",
)  # fmt: skip
OLDEST_LITELLM = ("litellm==1.65.0",)
OLDEST_OPENAI_AGENTS = ("openai-agents==0.2.0",)
OLDEST_PYDANTIC_AI = (
    "anthropic==0.66.0", "google-genai==1.36.0", "openai==1.107.3", "opentelemetry-api<1.35",
    "pydantic-ai-slim[anthropic,bedrock,google,openai]==1.0.0",
)  # fmt: skip
OLDEST = (OLDEST_CLIENTS, OLDEST_LANGCHAIN, OLDEST_LITELLM, OLDEST_OPENAI_AGENTS, OLDEST_PYDANTIC_AI)
"""The oldest supported releases, in the long run too; docs/observing.md lists them."""


class NotInstalledError(Exception):
    """The package index cannot be reached, or has no release that fits."""


def environment(requirements: tuple[str, ...]) -> Path:
    """Return the interpreter of a virtualenv with *requirements* and what Windowpane needs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*requirements, *project["dependencies"]]
    key = sha256("\n".join([sys.version, *wanted]).encode()).hexdigest()[:16]
    folder = Path.home() / ".cache" / "windowpane-tests" / key
    python = folder / "bin" / "python"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{key}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the tests run in several processes
        if not (folder / "complete").exists():
            _install(folder, python, wanted)
    return python


def _install(folder: Path, python: Path, wanted: list[str]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, with_pip=True)
    pip = [python, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--quiet", "--no-compile"]
    for packages in (["--upgrade", "pip"], wanted):  # the resolver of old releases of pip takes minutes
        done = subprocess.run([*pip, *packages], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise NotInstalledError(f"the frameworks cannot be installed: {done.stderr.strip()[-400:]}")
    (folder / "complete").touch()


if __name__ == "__main__":
    for one in (*LIGHT, *HEAVY, *OLDEST) if "all" in sys.argv else LIGHT:
        print(environment(one))
