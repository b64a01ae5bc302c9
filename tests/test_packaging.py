"""The built packages, the modules they import, and the contents of the repository's files."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from tests.sampling import sampled

from windowpane.cli.shipped import FIDELITY_EXAMPLE, GRAFANA

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("exporter/windowpane", "dashboard/windowpane_dashboard")

DASHBOARD_LIBRARIES = ("streamlit", "plotly", "pandas")
BEHIND_AN_EXTRA = {
    "windowpane.outputs.mcp.server": "mcp",
    "windowpane.outputs.otlp.logs": "otel",
    "windowpane.outputs.otlp.metrics": "otel",
}
"""Modules that are only imported where their extra is installed."""
OPTIONAL_LIBRARIES = (
    *DASHBOARD_LIBRARIES,
    "apprise",
    "mcp",
    "opentelemetry",
    "pyarrow",
    "openai",
    "anthropic",
    "langchain",
)
SLOW_LIBRARIES = (*OPTIONAL_LIBRARIES, "pydantic", "rich", "tiktoken", "yaml")
"""Each costs tens of milliseconds or more to import, so none may be pulled in by `import windowpane`."""

GRAB_BAGS = {"utils", "util", "helpers", "helper", "common", "misc", "tools"}
TEXT_SUFFIXES = {
    ".cfg", ".css", ".html", ".js", ".json", ".md", ".py", ".sh", ".toml", ".txt", ".yaml", ".yml", "",
}  # fmt: skip

# Written in parts, because this file is searched too.
FORBIDDEN = {
    "a path of one machine": re.compile(r"(?<![\w.~-])/(?:wo" + r"rk|ro" + r"ot)/\w"),
    "a package index": re.compile("|".join(("pypi" + r"\.org", "python" + "hosted", "npm" + r"js\.org"))),
    "an unfinished place": re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|Not" + r"Implemented" + r"Error)\b"),
}


def committed_files() -> list[Path]:
    """Every file git knows, so that what lies beside the sources is not searched."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [path for name in listed.stdout.split("\0") if name and (path := ROOT / name).is_file()]


def modules() -> Iterator[Path]:
    for package in PACKAGES:
        yield from sorted((ROOT / package).rglob("*.py"))


def run_python(code: str) -> list[str]:
    """Return what *code* prints as JSON, run in a separate interpreter."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result: list[str] = json.loads(done.stdout)
    return result


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source distribution, built from this checkout without a network."""
    return build(ROOT, tmp_path_factory.mktemp("dist"))


def build(checkout: Path, folder: Path, *, umask: int = 0o022) -> Path:
    """Build both distributions into *folder*, at a fixed time."""
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
    subprocess.run(command, cwd=checkout, env=environment, capture_output=True, check=True, umask=umask)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> zipfile.ZipFile:
    """The wheel."""
    (file,) = built.glob("windowpane_observability-*.whl")
    return zipfile.ZipFile(file)


@pytest.fixture(scope="module")
def source_files(built: Path) -> set[str]:
    """The names of the files in the source distribution."""
    (file,) = built.glob("windowpane_observability-*.tar.gz")
    with tarfile.open(file) as archive:
        return {member.name.split("/", 1)[1] for member in archive if member.isfile()}


def metadata_of(wheel: zipfile.ZipFile) -> str:
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return wheel.read(name).decode()


def test_the_wheel_holds_every_file_of_both_packages(wheel: zipfile.ZipFile) -> None:
    shipped = {name for name in wheel.namelist() if ".dist-info/" not in name}
    expected = {
        str(path.relative_to(ROOT / package.split("/")[0]))
        for package in PACKAGES
        for path in committed_files()
        if path.is_relative_to(ROOT / package)
    }

    assert expected <= shipped
    assert {name.split("/")[0] for name in shipped} == {"windowpane", "windowpane_dashboard"}
    assert {"windowpane/py.typed", "windowpane_dashboard/py.typed"} <= shipped
    assert {f"windowpane/models/tokens/data/{name}_base.tiktoken.gz" for name in ("o200k", "cl100k")} <= shipped


