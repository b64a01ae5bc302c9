"""Projects of the same name: what `doctor` reports of them, and the files that come with the package."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from windowpane.cli import doctor
from windowpane.cli.shipped import GRAFANA

Run = Callable[..., Result]
ROOT = Path(__file__).parents[2]


def distribution(folder: Path, name: str, *, module: str = "windowpane", summary: str = "Panes of glass") -> None:
    """Install a project that consists of *module*."""
    info = folder / f"{name.replace('-', '_')}-3.1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: 3.1\nSummary: {summary}\n", encoding="utf-8"
    )
    (info / "RECORD").write_text(f"{module}/__init__.py,,\n{info.name}/METADATA,,\n", encoding="utf-8")
    (folder / module).mkdir(exist_ok=True)
    (folder / module / "__init__.py").write_text("", encoding="utf-8")


def program(folder: Path, text: str) -> Path:
    folder.mkdir()
    script = folder / "windowpane"
    script.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    script.chmod(0o755)
    return script


class TestOtherDistributions:
    def test_one_that_holds_the_module_is_named(self, tmp_path: Path) -> None:
        distribution(tmp_path, "windowpane")
        distribution(tmp_path, "glazing")
        distribution(tmp_path, "unrelated", module="unrelated")

        found = sorted(doctor.other_distributions([str(tmp_path)]))

        assert found == ["distribution glazing 3.1", "distribution windowpane 3.1"]

    def test_ours_is_not_foreign(self, tmp_path: Path) -> None:
        distribution(tmp_path, "windowpane-observability")
        distribution(tmp_path, "windowpane", summary=doctor.SUMMARY)

        assert list(doctor.other_distributions([str(tmp_path)])) == []

    def test_the_summary_is_the_packages(self) -> None:
        assert f'description = "{doctor.SUMMARY}"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")

    def test_the_entry_point_is_the_packages(self) -> None:
        assert f'windowpane = "{doctor.ENTRY_POINT}:main"' in (ROOT / "pyproject.toml").read_text(
            encoding="utf-8"
        )


def test_a_module_of_the_same_name_is_named(tmp_path: Path) -> None:
    (tmp_path / "windowpane.py").write_text("", encoding="utf-8")

    found = list(doctor.other_modules([*sys.path, str(tmp_path)]))

    assert found == [tmp_path / "windowpane.py"]


def test_a_foreign_command_earlier_in_the_path_is_named(tmp_path: Path) -> None:
    foreign = program(tmp_path / "a", "exec glass")
    ours = program(tmp_path / "b", f"from {doctor.ENTRY_POINT} import main")
    behind = program(tmp_path / "c", "exec glass")
    folders = (tmp_path, foreign.parent, ours.parent, behind.parent)

    assert list(doctor.other_commands(os.pathsep.join(map(str, folders)))) == [foreign]


def test_doctor_names_them(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    distribution(tmp_path / "site", "windowpane")
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.setenv("PATH", str(program(tmp_path / "bin", "exec glass").parent), prepend=os.pathsep)

    problems = [
        line for line in run("doctor", code=1).output.splitlines() if line.startswith("problem  windowpane ")
    ]

    assert len(problems) == 3
    assert "distribution windowpane 3.1" in problems[0]
    assert "install windowpane-observability again" in problems[0]
    assert str(tmp_path / "site" / "windowpane") in problems[1]
    assert str(tmp_path / "bin" / "windowpane") in problems[2]


class TestGrafanaExport:
    def test_it_writes_the_stack(self, run: Run, tmp_path: Path) -> None:
        run("grafana", "export", tmp_path / "out")

        for entry in GRAFANA:
            assert (tmp_path / "out" / entry).exists(), entry
        written = [path.relative_to(tmp_path / "out") for path in (tmp_path / "out").rglob("*") if path.is_file()]
        assert len([name for name in written if name.parts[0] == "dashboards"]) == 5
        for name in written:
            assert (tmp_path / "out" / name).read_bytes() == (ROOT / "grafana" / name).read_bytes()

    def test_a_changed_file_is_not_overwritten(self, run: Run, tmp_path: Path) -> None:
        run("grafana", "export", tmp_path)
        changed = tmp_path / "prometheus" / "prometheus.yml"
        changed.write_text("mine", encoding="utf-8")
        (tmp_path / "runbook.md").unlink()

        refused = run("grafana", "export", tmp_path, code=1)

        assert f"{changed} exists and differs" in refused.output
        assert not (tmp_path / "runbook.md").exists()
        run("grafana", "export", tmp_path, "--force")
        assert changed.read_text(encoding="utf-8") != "mine"

    def test_a_file_in_the_way_is_one_line(self, run: Run, tmp_path: Path) -> None:
        (tmp_path / "dashboards").write_text("", encoding="utf-8")

        assert f"cannot write {tmp_path / 'dashboards'}" in run("grafana", "export", tmp_path, code=1).output


def test_the_example_suite_runs_where_it_was_written(run: Run, tmp_path: Path) -> None:
    run("fidelity", "--write-example", tmp_path / "example")

    assert "passed" in run("fidelity", tmp_path / "example" / "suite.yaml").output
