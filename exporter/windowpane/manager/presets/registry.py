"""Presets: thresholds, order and log texts of other systems on this engine, selectable by name."""

from __future__ import annotations

from typing import Final

from windowpane.core.choices import check_choice
from windowpane.manager.presets.ai_sdk_go import AI_SDK_GO
from windowpane.manager.presets.baseagent import BASEAGENT
from windowpane.manager.presets.cascade import CASCADE
from windowpane.manager.presets.picoclaw import PICOCLAW
from windowpane.manager.presets.preset import Preset

__all__ = ["PRESETS", "Preset", "preset_named"]

PRESETS: Final[dict[str, Preset]] = {preset.name: preset for preset in (CASCADE, BASEAGENT, PICOCLAW, AI_SDK_GO)}
"""Every preset by name."""


def preset_named(name: str) -> Preset:
    """Return the preset called *name*. Raises `ConfigurationError` naming the choices."""
    return PRESETS[check_choice("preset", name, PRESETS)]
