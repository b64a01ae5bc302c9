"""Commands that start in the folder of a project run and read nothing that the project contains."""

from __future__ import annotations

import ast
import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

import windowpane
import windowpane_dashboard
from windowpane.cli import main
from windowpane.cli.dashboard_process import dashboard_process
from windowpane.cli.hook import HookCommands
from windowpane.outputs.http.service_discovery import http_status
from windowpane.sources.hooks.transcript import start_import
from windowpane_dashboard.replay.jobs import start_simulation
from windowpane_dashboard.replay.worker import SimulationRequest

SCRIPT = Path(sys.executable).with_name("windowpane")
OURS = ("windowpane", "windowpane_dashboard", "sitecustomize", "usercustomize")
LIBRARIES = (
    "ahocorasick", "apprise", "click", "httpx2", "msgspec", "numpy", "opentelemetry", "pandas",
    "platformdirs", "plotly", "prometheus_client", "psycopg", "pyarrow", "pydantic", "rich", "starlette",
    "streamlit", "tiktoken", "toktok", "uvicorn", "yaml",
)  # fmt: skip
RECORDED = ("0a1b2c3d-0000-4000-8000-000000000001", "0a1b2c3d-0000-4000-8000-000000000002")

Ran = Callable[[], list[str]]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user without settings; `import --live` and the demo find nothing of this machine."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    for name in ("CLAUDE_CONFIG_DIR", "PYTHONPATH", "PYTHONSAFEPATH", "XDG_DATA_HOME", "WINDOWPANE_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ran:
    """Open a hostile project as current folder; the result returns the names of its modules that ran."""
    folder, marker = tmp_path / "project", tmp_path / "ran"
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir(parents=True)
    code = "with open({!r}, 'a') as file: file.write({!r} + '\\n')\n"
    for name in (*sys.stdlib_module_names, *OURS, *LIBRARIES):
        package = folder / name
        package.mkdir()
        (package / "__init__.py").write_text(code.format(str(marker), name))
    (elsewhere / "sitecustomize.py").write_text(code.format(str(marker), "sitecustomize of a variable"))
    (folder / ".env").write_text(f"PYTHONPATH={elsewhere}\n")
    (folder / ".streamlit").mkdir()
    (folder / ".streamlit" / "config.toml").write_text('[server]\nbaseUrlPath = "chosen/by/the/project"\n')
    (folder / ".streamlit" / "secrets.toml").write_text(f'PYTHONPATH = "{elsewhere}"\nis this = TOML?\n')
    monkeypatch.chdir(folder)
    return lambda: marker.read_text().splitlines() if marker.exists() else []


@pytest.fixture
def recordings(tmp_path: Path) -> list[Path]:
    """Two transcripts."""
    paths = []
    for session in RECORDED:
        rows = []
        for number in range(4):
            shared = {"sessionId": session, "timestamp": f"2026-01-01T10:00:{number:02}Z"}
            usage = {"input_tokens": 1_000 * (number + 1), "output_tokens": 10}
            reply = {"role": "assistant", "id": f"m{number}", "model": "claude-of-tests", "usage": usage,
                     "content": [{"type": "text", "text": f"Reply {number}"}]}  # fmt: skip
            rows.append(
                {"type": "user", "uuid": f"u{number}", "message": {"role": "user", "content": "Go"}} | shared
            )
            rows.append({"type": "assistant", "uuid": f"a{number}", "message": reply} | shared)
        path = tmp_path / "recordings" / f"{session}.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        paths.append(path)
    return paths


