"""The modules that the program loads before it does anything: each one makes every prompt wait."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import click
import pytest
from click.testing import Result

from windowpane import cli
from windowpane.cli import COMMANDS, main
from windowpane.config.paths import default_store
from windowpane.sources.hooks.input import configured_store

CALL_PATH: Final = Path(__file__).parents[2] / "benchmarks/call_path.py"
HEAVY = {
    "asyncio", "click", "dataclasses", "importlib.metadata", "inspect", "logging", "msgspec", "numpy", "pathlib",
    "prometheus_client", "pydantic", "rich", "tiktoken", "typing", "yaml",
}  # fmt: skip
RUN = """
import runpy, sys
before = set(sys.modules)
try:
    if sys.argv[1:]:
        runpy.run_module("windowpane", run_name="__main__", alter_sys=True)
    else:
        import windowpane
except SystemExit:
    pass
print(*sorted(set(sys.modules) - before), file=sys.stderr)
"""


def loaded(*arguments: str, given: object = None, **environ: str) -> set[str]:
    """Return the modules that a command loads, in an interpreter that loads nothing else."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("WINDOWPANE_")}
    result = subprocess.run(
        [sys.executable, "-c", RUN, *arguments], input=json.dumps(given), env={**environment, **environ},
        capture_output=True, encoding="utf-8", check=True, timeout=60,
    )  # fmt: skip
    return set(result.stderr.split())


def heavy(modules: set[str]) -> set[str]:
    return {name for name in HEAVY if name in modules}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from windowpane.store.embedded import SqliteStore

    path = tmp_path_factory.mktemp("store") / "windowpane.db"
    SqliteStore(path).close()
    return path


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert heavy(loaded()) == set()


def test_the_status_line_loads_nothing_heavy(store: Path) -> None:
    given = {"session_id": "s", "context_window": {"context_window_size": 200_000}}

    in_store = loaded("hook", "status", given=given, WINDOWPANE_STORE=str(store))
    assert "windowpane.store.reads.pace" in in_store
    assert heavy(in_store - loaded_by_runpy()) == set()
    assert heavy(loaded("hook", "status", "--store", str(store), given=given) - loaded_by_runpy()) == set()


def test_the_import_hook_loads_nothing_heavy() -> None:
    assert heavy(loaded("hook", "import", given={}) - loaded_by_runpy()) == set()


@pytest.mark.parametrize(
    "arguments",
    [("status",), ("status", "--store", "other.db"), ("import",), ("give-back",), ("add-status-line",)],
    ids=" ".join,
)
def test_no_hook_loads_the_schema_of_the_configuration(arguments: tuple[str, ...], tmp_path: Path) -> None:
    config, transcript = tmp_path / "windowpane.yaml", tmp_path / "session.jsonl"
    config.write_text(f"store: {{path: {tmp_path / 'mine.db'}}}")
    transcript.write_text("\n".join(map(json.dumps, CLAUDE_CODE)) + "\n")
    given = {
        "session_id": "s", "source": "compact", "transcript_path": str(transcript),
        "context_window": {"context_window_size": 200_000, "current_usage": {"input_tokens": 900}},
    }  # fmt: skip
    environ = {
        "WINDOWPANE_CONFIG": str(config), "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path),
        "CLAUDE_CONFIG_DIR": str(tmp_path),
    }  # fmt: skip

    modules = loaded("hook", *arguments, given=given, **environ)

    assert "windowpane" in modules
    assert not modules & {"pydantic", "windowpane.config.schema"}


OBSERVE: Final = """
import sys
import windowpane
with windowpane.observe_everything(), windowpane.session():
    print(*sorted(sys.modules))
"""


def test_observing_does_not_load_the_schema_of_the_configuration() -> None:
    ran = subprocess.run([sys.executable, "-c", OBSERVE], capture_output=True, text=True, check=True, timeout=60)
    modules = set(ran.stdout.split())

    assert "windowpane.sources.clients.api" in modules
    assert not modules & {"pydantic", "windowpane.config.schema"}


def ours(modules: set[str]) -> set[str]:
    """Return the modules of this package."""
    return {name for name in modules if name.partition(".")[0] == "windowpane"}


@pytest.mark.parametrize(("arguments", "most"), [((), 1), (("--help",), 5), (("hook", "import"), 8)], ids=str)
def test_a_start_loads_few_modules(arguments: tuple[str, ...], most: int) -> None:
    """The list of commands is printed without their modules, and without any library except click."""
    modules = loaded(*arguments, given={})

    assert len(ours(modules)) <= most
    assert not modules & {"msgspec", "prometheus_client", "rich", "tiktoken", "yaml"}


def test_the_status_line_loads_few_modules(store: Path) -> None:
    given = {"session_id": "s", "context_window": {"context_window_size": 200_000}}

    assert len(ours(loaded("hook", "status", given=given, WINDOWPANE_STORE=str(store)))) <= 20


