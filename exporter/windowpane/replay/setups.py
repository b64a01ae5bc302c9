"""What a session is replayed under: a managed window, or one of the two baselines that manage nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final, Literal

import yaml

from windowpane.core.limits import Thresholds, WindowLimits
from windowpane.exceptions import ConfigurationError
from windowpane.manager.plans.policies import POLICIES, Policy, policy_named
from windowpane.manager.settings import EngineSettings
from windowpane.replay import catalog
from windowpane.text.formats import tokens_short

SetupKind = Literal["managed", "truncate", "keep_last"]

DEFAULT_KEEP_GROUPS: Final = 20
"""Groups the keep-last baseline keeps unless told otherwise."""
BLIND_TERMS: Final = frozenset({"recency", "type_ttl", "priority"})
"""Terms of a score that need no content, only types and turns."""
MINIMUM_LIMIT_TOKENS: Final = 1_024


@dataclass(frozen=True, slots=True)
class ReplaySetup:
    """One way to replay a session. Raises `ConfigurationError` for what cannot be."""

    limit_tokens: int
    kind: SetupKind = "managed"
    policy: str = "hybrid"
    """Of a managed window; a preset brings its own."""
    preset: str = ""
    thresholds: Thresholds | None = None
    """None lets the window's size decide."""
    truncate_ratio: float = 1.0
    """Of the truncation baseline: share of what fits at which it begins to drop."""
    keep_groups: int = DEFAULT_KEEP_GROUPS
    """Of the keep-last baseline."""

    def __post_init__(self) -> None:
        if self.limit_tokens < MINIMUM_LIMIT_TOKENS:
            raise ConfigurationError(
                "window",
                f"{self.limit_tokens} tokens are no window to replay in",
                expected=f"at least {MINIMUM_LIMIT_TOKENS:,}",
            )
        if not 0 < self.truncate_ratio <= 1:
            raise ConfigurationError(
                "truncate_ratio", f"{self.truncate_ratio} is no share", expected="above 0 and at most 1"
            )
        if self.keep_groups < 1:
            raise ConfigurationError("keep_groups", f"{self.keep_groups} keeps nothing", expected="at least 1")
        if self.kind == "managed":
            if self.preset:
                catalog.preset_named(self.preset)
            else:
                policy_named(self.policy)

    @property
    def limits(self) -> WindowLimits:
        """The window, with default reserve and margin."""
        return WindowLimits.of(self.limit_tokens, "given", thresholds=self.thresholds)

    @property
    def name(self) -> str:
        """What manages the window, or stands in for that."""
        if self.kind == "truncate":
            return "truncation" if self.truncate_ratio == 1 else f"truncation {self.truncate_ratio:.3g}"
        if self.kind == "keep_last":
            return f"keep last {self.keep_groups}"
        return f"preset {self.preset}" if self.preset else self.policy

    @property
    def label(self) -> str:
        """Name, window and, where they were chosen, thresholds; differs between different setups."""
        zones = self.thresholds
        chosen = "" if zones is None else f" at {zones.yellow:g}/{zones.orange:g}/{zones.red:g}"
        return f"{self.name}, {format_window(self.limit_tokens)}{chosen}"

    @property
    def fitting_tokens(self) -> int:
        """The most a call may send: limit less output reserve, by the usual reserve or a preset's smaller one."""
        usual = self.limits.overflow_tokens
        if not self.preset:
            return usual
        return max(usual, self.management().settings.limits_of(self.limit_tokens, "given").overflow_tokens)

    def management(self) -> catalog.Management:
        """What the manager is made with."""
        if self.preset:
            return catalog.preset_named(self.preset)
        return catalog.Management(EngineSettings(policy=self._own))

    @property
    def _own(self) -> Policy:
        return policy_named(self.policy)

    @property
    def reads_content(self) -> bool:
        """Whether it decides by texts, so that a recording without them cannot be replayed under it."""
        if self.kind != "managed":
            return False
        return bool(self.preset) or not set(self._own.weights) <= BLIND_TERMS

    def as_yaml(self) -> str:
        """The configuration that manages a live session like this; a comment for a baseline."""
        if self.kind != "managed":
            return f"# {self.label}: a baseline, for comparison only; no configuration does this\n"
        from windowpane.config.schema import Config

        document: dict[str, Any] = {"max_context_tokens": self.limit_tokens}
        head = ""
        if self.preset and "preset" in Config.model_fields:
            document["preset"] = self.preset
        elif self.preset:
            head = f"# with ContextWindowManager(..., preset={self.preset!r})\n"
        else:
            document["eviction"] = {"policy": self.policy}
        if self.thresholds is not None:
            zones = self.thresholds
            document["pressure"] = {
                "thresholds": {"yellow": zones.yellow, "orange": zones.orange, "red": zones.red}
            }
        return head + str(yaml.safe_dump(document, sort_keys=False))


def combine_setups(
    *,
    limits: Sequence[int],
    policies: Sequence[str] = (),
    presets: Sequence[str] = (),
    thresholds: Sequence[Thresholds | None] = (None,),
    baselines: bool = False,
    keep_groups: Sequence[int] = (DEFAULT_KEEP_GROUPS,),
) -> list[ReplaySetup]:
    """Every combination, a window at a time; `all` names every policy or preset. Raises `ConfigurationError`."""
    named = list(POLICIES) if "all" in policies else list(dict.fromkeys(policies))
    chosen = catalog.preset_names() if "all" in presets else list(dict.fromkeys(presets))
    setups: list[ReplaySetup] = []
    for limit in dict.fromkeys(limits):
        for policy, zones in product(named, thresholds):
            setups.append(ReplaySetup(limit, policy=policy, thresholds=zones))
        for preset, zones in product(chosen, thresholds):
            setups.append(ReplaySetup(limit, preset=preset, thresholds=zones))
        if baselines:
            setups.append(ReplaySetup(limit, "truncate"))
            setups += [ReplaySetup(limit, "keep_last", keep_groups=groups) for groups in keep_groups]
    return setups


def format_window(limit_tokens: int) -> str:
    """`8k` for 8,192 and `200k` for 200,000."""
    for thousand in (1_024, 1_000):
        if limit_tokens % thousand == 0:
            return f"{limit_tokens // thousand}k"
    return tokens_short(limit_tokens)


def parse_window(text: str) -> int:
    """Tokens of a window named `8k`, `200k`, `1m` or in plain digits.

    `k` is 1,024 where that makes a power of two, as window sizes are told, else 1,000. Raises
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
            "window", f"{text!r} is no size", expected="tokens, such as 8k, 200k or 131072"
        ) from error


def parse_thresholds(text: str) -> Thresholds:
    """`0.5/0.75/0.9` (yellow, orange, red), or only where eviction begins: `0.75`.

    Yellow then keeps its proportion to it, and red is half way to 1, or as usual. Raises `ConfigurationError`.
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
        raise ConfigurationError("threshold", f"{text!r} is no threshold", expected=expected) from error
