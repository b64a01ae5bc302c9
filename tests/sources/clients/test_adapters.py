"""Adapters to frameworks: small, and without an import of the framework before it is used."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import windowpane

PACKAGE = Path(windowpane.__file__).parent
ADAPTERS = sorted(
    {*(PACKAGE / "agents" / "frameworks").glob("*.py"), *(PACKAGE / "sources" / "clients").glob("*.py")}
    - {PACKAGE / folder for folder in ("agents/frameworks/conversations.py",)}
    - {PACKAGE / "sources" / "clients" / name for name in ("bodies.py", "recording.py")}
)
"""All but the modules on which they are built."""
FRAMEWORKS = {
    "agents", "anthropic", "boto3", "claude_agent_sdk", "crewai", "google", "langchain", "langchain_core",
    "litellm", "openai", "pydantic_ai", "strands",
}  # fmt: skip


@pytest.mark.parametrize("path", ADAPTERS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_an_adapter_imports_its_framework_when_it_is_used(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    imported = {
        name.split(".")[0]
        for statement in ast.parse(source).body
        if isinstance(statement, ast.Import | ast.ImportFrom)
        for name in (
            [statement.module or ""]
            if isinstance(statement, ast.ImportFrom)
            else [alias.name for alias in statement.names]
        )
    }

    assert not imported & FRAMEWORKS