@pytest.fixture
def store(tmp_path: Path, recordings: list[Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "windowpane.db"
    monkeypatch.setenv("WINDOWPANE_STORE", str(path))
    result = CliRunner().invoke(main, ["import", *map(str, recordings)])
    assert result.exit_code == 0, result.output
    return path


def test_the_project_is_hostile(ran: Ran) -> None:
    subprocess.run([sys.executable, "-c", "import json"], check=True, timeout=60)

    assert "json" in ran()


@pytest.fixture(params=["beside a script", "alone"])
def interpreter(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The interpreter of this installation, with and without a console script in its folder."""
    if request.param == "alone":
        alone = tmp_path / "bin" / "python3.11"
        alone.parent.mkdir()
        alone.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
        alone.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(alone))
    return Path(sys.executable)


@pytest.mark.parametrize("name", ["status", "import_"])
def test_hooks_run_nothing_of_the_project(
    name: str, interpreter: Path, ran: Ran, recordings: list[Path], store: Path
) -> None:
    command = getattr(HookCommands.of(store), name)
    document = {"session_id": RECORDED[0], "transcript_path": str(recordings[0])}
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        check=False,
        input=json.dumps(document),
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert str(interpreter.parent) in command
    assert ran() == []
    assert (done.returncode, done.stderr) == (0, "")
    assert ("1k/turn" in done.stdout) == (name == "status"), done.stdout


UNSAFE = "/usr/bin/python3 -m windowpane hook {}"


@pytest.mark.parametrize(
    ("where", "part"),
    [("home/.claude/settings.json", "statusLine"), ("project/.claude/settings.local.json", "hooks")],
)
def test_doctor_names_hooks_that_run_code_of_projects_and_install_repairs_them(
    where: str, part: str, ran: Ran, tmp_path: Path
) -> None:
    path = tmp_path / where
    path.parent.mkdir(parents=True)
    line = {"type": "command", "command": UNSAFE.format("status")}
    entry = {"hooks": [{"type": "command", "command": UNSAFE.format("import")}]}
    settings = {"statusLine": line} if part == "statusLine" else {"hooks": {"SessionStart": [entry]}}
    path.write_text(json.dumps(settings))

    def problems() -> list[str]:
        output = CliRunner().invoke(main, ["doctor", "--json"]).output
        return [row["detail"] for row in json.loads(output) if row["subject"] == "hooks"]

    (problem,) = problems()
    assert f"{path}: " in problem
    command = problem.partition("run: ")[2]
    assert command.startswith("windowpane hook install --write")
    assert CliRunner().invoke(main, shlex.split(command)[1:]).exit_code == 0
    assert UNSAFE.partition(" hook")[0] not in path.read_text()
    assert problems() == []


@pytest.mark.parametrize("suffix", ["", "3", "3.11"])
def test_hooks_name_the_script_beside_any_interpreter(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "windowpane").touch()
    monkeypatch.setattr(sys, "executable", str(tmp_path / f"python{suffix}"))

    assert HookCommands.of().status == f"{tmp_path / 'windowpane'} hook status"


def test_the_import_of_a_hook_runs_nothing_of_the_project(ran: Ran, recordings: list[Path], store: Path) -> None:
    assert start_import(str(recordings[0]), str(store)).wait(60) == 0
    assert ran() == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["import", "--live", "--", "{recording}"],
        ["replay", *RECORDED, "--policy", "fifo", "--window", "8k", "--workers", "2"],
        ["run", "--", "true"],
        ["doctor"],
        pytest.param(["sessions"], marks=pytest.mark.matrix),
    ],
    ids=lambda arguments: arguments[0],
)
def test_commands_run_nothing_of_the_project(
    arguments: list[str], ran: Ran, recordings: list[Path], store: Path
) -> None:
    given = [argument.format(recording=recordings[0]) for argument in arguments]
    done = subprocess.run([SCRIPT, *given], check=False, capture_output=True, text=True, timeout=120)

    assert ran() == []
    assert done.returncode == (1 if given == ["doctor"] else 0), done.stderr


def test_the_dashboard_of_the_demo_reads_nothing_of_the_project(
    ran: Ran, store: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Neither modules nor Streamlit's settings, whose secrets would become variables of its processes."""
    with dashboard_process(store, port=0) as dashboard:
        url = dashboard.wait()
        assert url.startswith("http://"), url
        assert http_status(f"{url}/_stcore/health", timeout_seconds=5) == 200

    assert ran() == []
    assert "secrets" not in capfd.readouterr().err


def test_a_simulation_runs_nothing_of_the_project(ran: Ran, store: Path) -> None:
    job = start_simulation(SimulationRequest(str(store), RECORDED, ("fifo",), (), ("8k",)))
    job.wait(120)

    assert ran() == []
    assert job.error == ""


def test_every_interpreter_that_is_started_ignores_the_current_folder() -> None:
    sources = [
        path
        for package in (windowpane, windowpane_dashboard)
        for path in Path(package.__file__).parent.rglob("*.py")
    ]
    commands = [
        (path, [ast.unparse(part) for part in node.elts])
        for path in sources
        if "sys.executable" in (text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.List | ast.Tuple) and "sys.executable" in map(ast.unparse, node.elts)
    ]

    assert len(commands) >= 4
    for path, parts in commands:
        assert parts[:2] == ["sys.executable", "'-P'"], f"{path}: {parts}"
