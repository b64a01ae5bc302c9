"""A session's beginning, end, model and window size: what holds for it as a whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from windowpane.core.events import Event, LimitChanged, SessionEnded, SessionStarted, TrendReport
from windowpane.core.limits import TrackerSettings, WindowLimits
from windowpane.core.protocols import Clock, Digester
from windowpane.core.tracking.emitter import Emitter, SessionInfo
from windowpane.core.tracking.growth import Pace
from windowpane.core.tracking.trend import Trend


class Session(Emitter):
    """Emits what concerns the session as a whole, and knows the size of its window."""

    def __init__(
        self,
        info: SessionInfo,
        *,
        emit: Callable[[list[Event]], None],
        digest: Digester,
        limits: WindowLimits | None,
        settings: TrackerSettings,
        clock: Clock | None,
    ) -> None:
        super().__init__(info, emit=emit, clock=clock)
        self.limits = limits
        self.settings = settings
        self.pace = Pace(settings)
        self._digest = digest
        self._trend = Trend()

    def start(self, at: float | None = None, *, task: str | None = None) -> None:
        """Emit `session.started` with the window it starts with."""
        task_digest = self._digest(task) if task else None
        self.record(SessionStarted(task_digest=task_digest, **_described(self.limits)), at)

    def end(self, reason: str, at: float | None = None) -> TrendReport:
        """Emit `session.ended` with the trend report, and let all events go."""
        report = self._trend.report(self.pace)
        self.record(SessionEnded(reason, report), at)
        self.flush()
        return report

    def set_model(self, model: str, limits: WindowLimits | None, at: float | None = None) -> None:
        """The following calls go to another model, with another window."""
        self._rename_model(model)
        if limits != self.limits:
            self.set_limits(limits, at)

    def set_limits(self, limits: WindowLimits | None, at: float | None = None) -> None:
        """The window's size is known better than before."""
        previous, self.limits = self.limits, limits
        before = None if previous is None else previous.limit_tokens
        described = {"limit_tokens": None, "limit_source": None, **_described(limits)}
        self.record(LimitChanged(previous_tokens=before, **described), at)


def _described(limits: WindowLimits | None) -> dict[str, Any]:
    """A window's size as the fields of the events that tell it; none where it is unknown."""
    if limits is None:
        return {}
    return {
        "limit_tokens": limits.limit_tokens,
        "limit_source": limits.source,
        "reserved_tokens": limits.reserved_tokens,
        "margin_tokens": limits.margin_tokens,
        "yellow_ratio": limits.thresholds.yellow,
        "orange_ratio": limits.thresholds.orange,
        "red_ratio": limits.thresholds.red,
    }
