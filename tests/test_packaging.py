"""The built packages, the modules they import, and the contents of the repository's files."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("exporter/windowpane", "dashboard/windowpane_dashboard")

DASHBOARD_LIBRARIES = ("streamlit", "plotly", "pandas")
BEHIND_AN_EXTRA = {f"windowpane.otlp.{module}": "otel" for module in ("logs", "metrics")}
"""Modules that are only imported where their extra is installed."""
OPTIONAL_LIBRARIES = (
    *DASHBOARD_LIBRARIES,
    "apprise",
    "opentelemetry",
    "pyarrow",
    "openai",
    "anthropic",
    "langchain",
)
SLOW_LIBRARIES = (*OPTIONAL_LIBRARIES, "genai_prices", "pydantic", "rich", "tiktoken", "yaml")
"""Each costs tens of milliseconds or more to import, so none may be pulled in by `import windowpane`."""

MAX_LINES = 400
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
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel, built from this checkout without a network."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    (built,) = folder.glob("*.whl")
    return zipfile.ZipFile(built)


def test_the_wheel_holds_every_file_of_both_packages(wheel: zipfile.ZipFile) -> None:
    """Code, type marks and data are all shipped, and nothing else is."""
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


def test_the_wheel_carries_its_licence_and_notices(wheel: zipfile.ZipFile) -> None:
    """Licence and notices travel with the code, and the metadata names the licence."""
    names = wheel.namelist()
    (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))

    assert any(name.endswith("/licenses/LICENSE") for name in names)
    assert any(name.endswith("/licenses/NOTICE") for name in names)
    assert "License-Expression: Apache-2.0" in wheel.read(metadata).decode()


def test_every_data_file_is_in_the_notices() -> None:
    """Whatever data is shipped, NOTICE names its origin and licence."""
    notice = (ROOT / "NOTICE").read_text()
    data = [path for path in committed_files() if path.parent.name == "data" and path.suffix != ".py"]

    assert data
    assert [path.name for path in data if path.name not in notice] == []


def test_importing_the_package_is_light() -> None:
    """`import windowpane` loads none of the slow libraries."""
    code = (
        "import json, sys, windowpane\n"
        f"print(json.dumps([name for name in {SLOW_LIBRARIES} if name in sys.modules]))"
    )

    assert run_python(code) == []


def test_a_manager_without_outputs_loads_none() -> None:
    """Neither store, pipeline nor endpoint is imported for an agent that never called `start`."""
    code = (
        "import json, sys, windowpane\n"
        "windowpane.ContextWindowManager(agent='a', model='gpt-5', limit_tokens=8_000)\n"
        "outputs = ('windowpane.runtime.start', 'windowpane.runtime.pipeline', 'windowpane.runtime.sinks',"
        " 'windowpane.serve', 'windowpane.store', 'prometheus_client')\n"
        "print(json.dumps([name for name in sys.modules if name.startswith(outputs)]))"
    )

    assert run_python(code) == []


def test_the_library_works_without_the_optional_ones() -> None:
    """Every module of the exporter can be imported where only the required dependencies are installed."""
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
    """Nothing of one machine, no package index and nothing unfinished is committed."""
    matches = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}"
        for path in committed_files()
        if path.suffix in TEXT_SUFFIXES and path.parent.name != "data"
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if FORBIDDEN[what].search(line)
    ]

    assert matches == []


def test_files_stay_readable() -> None:
    """No module outgrows the limit, and none is a grab bag."""
    sizes = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in modules()}
    long = {name: lines for name, lines in sizes.items() if lines > MAX_LINES}
    bags = [str(path.relative_to(ROOT)) for path in modules() if path.stem in GRAB_BAGS]

    assert long == {}
    assert bags == []


def test_every_module_has_a_docstring() -> None:
    """Each module that holds code starts with a docstring."""
    silent = [
        str(path.relative_to(ROOT))
        for path in modules()
        if path.read_text().strip() and not path.read_text().lstrip().startswith(('"""', 'r"""'))
    ]

    assert silent == []
