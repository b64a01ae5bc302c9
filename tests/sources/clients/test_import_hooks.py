"""Hooks that run with a module, whenever it is imported."""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from windowpane.sources.clients.everything import ImportHooks


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