CLAUDE_CODE: Final = [
    {
        "type": "user", "sessionId": "s", "uuid": "a", "parentUuid": None, "timestamp": "2026-01-01T00:00:00Z",
        "cwd": "/work", "message": {"role": "user", "content": "Fix the bug."},
    },
    {
        "type": "assistant", "sessionId": "s", "uuid": "b", "parentUuid": "a",
        "timestamp": "2026-01-01T00:00:01Z",
        "message": {
            "id": "m", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
            "content": [{"type": "text", "text": "Done."}], "usage": {"input_tokens": 900, "output_tokens": 5},
        },
    },
]  # fmt: skip
CODEX: Final = [
    {
        "timestamp": "2026-01-01T00:00:00Z", "type": "session_meta",
        "payload": {"id": "s", "timestamp": "2026-01-01T00:00:00Z", "cwd": "/work", "instructions": None},
    },
    {
        "timestamp": "2026-01-01T00:00:01Z", "type": "response_item",
        "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Fix it."}]},
    },
]  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "reader"),
    [(CLAUDE_CODE, "claude_code.reader"), (CODEX, "codex.reader")],
    ids=["claude_code", "codex"],
)
def test_an_import_loads_one_reader(
    rows: list[dict[str, object]], reader: str, store: Path, tmp_path: Path
) -> None:
    """Neither what manages a window nor the readers of other formats."""
    file = tmp_path / "session.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)) + "\n")

    modules = ours(loaded("import", str(file), "--store", str(store)))
    readers = {name for name in modules if name.endswith((".reader", ".pi", ".openai_chat", ".stream"))}

    assert len(modules) <= 205
    assert readers == {
        "windowpane.sources.transcripts.reader", "windowpane.store.reads.reader",
        f"windowpane.sources.transcripts.formats.{reader}",
    }  # fmt: skip
    unwanted = ("windowpane.manager", "windowpane.fidelity.", "windowpane.agents", "windowpane.outputs")
    assert {name for name in modules if name.startswith(unwanted)} <= {"windowpane.fidelity.rule_survival"}


def test_a_call_and_a_line_become_rows_without_going_back_and_forth() -> None:
    """A return is a call into a module that was entered earlier: a reader of the code turns back as often."""
    arguments = [sys.executable, str(CALL_PATH), "--without-page", "--json"]
    counted = subprocess.run(arguments, capture_output=True, encoding="utf-8", check=True, timeout=120).stdout
    returns = {way: counts["returns"] for way, counts in json.loads(counted).items()}

    assert returns["observed call"] < 199
    assert returns["imported turn"] < 250


def test_every_command_is_listed_in_full() -> None:
    context = click.Context(main, terminal_width=80)
    lines = main.get_help(context).split("Commands:\n")[1].splitlines()

    assert [line.split()[0] for line in lines] == sorted(COMMANDS)
    assert all(line.endswith(".") and not line.endswith("...") for line in lines)
    for name in COMMANDS:
        assert main.get_command(context, name) is not None


def test_a_misspelled_command_is_answered_with_the_nearest(run: Callable[..., Result]) -> None:
    assert "no such command 'sesions'; did you mean 'sessions'?" in run("sesions", code=2).output
    assert "`windowpane --help` lists them" in run("xyzzy", code=2).output


def test_commands_are_completed_without_importing_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "import_module", lambda name: pytest.fail(f"{name} is imported"))
    context = click.Context(main)

    assert {item.value for item in main.shell_complete(context, "se")} == {"search", "serve", "sessions"}
    assert "--version" in {item.value for item in main.shell_complete(context, "--")}


@pytest.mark.parametrize(
    "environ",
    [
        {"HOME": "/home/ann"},
        {"HOME": "/home/ann", "XDG_DATA_HOME": "/data/ann"},
        {"HOME": "/home/ann", "XDG_DATA_HOME": ""},
        {"HOME": "/home/ann", "XDG_DATA_HOME": "not/absolute"},
        {"HOME": "/home/ann", "WINDOWPANE_STORE": "/data/other.db"},
        {"HOME": "/home/ann", "WINDOWPANE_STORE": "~/other.db"},
        {"HOME": "/home/ann", "WINDOWPANE_STORE": "sqlite:////data/other.db"},
    ],
    ids=str,
)
def test_the_quickly_found_store_is_the_default_one(
    monkeypatch: pytest.MonkeyPatch, environ: dict[str, str]
) -> None:
    for name in ("XDG_DATA_HOME", "WINDOWPANE_STORE", "WINDOWPANE_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)

    assert configured_store() == str(default_store())


def test_a_configured_store_is_found_by_the_hooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "windowpane.yaml"
    file.write_text(f"store: {{path: {tmp_path / 'mine.db'}}}")
    monkeypatch.delenv("WINDOWPANE_STORE", raising=False)
    monkeypatch.setenv("WINDOWPANE_CONFIG", str(file))

    assert configured_store() == str(tmp_path / "mine.db")


def loaded_by_runpy() -> set[str]:
    """Return what this test's way to run a module loads."""
    script = "import sys; before = set(sys.modules); import runpy; print(*(set(sys.modules) - before))"
    return set(
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    )
