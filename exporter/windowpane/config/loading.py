"""The settings of arguments, environment and file put together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from windowpane.config.conflicts import conflicts, contradictions
from windowpane.config.layers import Layers
from windowpane.config.schema import Config
from windowpane.contrib.presets import preset_named
from windowpane.exceptions import ConfigurationError


def load_config(
    file: str | Path | None = None,
    *,
    environ: dict[str, str] | None = None,
    arguments: dict[str, Any] | None = None,
) -> Config:
    """The settings of *arguments*, then the environment, then a YAML file (*file*, else `WINDOWPANE_CONFIG`).

    Raises `ConfigurationError` naming where the setting came from, its key and what was expected; a file that is
    named and missing is an error, and so is a key that contradicts another or that the preset decides itself.
    """
    layers = Layers.read(file, environ=environ, arguments=arguments)
    config = layers.validated(Config)
    named = config.model_fields_set & {"compression", "cross_window"}
    if not named and config.preset is None:
        return config

    for conflict in contradictions(config):
        place = layers.place(tuple(conflict.key.split(".")))
        raise ConfigurationError(place, conflict.reason, expected="a threshold at or above it")
    for conflict in () if config.preset is None else conflicts(config, preset_named(config.preset)):
        place = layers.place(tuple(conflict.key.split(".")))
        raise ConfigurationError(place, conflict.reason, expected="no such key beside this preset")
    return config
