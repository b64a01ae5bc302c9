"""Each code block of the README and the docs is run, parsed, or excused with a reason."""

from __future__ import annotations

import lzma
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import textwrap
import tomllib
from contextlib import suppress
from pathlib import Path

import pytest
import yaml
from tests.docs.code_blocks import ELSEWHERE, PAGES, ROOT, TREATMENTS, Block, blocks, blocks_of, summary
from tests.providers.loopback import loopback_provider
from tests.sampling import sampled

from windowpane.config.loading import load_config

RECORDING = ROOT / "exporter/windowpane/cli/demonstration/data/claude_code_compaction.jsonl.xz"
SESSION = "198393f2-22db-477b-ac77-1825bea883ae"
FOLDERS = ("benchmarks", "dashboard", "deploy", "examples", "grafana")
"""Of the repository, that commands read."""
SETTINGS_OF_OTHERS = ("scrape_configs", "rule_files")

PRESUMED = {
    "docs/engine.md": """
        import anthropic, openai, windowpane
        from types import SimpleNamespace
        from windowpane import ContextWindowManager
        my_tokenizer = windowpane.default_dependencies("gpt-5").counter
        run_tool = search = lambda *_: "a result"
        client = SimpleNamespace(chat=openai.OpenAI().chat, messages=anthropic.Anthropic().messages)
        call_id = "call_1"
        window = ContextWindowManager(agent="docs", model="gpt-5")
        window.add_user("Look it up")
        window.on_turn_start()
    """,
    "docs/observing.md": """
        import windowpane, openai
        messages = [{"role": "user", "content": "Why?"}]
        client = windowpane.observe(openai.OpenAI(), agent="reviewer")
        run = lambda client: client.chat.completions.create(model="gpt-5", messages=messages)
    """,
    "docs/operating.md": """
        from opentelemetry.sdk.trace import TracerProvider
        tracer_provider = TracerProvider()
    """,
    "docs/presets.md": "from windowpane import ContextWindowManager",
    "CONTRIBUTING.md": """
        import sys
        from collections.abc import Sequence
        from dataclasses import dataclass
        from types import SimpleNamespace
        from typing import Final
        sys.path[:0] = ["grafana"]
        from generator.panels import Query, about, lines
        from generator.queries import per_minute
        from windowpane.alerts.rules import Rule
        from windowpane.metrics import catalog as c
        from windowpane.metrics.catalog import _counter
        from windowpane.models.catalog import PackagedCatalog as catalog
        from windowpane.sources.transcripts.formats.registry import Format
        c.ROLLOVERS = _counter("rollovers", "{rollover}", "Rollovers.", "window.rolled")
    """,
}
"""Code before each block of a page: names that are the reader's, and the module into which a line is added."""


def test_every_block_has_a_check_or_a_reason(capsys: pytest.CaptureFixture[str]) -> None:
    unknown = [str(block) for block in blocks() if block.language not in TREATMENTS]

    assert unknown == []
    with capsys.disabled():
        print(f"\n{summary()}")


