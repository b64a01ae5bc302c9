"""The types of the public face: a user's code passes strict type checkers without casts."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
API = "tests/typing/api.py"
PREAMBLE = """\
from __future__ import annotations

from openai.types.chat import ChatCompletionMessageFunctionToolCall


def run_tool(call: ChatCompletionMessageFunctionToolCall) -> str:
    return call.function.arguments


"""


@pytest.fixture
def snippet(tmp_path: Path) -> str:
    """A file with the managed loop of docs/engine.md; it lacks only the function that runs a tool."""
    blocks = re.findall(
        r"```python\n(.*?)```", (ROOT / "docs/engine.md").read_text(encoding="utf-8"), flags=re.DOTALL
    )
    (loop,) = [block for block in blocks if "window.on_turn_end(reply)" in block and "import openai" in block]
    assert "on_overflow" in loop
    file = tmp_path / "snippet.py"
    file.write_text(PREAMBLE + loop, encoding="utf-8")
    return str(file)


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False)


def test_a_user_s_code_passes_mypy(snippet: str) -> None:
    result = run("mypy", "--strict", API, snippet)

    assert result.returncode == 0, result.stdout


def test_a_user_s_code_passes_pyright(snippet: str) -> None:
    pytest.importorskip("basedpyright")
    result = run("basedpyright", "--level", "error", "--pythonpath", sys.executable, API, snippet)

    assert result.returncode == 0, result.stdout
