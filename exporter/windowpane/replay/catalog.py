"""The presets that can be replayed, looked up by name when they are asked for."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

from windowpane.core.limits import TrackerSettings
from windowpane.core.protocols import TokenCounter
from windowpane.exceptions import ConfigurationError
from windowpane.manager.settings import EngineSettings

_MODULE: Final = "windowpane.contrib.presets"


@dataclass(frozen=True, slots=True)
class Management:
    """How a manager is set up."""

    settings: EngineSettings
    tracking: TrackerSettings | None = None
    counter: TokenCounter | None = None
    """A preset's own estimator; None for the model's tokenizer."""


def preset_names() -> list[str]:
    """Every preset of this release."""
    return list(_presets())


def preset_named(name: str) -> Management:
    """The preset called *name*. Raises `ConfigurationError`."""
    presets = _presets()
    if name not in presets:
        known = ", ".join(presets) or "none in this release"
        raise ConfigurationError("preset", f"{name!r} is no preset", expected=f"one of {known}")
    preset = presets[name]
    return Management(preset.settings(), preset.tracking(), preset.counter)


def _presets() -> dict[str, Any]:
    return {} if find_spec(_MODULE) is None else dict(import_module(_MODULE).PRESETS)