def test_another_checkout_builds_the_same_files(built: Path, tmp_path: Path) -> None:
    """Neither the folder, the times of its files nor the umask is in them."""
    for path in committed_files():
        copy = tmp_path / "checkout" / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
        copy.chmod(0o700 if os.access(path, os.X_OK) else 0o600)
    (tmp_path / "checkout" / ".git").mkdir()  # ends the search for another project's .gitignore

    again = build(tmp_path / "checkout", tmp_path / "dist", umask=0o077)

    assert digests(again) == digests(built)


def digests(folder: Path) -> dict[str, str]:
    return {path.name: sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def test_the_wheel_carries_its_licence_and_notices(wheel: zipfile.ZipFile) -> None:
    names = wheel.namelist()

    assert any(name.endswith("/licenses/LICENSE") for name in names)
    assert any(name.endswith("/licenses/NOTICE") for name in names)
    assert "License-Expression: Apache-2.0" in metadata_of(wheel)


def test_the_wheel_carries_the_files_that_commands_write(wheel: zipfile.ZipFile) -> None:
    shipped = {
        name.removeprefix("windowpane/shipped/"): wheel.read(name)
        for name in wheel.namelist()
        if name.startswith("windowpane/shipped/")
    }
    expected = {
        str(path.relative_to(ROOT)): path.read_bytes()
        for path in committed_files()
        for entry in (*(f"grafana/{entry}" for entry in GRAFANA), FIDELITY_EXAMPLE)
        if path.is_relative_to(ROOT / entry)
    }

    assert shipped == expected


def test_the_source_distribution_is_the_committed_files_of_a_few_folders(source_files: set[str]) -> None:
    """A pattern names a folder at the top, so that no folder of the same name below `tests` comes along."""
    folders = ("exporter", "dashboard", "deploy", "grafana", "examples", "docs")
    committed = {str(path.relative_to(ROOT)) for path in committed_files()}

    assert {name for name in committed if name.split("/")[0] in folders} <= source_files
    assert {name.split("/")[0] for name in source_files if "/" in name} == {*folders, "benchmarks"}
    assert source_files - committed == {"PKG-INFO"}


def test_the_long_description_has_no_relative_link(wheel: zipfile.ZipFile, source_files: set[str]) -> None:
    """An index page shows the README without its files; the paths it names are in the source distribution."""
    description = metadata_of(wheel).split("\n\n", 1)[1]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    linked = {
        link.split("#")[0] for link in re.findall(r"(?<!!)\[[^\]]+\]\(([^)]+)\)", readme) if "://" not in link
    }

    assert [link for link in re.findall(r"\]\(([^)]+)\)", description) if "://" not in link] == []
    assert "![" not in description
    assert linked
    assert [link for link in linked if f"`{link}`" not in description] == []
    assert linked <= source_files


def test_the_docs_give_every_dependency_its_share_and_reason() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        dependencies = tomllib.load(file)["project"]["dependencies"]
    page = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")
    section = page.split("## What an installation holds")[1].split("| extra |")[0]
    named = re.findall(r"^\| ([\w-]+) \| [\d.]+ \|", section, flags=re.MULTILINE)

    assert set(named) == {re.split("[><=]", one)[0] for one in dependencies} | {"windowpane-observability"}


def interpreters() -> dict[str, Path]:
    """Return the interpreters of this machine that can run the package, by version: those of PATH and pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    running = {}
    for minor in range(11, 20):
        on_path = shutil.which(f"python3.{minor}")
        for candidate in [*([Path(on_path)] if on_path else []), *sorted(pyenv.glob(f"3.{minor}.*/bin/python"))]:
            # A shim of pyenv is in PATH for versions that are not active too, and then fails.
            if subprocess.run([candidate, "-c", "import venv"], capture_output=True, check=False).returncode == 0:
                running.setdefault(f"3.{minor}", candidate)
    return running


INTERPRETERS = interpreters()


Run = Callable[..., str]


@pytest.fixture
def install(wheel: zipfile.ZipFile, tmp_path: Path) -> Callable[..., Run]:
    """Install the wheel for an interpreter and return what runs a program of its environment.

    The libraries come from the package index, as those of the test environment do; without one it skips.
    """

    def installed(version: str, extra: str = "") -> Run:
        subprocess.run([INTERPRETERS[version], "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
        options = ["--quiet", "--no-compile", "--only-binary=:all:", "--disable-pip-version-check"]
        target = ["--python", str(tmp_path / "venv"), "install", *options, "--retries=0", "--timeout=15"]
        requirement = f"{wheel.filename}[{extra}]" if extra else str(wheel.filename)
        done = subprocess.run(
            [sys.executable, "-m", "pip", *target, requirement], capture_output=True, text=True, check=False
        )
        if done.returncode:
            pytest.skip(f"pip cannot install the libraries for Python {version}: {done.stderr.strip()[-300:]}")
        return run

    def run(*arguments: str) -> str:
        environment = {"PATH": f"{tmp_path / 'venv' / 'bin'}:{os.environ['PATH']}", "HOME": str(tmp_path)}
        environment["WINDOWPANE_STORE"] = str(tmp_path / "windowpane.db")
        command = [tmp_path / "venv" / "bin" / arguments[0], *arguments[1:]]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
        return done.stdout

    return installed


@pytest.fixture
def conversation(tmp_path: Path) -> Path:
    """A recording of one turn."""
    messages = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "The port is taken."}]
    file = tmp_path / "conversation.json"
    file.write_text(json.dumps(messages), encoding="utf-8")
    return file


@pytest.mark.timeout(900)
@pytest.mark.parametrize("version", sampled(list(INTERPRETERS)[::-1], 1))
def test_the_wheel_alone_works(
    version: str, wheel: zipfile.ZipFile, install: Callable[..., Run], conversation: Path, tmp_path: Path
) -> None:
    """On every interpreter of this machine the installed wheel imports a recording and writes what it carries."""
    run = install(version)

    assert run("windowpane", "--version").split()[-1] in metadata_of(wheel)
    assert run("windowpane-observability", "--version") == run("windowpane", "--version")
    assert run("python", "-W", "error", "-c", "import windowpane; windowpane.ContextWindowManager") == ""
    run("python", "-W", "error::SyntaxWarning", "-m", "compileall", "-qq", installed_package(tmp_path / "venv"))
    run("windowpane", "doctor")
    run("windowpane", "import", conversation.name)
    (session,) = json.loads(run("windowpane", "sessions", "--json"))
    assert "1 turn, " in run("windowpane", "report", session["session_id"])
    assert len(run("windowpane", "grafana", "export", "monitoring").splitlines()) == len(
        [name for name in wheel.namelist() if name.startswith("windowpane/shipped/grafana/")]
    )
    run("windowpane", "fidelity", "--write-example", "example")
    assert "passed" in run("windowpane", "fidelity", "example/suite.yaml")


USES = {
    "bulk": "from windowpane.models.tokens import encodings, exact_counter; "
    "assert exact_counter._load_toktok(encodings.O200K)",
    "clickhouse": "from windowpane.store.clickhouse.connection import require_client as r; r(); "
    "from clickhouse_connect import get_client",
    "dashboard": "import windowpane_dashboard as d, pathlib; from streamlit.testing.v1 import AppTest; "
    "a = AppTest.from_file(str(pathlib.Path(d.__file__).with_name('app.py')), default_timeout=60).run(); "
    "assert not a.exception, a.exception",
    "login": "import windowpane_dashboard.server.return_address, authlib.integrations.starlette_client, httpx",
    "mcp": "import windowpane.outputs.mcp.server",
    "notify": "from windowpane.alerts.delivery.channels import channel_for as c; print(c('json://127.0.0.1:9').kind)",
    "otel": "import windowpane.outputs.otlp.logs, windowpane.outputs.otlp.metrics",
    "parquet": "from windowpane.cli import main; "
    "main(['audit', 'export', '--format', 'parquet', '--output', 'events.parquet'])",
    "postgres": "import windowpane.store.postgres.store",
    "proxy": "from windowpane.cli import main; main(['run', '--', 'true'])",
    "serve": "import subprocess as s; "
    "p = s.Popen(['windowpane', 'serve', '--port=0'], stdout=s.PIPE, text=True); "
    "found = any('http' in line for line in p.stdout); p.terminate(); assert found",
}
"""Code that needs the libraries of an extra, and of no other."""


def test_every_extra_is_used() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]

    assert set(USES) == set(extras) - {"all", "dev"}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("version", sampled(list(INTERPRETERS), 1))
@pytest.mark.parametrize("extra", sampled(sorted(USES), 1))
def test_an_extra_alone_works(extra: str, version: str, install: Callable[..., Run], conversation: Path) -> None:
    run = install(version, extra)
    run("windowpane", "import", conversation.name)

    run("python", "-c", USES[extra])


def installed_package(environment: Path) -> str:
    """Return the folder of the package in a virtual environment."""
    return str(next((environment / "lib").glob("python3*")) / "site-packages" / "windowpane")


def test_every_data_file_is_in_the_notices() -> None:
    notice = (ROOT / "NOTICE").read_text()
    data = [path for path in committed_files() if path.parent.name == "data" and path.suffix != ".py"]

    assert data
    assert [path.name for path in data if path.name not in notice] == []


def test_importing_the_package_is_light() -> None:
    code = (
        "import json, sys, windowpane\n"
        f"print(json.dumps([name for name in {SLOW_LIBRARIES} if name in sys.modules]))"
    )

    assert run_python(code) == []


def test_a_manager_without_outputs_loads_none() -> None:
    code = (
        "import json, sys, windowpane\n"
        "windowpane.ContextWindowManager(agent='a', model='gpt-5', limit_tokens=8_000)\n"
        "outputs = ('windowpane.outputs.runtime.start', 'windowpane.outputs.runtime.pipeline',"
        " 'windowpane.outputs.runtime.store_sink', 'windowpane.outputs.http', 'windowpane.store',"
        " 'prometheus_client')\n"
        "print(json.dumps([name for name in sys.modules if name.startswith(outputs)]))"
    )

    assert run_python(code) == []


def test_the_library_works_without_the_optional_ones() -> None:
    code = f"""
import importlib, json, pkgutil, sys
for name in {OPTIONAL_LIBRARIES}:
    sys.modules[name] = None
import windowpane
failed = []
for module in pkgutil.walk_packages(windowpane.__path__, "windowpane."):
    if not module.name.endswith("__main__") and module.name not in {BEHIND_AN_EXTRA}:
        try:
            importlib.import_module(module.name)
        except ImportError as error:
            if (error.name or "").split(".")[0] in {OPTIONAL_LIBRARIES}:
                failed.append(f"{{module.name}}: {{error}}")
print(json.dumps(failed))
"""

    assert run_python(code) == []


def test_the_version_is_the_packages() -> None:
    """The version is that of the installed package, else `0+source`; any other missing name is refused."""
    code = (
        "import json, windowpane\n"
        "print(json.dumps([windowpane.__version__, str(hasattr(windowpane, 'no_such_name'))]))"
    )
    version, other = run_python(code)

    assert re.fullmatch(r"\d+\.\d+\.\d+.*|0\+source", version)
    assert other == "False"


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_file_holds(what: str) -> None:
    matches = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}"
        for path in committed_files()
        if path.suffix in TEXT_SUFFIXES and path.parent.name != "data"
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if FORBIDDEN[what].search(line)
    ]

    assert matches == []


def test_no_module_is_a_grab_bag() -> None:
    assert [str(path.relative_to(ROOT)) for path in modules() if path.stem in GRAB_BAGS] == []


def test_every_module_has_a_docstring() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for path in modules()
        if path.read_text().strip() and not path.read_text().lstrip().startswith(('"""', 'r"""'))
    ]

    assert silent == []
