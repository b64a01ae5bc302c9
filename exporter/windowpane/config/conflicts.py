"""Settings that contradict each other, or that a preset decides itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from windowpane.config.section import is_set
from windowpane.core.choices import MERGING_POLICIES
from windowpane.core.limits import EVICT_RATIO

if TYPE_CHECKING:
    from windowpane.config.schema import Config

COMPACT_RATIO: Final = "compression.compaction_utilization_threshold"


class Conflict(NamedTuple):
    """A setting that has to be removed or changed, and why."""

    key: str
    reason: str


def preset_conflicts(config: Config, preset: str, fixed: Mapping[str, str]) -> Iterator[Conflict]:
    """Yield the settings of *config* that are *fixed* by a preset, each with the reason."""
    for key, reason in fixed.items():
        disables_background = key == "compression.background" and not config.compression.background
        if key != "embedder" and is_set(config, key) and not disables_background:
            yield Conflict(key, f"preset {preset!r} decides this itself: {reason}")
    if is_set(config, "eviction.policy") and config.eviction.policy in MERGING_POLICIES:
        reason = fixed.get("embedder", "")
        if reason:
            yield Conflict("eviction.policy", f"preset {preset!r} cannot merge: {reason}")


def contradictions(config: Config) -> Iterator[Conflict]:
    """Yield thresholds below the level where the window is first reduced (orange, where it is set)."""
    zones = config.pressure.thresholds
    first = EVICT_RATIO if zones is None else zones.orange
    levels = {
        "cross_window.auto_save_threshold": config.cross_window.auto_save_threshold,
        COMPACT_RATIO: config.compression.compaction_utilization_threshold,
    }
    for key, ratio in levels.items():
        if is_set(config, key) and ratio < first:
            yield Conflict(key, f"{ratio:g} is below {first:g}, where reductions start")
    for ratio, name in config.compression.cascade.items():
        if ratio < first:
            reason = f"{name} at {ratio:g} is below {first:g}, where reductions start"
            yield Conflict("compression.cascade", reason)
