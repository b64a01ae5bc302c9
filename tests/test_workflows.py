"""The workflows and templates of the repository's host, checked as far as its own programs are not needed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

check_jsonschema = pytest.importorskip("check_jsonschema")

ROOT = Path(__file__).parents[1]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted(GITHUB.glob("workflows/*.yml"))
SCHEMAS = {
    "vendor.github-workflows": WORKFLOWS,
    "vendor.github-issue-forms": [path for path in GITHUB.glob("ISSUE_TEMPLATE/*.yml") if path.stem != "config"],
    "vendor.github-issue-config": [GITHUB / "ISSUE_TEMPLATE" / "config.yml"],
    "vendor.dependabot": [GITHUB / "dependabot.yml"],
}


@pytest.mark.parametrize("schema", SCHEMAS)
def test_the_files_follow_their_schema(schema: str) -> None:
    done = CliRunner().invoke(check_jsonschema.main, ["--builtin-schema", schema, *map(str, SCHEMAS[schema])])

    assert done.exit_code == 0, done.output


def test_zizmor_has_no_finding() -> None:
    """It reads for what an attacker could use: mutable actions, wide permissions, text put into scripts."""
    command = [str(Path(sys.executable).with_name("zizmor")), "--offline", "--no-progress", str(GITHUB)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_the_scripts_of_a_workflow_are_shell(workflow: Path) -> None:
    for job in yaml.safe_load(workflow.read_text(encoding="utf-8"))["jobs"].values():
        for step in job["steps"]:
            script = re.sub(r"\$\{\{.*?\}\}", "value", step.get("run", ""))
            done = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr


def test_a_pull_request_runs_what_a_contributor_runs() -> None:
    jobs = yaml.safe_load((GITHUB / "workflows" / "test.yml").read_text(encoding="utf-8"))["jobs"]

    assert [step["run"] for step in jobs["test"]["steps"] if step.get("run", "").startswith("make")] == [
        "make test"
    ]


def test_no_workflow_has_a_stored_password() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in WORKFLOWS)

    assert re.findall(r"secrets\.\w+", text) == []