def test_every_excuse_belongs_to_a_block() -> None:
    comments = "".join((ROOT / page).read_text(encoding="utf-8") for page in PAGES).count("<!-- not run:")

    assert comments == len([block for block in blocks() if block.excuse])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the parts of the repository that commands name, and the recordings of a user."""
    for name in FOLDERS:
        (tmp_path / name).symlink_to(ROOT / name)
    recording = tmp_path / "home" / ".claude" / "projects" / "docs" / f"{SESSION}.jsonl"
    recording.parent.mkdir(parents=True)
    recording.write_bytes(lzma.decompress(RECORDING.read_bytes()))
    for name in ("etc/prometheus/rules", "etc/systemd/system", "etc/windowpane", "var/lib/windowpane", "opt"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "home" / "agents" / "runs").mkdir(parents=True)
    return tmp_path


@pytest.fixture
def environment(folder: Path) -> dict[str, str]:
    """The environment of a user who has nothing but the command."""
    return {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(folder / "home"),
        "XDG_DATA_HOME": str(folder / "home" / "data"),
        "WINDOWPANE_STORE": str(folder / "windowpane.db"),
        "WINDOWPANE_PORT": "0",
        "LANG": "C.UTF-8",
    }


PYTHON = [block for block in blocks("python") if not block.excuse]


@pytest.mark.parametrize("block", sampled(PYTHON, 5), ids=str)
def test_python_runs(block: Block, folder: Path, environment: dict[str, str]) -> None:
    """Against a provider on loopback; a test that a block defines is run too, where it needs no fixture."""
    presumed = textwrap.dedent(PRESUMED.get(block.page, ""))
    code = textwrap.dedent(block.code)
    tests = "".join(f"\n{name}()\n" for name in re.findall(r"^def (test_\w+)\(\)", code, re.MULTILINE))
    script = folder / "block.py"
    if code.startswith(("from __future__", '"""')):
        presumed = ""
    script.write_text(f"{presumed}\n{code}{tests}", encoding="utf-8")
    with loopback_provider() as provider:
        addresses = {
            "OPENAI_BASE_URL": f"{provider.url}/v1", "OPENAI_API_KEY": "none",
            "ANTHROPIC_BASE_URL": provider.url, "ANTHROPIC_API_KEY": "none",
        }  # fmt: skip
        done = subprocess.run(
            [sys.executable, script], cwd=folder, env=environment | addresses, capture_output=True, text=True,
            check=False, timeout=120,
        )  # fmt: skip

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("block", [block for block in blocks("yaml") if not block.excuse], ids=str)
def test_yaml_is_a_configuration(block: Block, folder: Path, require_server) -> None:
    document = yaml.safe_load(block.code)
    file = folder / "file.yaml"
    file.write_text(block.code, encoding="utf-8")

    if document.keys() & set(SETTINGS_OF_OTHERS):
        shutil.copy(ROOT / "grafana" / "prometheus" / "rules" / "windowpane.yml", folder / "windowpane-rules.yml")
        checked = subprocess.run(
            [require_server("promtool"), "check", "config", file], capture_output=True, text=True, check=False
        )
        assert checked.returncode == 0, checked.stdout + checked.stderr
    elif "apiVersion" in document:
        (container,) = document["spec"]["containers"]
        given = {entry["name"]: entry.get("value", "secret") for entry in container["env"]}
        config = load_config(None, environ=given)
        assert config.server.address == "0.0.0.0"
        assert [config.server.port] == [port["containerPort"] for port in container["ports"]]
    else:
        load_config(file, environ={})


def test_promql_is_accepted(tmp_path: Path, require_server) -> None:
    rules = [
        {"record": f"docs:block:{number}", "expr": block.code} for number, block in enumerate(blocks("promql"))
    ]
    file = tmp_path / "rules.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "docs", "rules": rules}]}), encoding="utf-8")

    checked = subprocess.run(
        [require_server("promtool"), "check", "rules", file], capture_output=True, text=True, check=False
    )

    assert rules
    assert checked.returncode == 0, checked.stdout + checked.stderr


SCRIPTS = sorted(
    {block.page for block in blocks("sh") if not block.excuse},
    key=lambda page: (page != "docs/insight.md", page),
)
"""Pages with scripts; the first is quick, since it starts no server."""


