"""The page about security names tests that exist; licences are allowed; the list of libraries is written."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
sys.path.insert(0, str(ROOT / "deploy"))
import check_licences  # noqa: E402  # a script


def test_every_line_of_the_threat_model_names_tests_that_exist() -> None:
    section = PAGE.split("## Who can do what")[1].split("## What is installed")[0]
    rows = [row for row in re.findall(r"^\|.*\|$", section, flags=re.MULTILINE) if "---" not in row]
    lines = [row for row in rows if not row.endswith("| tests |")]
    named = set(re.findall(r"`(test_\w+)`", PAGE))
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))

    assert [row for row in lines if "`test_" not in row] == []
    assert len(lines) > 15
    assert named <= set(re.findall(r"def (test_\w+)", sources))


def test_the_licences_of_all_libraries_are_allowed() -> None:
    assert check_licences.problems() == []


@pytest.mark.parametrize(
    ("expression", "is_allowed"),
    [
        ("MIT", True), ("MIT OR GPL-3.0-only", True), ("(Apache-2.0 OR GPL-2.0-only) AND MIT", True),
        ("(MIT OR Apache-2.0) AND GPL-3.0-only", False), ("See the file", False),
        ("Apache-2.0 AND MIT", True), ("GPL-3.0-only", False), ("", False), ("AGPL-3.0-only AND MIT", False),
    ],
)  # fmt: skip
def test_an_expression_is_allowed_if_it_can_be_met(expression: str, is_allowed: bool) -> None:
    assert check_licences.is_allowed(expression) is is_allowed


def test_the_list_of_libraries_is_the_same_each_time(tmp_path: Path) -> None:
    texts = []
    for name in ("one.json", "other.json"):
        command = [
            sys.executable,
            "deploy/write_sbom.py",
            "--environment",
            sys.prefix,
            "--output",
            tmp_path / name,
        ]
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
        texts.append((tmp_path / name).read_text(encoding="utf-8"))

    document = json.loads(texts[0])
    names = {component["name"] for component in document["components"]}
    assert texts[0] == texts[1]
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    assert {"windowpane-observability", "click", "tiktoken"} <= names
