"""Setups: a managed window under a policy or preset, or one of the baselines: compaction only, or no manager."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final, Literal

import yaml

from windowpane.core.limits import Thresholds, TrackerSettings, WindowLimits
from windowpane.core.protocols import TokenCounter
from windowpane.exceptions import ConfigurationError
from windowpane.manager.plans.policies import POLICIES, policy_named
from windowpane.manager.presets.registry import PRESETS, preset_named
from windowpane.manager.settings import SAFETY_NET, EngineSettings
from windowpane.text.formats import tokens_short

SetupKind = Literal["managed", "compact", "truncate", "keep_last"]
"""`compact` summarizes a full window and removes nothing before, as most agents do."""

DEFAULT_KEEP_GROUPS: Final = 20
"""Groups that the keep-last baseline keeps by default."""
BLIND_TERMS: Final = frozenset({"recency", "type_ttl", "priority"})
"""Terms of an eviction score that need no content, only types and turns."""
MINIMUM_LIMIT_TOKENS: Final = 1_024


@dataclass(frozen=True, slots=True)
class ManagerOptions:
    """Settings of the manager of a replayed window."""

    settings: EngineSettings
    tracking: TrackerSettings | None = None
    counter: TokenCounter | None = None
    """A preset's own estimator; None for the model's tokenizer."""


@dataclass(frozen=True, slots=True)
class ReplaySetup:
    """One way to replay a session. Raises `ConfigurationError` for invalid values."""

    limit_tokens: int
    kind: SetupKind = "managed"
    policy: str = "hybrid"
    """Eviction policy of a managed window; a preset has its own."""
    preset: str = ""
    thresholds: Thresholds | None = None
    """Zone thresholds; None for those that follow from the window's size."""
    truncate_ratio: float = 1.0
    """Share of the fitting tokens at which the truncation baseline starts to drop groups."""
    keep_groups: int = DEFAULT_KEEP_GROUPS
    """Groups that the keep-last baseline keeps."""

    def __post_init__(self) -> None:
        if self.limit_tokens < MINIMUM_LIMIT_TOKENS:
            raise ConfigurationError(
                "window",
                f"a window of {self.limit_tokens} tokens is too small",
                expected=f"at least {MINIMUM_LIMIT_TOKENS:,}",
            )
        if not 0 < self.truncate_ratio <= 1:
            raise ConfigurationError(
                "truncate_ratio", f"{self.truncate_ratio} is not a share", expected="above 0 and at most 1"
            )
        if self.keep_groups < 1:
            raise ConfigurationError("keep_groups", f"{self.keep_groups} keeps nothing", expected="at least 1")
        if self.kind == "managed":
            if self.preset:
                preset_named(self.preset)
            else:
                policy_named(self.policy)

    @property
    def limits(self) -> WindowLimits:
        """Limits of the window, with default reserve and margin."""
        return WindowLimits.of(self.limit_tokens, "given", thresholds=self.thresholds)

    @property
    def name(self) -> str:
        """The policy, preset or baseline."""
        if self.kind == "compact":
            return "compaction only"
        if self.kind == "truncate":
            return "truncation" if self.truncate_ratio == 1 else f"truncation {self.truncate_ratio:.3g}"
        if self.kind == "keep_last":
            return f"keep last {self.keep_groups}"
        return f"preset {self.preset}" if self.preset else self.policy

    @property
    def label(self) -> str:
        """Name, window and, if they were chosen, thresholds; unique among different setups."""
        zones = self.thresholds
        chosen = "" if zones is None else f" at {zones.yellow:g}/{zones.orange:g}/{zones.red:g}"
        return f"{self.name}, {format_window(self.limit_tokens)}{chosen}"

    @property
    def fitting_tokens(self) -> int:
        """The most tokens a call may send: the limit minus the default output reserve or a preset's."""
        usual = self.limits.overflow_tokens
        if not self.preset:
            return usual
        return max(usual, self.management().settings.limits_of(self.limit_tokens, "given").overflow_tokens)

    def management(self) -> ManagerOptions:
        """Return the settings of the manager."""
        if self.kind == "compact":
            return ManagerOptions(EngineSettings(cascade=("compaction", *SAFETY_NET)))
        if not self.preset:
            return ManagerOptions(EngineSettings(policy=policy_named(self.policy)))
        preset = preset_named(self.preset)
        return ManagerOptions(preset.settings(), preset.tracking(), preset.counter)

    @property
    def reads_content(self) -> bool:
        """It decides by texts, so a recording without texts cannot be replayed under it."""
        if self.kind != "managed":
            return False
        return bool(self.preset) or not set(policy_named(self.policy).weights) <= BLIND_TERMS

    def as_yaml(self) -> str:
        """Return the configuration that manages a live session like this; a comment for a baseline."""
        if self.kind != "managed":
            return f"# {self.label}: a baseline, for comparison only; no configuration does this\n"
        document: dict[str, Any] = {"max_context_tokens": self.limit_tokens}
        if self.preset:
            document["preset"] = self.preset
        else:
            document["eviction"] = {"policy": self.policy}
        if self.thresholds is not None:
            zones = self.thresholds
            document["pressure"] = {
                "thresholds": {"yellow": zones.yellow, "orange": zones.orange, "red": zones.red}
            }
        return str(yaml.safe_dump(document, sort_keys=False))


