"""The presets that can be replayed, looked up by name when they are asked for."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

from windowpane.control.settings import ControlSettings
from windowpane.exceptions import ConfigurationError

_MODULE: Final = "windowpane.control.presets"


@dataclass(frozen=True, slots=True)
class ReplayedPreset:
    """A preset as a replay uses it."""

    name: str
    settings: ControlSettings


def preset_names() -> list[str]:
    """Every preset of this release."""
    return list(_presets())


def preset_named(name: str) -> ReplayedPreset:
    """The preset called *name*. Raises `ConfigurationError`."""
    presets = _presets()
    if name not in presets:
        known = ", ".join(presets) or "none in this release"
        raise ConfigurationError("preset", f"{name!r} is no preset", expected=f"one of {known}")
    return ReplayedPreset(name, presets[name].settings)


def _presets() -> dict[str, Any]:
    return {} if find_spec(_MODULE) is None else dict(import_module(_MODULE).PRESETS)
