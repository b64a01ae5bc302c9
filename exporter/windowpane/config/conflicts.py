"""Settings that contradict each other, or that a preset decides itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from windowpane.config.section import is_named
from windowpane.manager.levels import EVICT_RATIO
from windowpane.manager.plans.policies import policy_named

if TYPE_CHECKING:
    from windowpane.config.schema import Config
    from windowpane.manager.presets.preset import Preset

COMPACT_RATIO: Final = "compression.compaction_utilization_threshold"


class Conflict(NamedTuple):
    """A setting that a preset's source decides itself."""

    key: str
    reason: str


def conflicts(config: Config, preset: Preset) -> Iterator[Conflict]:
    """The settings of *config* that cannot hold beside *preset*."""
    for key, reason in preset.fixed.items():
        if key != "embedder" and is_named(config, key) and not _is_off(config, key):
            yield Conflict(key, f"preset {preset.name!r} decides this itself: {reason}")
    if is_named(config, "eviction.policy") and policy_named(config.eviction.policy).merges:
        reason = preset.fixed.get("embedder", "")
        if reason:
            yield Conflict("eviction.policy", f"preset {preset.name!r} cannot merge: {reason}")


def contradictions(config: Config) -> Iterator[Conflict]:
    """Settings that could never act: below where the window is first reduced (orange, where it is chosen)."""
    zones = config.pressure.thresholds
    first = EVICT_RATIO if zones is None else zones.orange
    levels = {"cross_window.auto_save_threshold": config.cross_window.auto_save_threshold}
    levels[COMPACT_RATIO] = config.compression.compaction_utilization_threshold
    for key, ratio in levels.items():
        if is_named(config, key) and ratio < first:
            yield Conflict(key, f"{ratio:g} is below {first:g}, where reductions begin")
    for ratio, name in config.compression.cascade.items():
        if ratio < first:
            reason = f"{name} at {ratio:g} is below {first:g}, where reductions begin"
            yield Conflict("compression.cascade", reason)


def _is_off(config: Config, key: str) -> bool:
    """Not wanting background work is what a preset without any does."""
    return key == "compression.background" and not config.compression.background
