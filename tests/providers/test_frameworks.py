"""`windowpane.observe` around what people hold: real frameworks, each against the scripted provider.

The same requests are sent again by a bare client of the provider; the windows of both are equal to the token.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from tests.providers.environments import (
    AGNO,
    AUTOGEN,
    BEDROCK,
    CLIENTS,
    CLOUDS,
    DSPY,
    LITELLM,
    LLAMA_INDEX,
    OLDEST_CLIENTS,
    OLDEST_LANGCHAIN,
    OLDEST_LITELLM,
    OLDEST_OPENAI_AGENTS,
    OLDEST_PYDANTIC_AI,
    ROOT,
    STRANDS,
    NotInstalledError,
    environment,
)
from tests.providers.windows import windows
from tests.sampling import EVERYTHING

from windowpane.store.embedded import SqliteStore

RUN_SECONDS = 200
LIGHT_RUNS = (
    (CLIENTS, "everything langchain google_genai bedrock pydantic_ai openai_agents azure documented"),
    (LITELLM, "litellm smolagents"),
)
"""Frameworks that run in one process each time, in this order: importing them takes longer than their agents."""
HEAVY_RUNS = (
    (AGNO, "agno"), (AUTOGEN, "autogen"), (BEDROCK, "bedrock_models"), (CLOUDS, "clouds"),
    (DSPY, "dspy"), (LLAMA_INDEX, "llama_index"), (STRANDS, "strands"),
)  # fmt: skip
OLDEST_RUNS = (
    (OLDEST_CLIENTS, "everything google_genai"),
    (OLDEST_LANGCHAIN, "langchain"),
    (OLDEST_LITELLM, "litellm"),
    (OLDEST_OPENAI_AGENTS, "openai_agents"),
    (OLDEST_PYDANTIC_AI, "pydantic_ai"),
)
pytestmark = pytest.mark.timeout(900)  # the first run installs the frameworks


@pytest.mark.parametrize(("requirements", "frameworks"), LIGHT_RUNS, ids=[names for _, names in LIGHT_RUNS])
def test_the_windows_equal_those_of_a_bare_client(
    requirements: tuple[str, ...], frameworks: str, tmp_path: Path
) -> None:
    compare(frameworks, installed(requirements), tmp_path)


@pytest.mark.skipif(not EVERYTHING, reason="a large framework: make test-all")
@pytest.mark.parametrize(("requirements", "frameworks"), HEAVY_RUNS, ids=[names for _, names in HEAVY_RUNS])
def test_the_windows_of_large_frameworks_equal_those_of_a_bare_client(
    requirements: tuple[str, ...], frameworks: str, tmp_path: Path
) -> None:
    compare(frameworks, installed(requirements), tmp_path)


@pytest.mark.skipif(not EVERYTHING, reason="old releases: make test-all")
@pytest.mark.parametrize(("requirements", "frameworks"), OLDEST_RUNS, ids=[names for _, names in OLDEST_RUNS])
def test_the_windows_of_the_oldest_releases_equal_those_of_a_bare_client(
    requirements: tuple[str, ...], frameworks: str, tmp_path: Path
) -> None:
    compare(frameworks, installed(requirements), tmp_path)


def installed(requirements: tuple[str, ...]) -> Path:
    """Return the interpreter of a virtualenv with the frameworks; skips, or fails in CI, without one."""
    try:
        return environment(requirements)
    except NotInstalledError as error:
        if os.environ.get("WINDOWPANE_REQUIRE_SERVERS"):
            raise
        pytest.skip(str(error))


def compare(frameworks: str, python: Path, folder: Path) -> None:
    """Run the agents of *frameworks* and compare each with the bare client."""
    path = folder / "windowpane.db"
    done = subprocess.run(
        [python, "-W", "ignore", "-m", "tests.providers.agent_runs", path, *frameworks.split()],
        cwd=ROOT, env=variables(folder), capture_output=True, text=True, timeout=RUN_SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    outcome = json.loads(path.with_suffix(".json").read_text())
    assert outcome["failures"] == {}, done.stderr[-4000:]

    store = SqliteStore(path)
    for name, expected in outcome["scenarios"].items():
        row = store.session(name)
        assert (row is not None) == (expected["turns"] > 0), name
        if row is None:
            continue
        assert (row.turns, row.overflows) == (expected["turns"], expected["overflows"]), name
        if expected["compared"]:
            assert windows(store, name) == windows(store, f"{name}/bare"), name
    store.close()


def variables(home: Path) -> dict[str, str]:
    """Return the environment of an agent: nothing of this machine's configuration, and no network.

    Python may write the compiled frameworks: compiling them takes longer than all of the rest.
    """
    passed = {name: value for name, value in os.environ.items() if not name.startswith("WINDOWPANE_")}
    passed.pop("PYTHONDONTWRITEBYTECODE", None)
    return {
        **passed,
        "HOME": str(home),
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "OTEL_SDK_DISABLED": "true",
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "exporter")]),
    }
