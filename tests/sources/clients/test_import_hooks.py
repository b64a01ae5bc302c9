"""Hooks that run with a module, whenever it is imported."""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from windowpane.effects.error_boundary import ErrorBoundary
from windowpane.sources.clients import calls, dspy
from windowpane.sources.clients.calls import WatchedClient
from windowpane.sources.clients.everything import ImportHooks, ObservedEverything
from windowpane.sources.conversations.conversations import Scope


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    (tmp_path / "made_up_client").mkdir()
    (tmp_path / "made_up_client" / "__init__.py").write_text("")
    (tmp_path / "made_up_client" / "base.py").write_text("class Client: pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "made_up_client.base"
    for name in ("made_up_client.base", "made_up_client"):
        sys.modules.pop(name, None)


def test_a_hook_runs_right_after_the_import(package: str) -> None:
    hooked: list[ModuleType] = []
    hooks = ImportHooks({package: hooked.append})
    assert hooked == []

    module = importlib.import_module(package)
    importlib.import_module(package)
    hooks.close()
    assert hooked == [module]
    assert module.Client
    assert type(module.__loader__) is type(module.__spec__.loader)  # type: ignore[union-attr]
    assert hooks not in sys.meta_path


def test_a_hook_runs_at_once_for_an_imported_module(package: str) -> None:
    module = importlib.import_module(package)
    hooked: list[ModuleType] = []
    ImportHooks({package: hooked.append}).close()

    assert hooked == [module]


def test_a_closed_hook_and_a_failing_one_do_not_disturb_an_import(
    package: str, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: ModuleType) -> None:
        raise RuntimeError("broken")

    hooks = ImportHooks({package: fail})
    with caplog.at_level(logging.WARNING):
        assert importlib.import_module(package).Client
    hooks.close()
    assert "observing made_up_client.base failed" in caplog.text

    sys.modules.pop(package)
    ImportHooks({package: fail}).close()
    assert importlib.import_module(package).Client


def test_the_own_client_of_dspy_is_reported_with_its_first_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Release 3.4 sends calls by its own client: none of them is seen, and nothing else would show that."""
    folder = tmp_path / "dspy" / "clients" / "engines"
    folder.mkdir(parents=True)
    methods = "def complete(self, request): return request\n    def stream(self, request): yield request"
    kinds = ("LM15Engine", "AsyncLM15Engine")
    (folder / "lm15_engine.py").write_text("\n".join(f"class {kind}:\n    {methods}" for kind in kinds))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(calls, "boundary", boundary := ErrorBoundary(logging.getLogger("windowpane")))
    monkeypatch.setattr(dspy, "boundary", boundary)
    try:
        with caplog.at_level(logging.WARNING), ObservedEverything(WatchedClient(Scope("a"))):
            engine = importlib.import_module(dspy.BASE_MODULE).LM15Engine()
            assert caplog.text == ""
            assert [engine.complete(1), *engine.stream(2), engine.complete(3)] == [1, 2, 3]
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "dspy"]:
            del sys.modules[name]

    assert caplog.text.count('dspy.LM(..., engine="litellm")') == 1
