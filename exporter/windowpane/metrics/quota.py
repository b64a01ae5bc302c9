"""Metrics of the quotas of plans: the used part of each window, and the time until it is used up."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from windowpane.metrics import catalog
from windowpane.metrics.families import Family, Point
from windowpane.metrics.labels import LABELS, AdmittedNames

if TYPE_CHECKING:
    from windowpane.core.protocols import Clock
    from windowpane.core.quota import QuotaForecast

_MINUTES: Final = ((1_440, "d"), (60, "h"))


class QuotaMetrics:
    """The quotas as of the last `update`. A `FamilySource`.

    Of several windows of one length, such as those of two accounts, the one with the most used counts.
    """

    def __init__(self, *, clock: Clock, agent: Callable[[str], str]) -> None:
        """*agent* maps an agent to its label."""
        self._clock = clock
        self._agent = agent
        self._window = AdmittedNames(LABELS["window"].cap)
        self._fullest: dict[tuple[str, ...], QuotaForecast] = {}

    def update(self, quotas: Iterable[QuotaForecast]) -> None:
        """Replace the quotas."""
        ordered = sorted(quotas, key=lambda quota: quota.used_ratio)
        self._fullest = {
            (self._agent(quota.agent), self._window(window_name(quota.minutes))): quota for quota in ordered
        }

    def collect(self) -> list[Family]:
        """Return both metrics of the windows that have not ended."""
        now = self._clock()
        current = {labels: quota for labels, quota in self._fullest.items() if quota.resets_at > now}
        used = [Point(labels, quota.used_ratio) for labels, quota in current.items()]
        remaining = [
            Point(labels, max(0.0, quota.runs_out_at - now))
            for labels, quota in current.items()
            if quota.runs_out_at is not None
        ]
        families = (Family(catalog.QUOTA_USED, used, []), Family(catalog.QUOTA_REMAINING, remaining, []))
        return [family for family in families if family.points]


def window_name(minutes: int) -> str:
    """Return the length of a window as a label: `5h`, `7d`, `90min`."""
    return next((f"{minutes // unit}{name}" for unit, name in _MINUTES if minutes % unit == 0), f"{minutes}min")