def combine_setups(
    *,
    limits: Sequence[int],
    policies: Sequence[str] = (),
    presets: Sequence[str] = (),
    thresholds: Sequence[Thresholds | None] = (None,),
    baselines: bool = False,
    keep_groups: Sequence[int] = (DEFAULT_KEEP_GROUPS,),
) -> list[ReplaySetup]:
    """Return every combination; `all` selects every policy or preset. Raises `ConfigurationError`."""
    chosen_policies = list(POLICIES) if "all" in policies else list(dict.fromkeys(policies))
    chosen_presets = preset_names() if "all" in presets else list(dict.fromkeys(presets))
    setups: list[ReplaySetup] = []
    for limit in dict.fromkeys(limits):
        for policy, zones in product(chosen_policies, thresholds):
            setups.append(ReplaySetup(limit, policy=policy, thresholds=zones))
        for preset, zones in product(chosen_presets, thresholds):
            setups.append(ReplaySetup(limit, preset=preset, thresholds=zones))
        if baselines:
            setups.append(ReplaySetup(limit, "truncate"))
            setups += [ReplaySetup(limit, "keep_last", keep_groups=groups) for groups in keep_groups]
    return setups


def preset_names() -> list[str]:
    """Return the names of the presets of this release."""
    return list(PRESETS)


def format_window(limit_tokens: int) -> str:
    """Return `8k` for 8,192 and `200k` for 200,000."""
    for thousand in (1_024, 1_000):
        if limit_tokens % thousand == 0:
            return f"{limit_tokens // thousand}k"
    return tokens_short(limit_tokens)


def parse_window(text: str) -> int:
    """Return the tokens of a window written as `8k`, `200k`, `1m` or in plain digits.

    `k` is 1,024 if that gives a power of two, as window sizes are usually given, else 1,000. Raises
    `ConfigurationError`.
    """
    plain = text.strip().lower().replace(",", "").replace("_", "")
    try:
        if plain.endswith("k"):
            number = int(plain[:-1])
            return number * (1_024 if number.bit_count() == 1 else 1_000)
        return int(plain[:-1]) * 1_000_000 if plain.endswith("m") else int(plain)
    except ValueError as error:
        raise ConfigurationError(
            "window", f"{text!r} is not a size", expected="tokens, such as 8k, 200k or 131072"
        ) from error


def parse_thresholds(text: str) -> Thresholds:
    """Return the thresholds of `0.5/0.75/0.9` (yellow, orange, red), or of where eviction starts: `0.75`.

    From the latter, yellow keeps its default proportion to orange, and red is half way from orange to 1, but at
    least the default. Raises `ConfigurationError`.
    """
    expected = "a share such as 0.75, or three that rise such as 0.5/0.75/0.9"
    try:
        given = [float(part) for part in text.split("/")]
        if len(given) == 1:
            orange = given[0]
            usual = Thresholds()
            given = [orange * usual.yellow / usual.orange, orange, max(usual.red, (1 + orange) / 2)]
        yellow, orange, red = given
        return Thresholds(round(yellow, 4), orange, round(red, 4))
    except ValueError as error:
        raise ConfigurationError("threshold", f"{text!r} is not a threshold", expected=expected) from error