@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", sampled(SCRIPTS, 1))
def test_the_commands_of_a_page_run_in_their_order(
    page: str, folder: Path, environment: dict[str, str], request: pytest.FixtureRequest
) -> None:
    """A program that needs more than this machine is replaced by one that records its arguments."""
    script = "\n".join(block.code for block in blocks_of(page) if block.language == "sh" and not block.excuse)
    script = prepared(script, folder, request)
    for block in blocks_of(page):
        if block.language == "yaml" and "scrape_configs:" in block.code:
            (folder / "prometheus.yml").write_text(block.code, encoding="utf-8")
    if page == "benchmarks/forecast/README.md":
        write_forecasts(folder, environment)
    others, own = folder / "others", folder / "own"
    others.mkdir()
    own.mkdir()
    for name in ELSEWHERE:
        executable(others / name, f'#!/bin/sh\nprintf "%s\\n" "$(basename "$0") $*" >> {folder}/elsewhere\n')
    executable(others / "claude", "#!/bin/sh\n")
    environment["PATH"] = f"{others}:{environment['PATH']}"
    command = (
        f'PATH="{environment["PATH"]}" exec {sys.executable} {Path(__file__).with_name("served_command.py")} "$@"'
    )
    executable(own / "windowpane", f"#!/bin/sh\n{command}\n")
    environment["PATH"] = f"{own}:{environment['PATH']}"
    subprocess.run([own / "windowpane", "import"], cwd=folder, env=environment, check=True, capture_output=True)

    output = folder / "output"
    with output.open("wb") as file:
        shell = subprocess.Popen(
            ["bash", "-e", "-c", script], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=file,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        code = shell.wait()
    with suppress(ProcessLookupError):  # what it started in the background
        os.killpg(shell.pid, signal.SIGTERM)

    text = output.read_text(encoding="utf-8")
    assert code == 0, text[-3000:]
    recorded = folder / "elsewhere"
    for call in recorded.read_text(encoding="utf-8").splitlines() if recorded.exists() else ():
        assert_names_what_exists(call)
    printed = " ".join(text.split())
    for block in blocks_of(page):
        if page == "docs/tutorial.md" and block.language == "text":
            assert [row for row in block.code.splitlines() if " ".join(row.split()) not in f"{printed} …"] == []


def assert_names_what_exists(call: str) -> None:
    """Check what can be checked of a command that was not run: files, targets of make, extras."""
    files = [word for word in re.split(r"[\s=]", call) if word.startswith(tuple(f"{name}/" for name in FOLDERS))]
    assert [name for name in files if not (ROOT / name).exists()] == [], call
    targets = re.findall(r"^make ([\w-]+)", call)
    assert [name for name in targets if f"\n{name}:" not in (ROOT / "Makefile").read_text(encoding="utf-8")] == []
    for extras in re.findall(r"\[([\w,]+)\]", call):
        with (ROOT / "pyproject.toml").open("rb") as file:
            known = tomllib.load(file)["project"]["optional-dependencies"]
        assert set(extras.split(",")) <= set(known), call


def executable(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")
    file.chmod(0o755)


def prepared(script: str, folder: Path, request: pytest.FixtureRequest) -> str:
    """Return the script for this folder: absolute paths inside of it, servers of other machines on this one."""
    script = re.sub(r"(?:\.venv|/opt/windowpane)/bin/", "", script)
    script = re.sub(r"(?<![\w.])/(etc|var)/", rf"{folder}/\1/", script)
    script = re.sub(r"^(python -m .* --port) \d+", r"\1 0", script, flags=re.MULTILINE)
    script = re.sub(r"^(python3 -m venv|\. windowpane-tutorial).*$", "", script, flags=re.MULTILINE)
    if "postgresql://windowpane@db.internal/windowpane" in script:
        address = request.getfixturevalue("postgres_url")
        script = script.replace("postgresql://windowpane@db.internal/windowpane", shlex.quote(address))
    if "http://clickhouse:8123" in script:
        from tests.servers.clickhouse import PASSWORD, USER

        server = request.getfixturevalue("clickhouse_server")
        script = script.replace("http://clickhouse:8123", server.url).replace(
            "WINDOWPANE_CLICKHOUSE_USER=windowpane WINDOWPANE_CLICKHOUSE_PASSWORD=…",
            f"WINDOWPANE_CLICKHOUSE_USER={USER} WINDOWPANE_CLICKHOUSE_PASSWORD={shlex.quote(PASSWORD)}",
        )
    for parent in (folder, folder / "etc" / "windowpane"):
        (parent / "token").write_text("a-token-of-more-than-32-characters-here", encoding="utf-8")
        for certificate, key in (("cert.pem", "key.pem"), ("tls.crt", "tls.key")):
            if certificate in script:
                make_certificate(parent / certificate, parent / key)
    return script


def write_forecasts(folder: Path, environment: dict[str, str]) -> None:
    """Write the two files that a reader of the forecast benchmark brings: a module and answers."""
    (block,) = blocks("python")[-1:]
    (folder / "my_module.py").write_text(block.code, encoding="utf-8")
    command = [sys.executable, "benchmarks/forecast/score.py", "--questions"]
    asked = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    answers = '{"p10": 3, "p50": 7, "p90": 19}\n' * len(asked.stdout.splitlines())
    (folder / "answers.jsonl").write_text(answers, encoding="utf-8")
    environment["PYTHONPATH"] = str(folder)


def make_certificate(certificate: Path, key: Path) -> None:
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    subprocess.run([*command, "-keyout", key, "-out", certificate], check=True, capture_output=True)
