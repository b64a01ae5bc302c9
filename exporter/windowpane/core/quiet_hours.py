"""Quiet hours: a channel receives only critical alerts during them, and the others afterwards."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta, tzinfo
from typing import Final

from windowpane.core.times import moment
from windowpane.exceptions import ConfigurationError

_FORM: Final = re.compile(r"([01]\d|2[0-3]):([0-5]\d)\s*-\s*([01]\d|2[0-3]):([0-5]\d)")
DAY_MINUTES: Final = 24 * 60


@dataclass(frozen=True, slots=True)
class QuietHours:
    """A daily span of local time, in minutes after midnight; may run past midnight."""

    start: int
    end: int

    @classmethod
    def parse(cls, text: str, *, path: str = "quiet_hours") -> QuietHours:
        """Parse quiet hours written as `22:00-07:00`. Raises `ConfigurationError` naming *path*."""
        match = _FORM.fullmatch(text.strip())
        if match is None:
            raise ConfigurationError(path, f"{text!r} is not a span of the day", expected="22:00-07:00")
        hours = [int(part) for part in match.groups()]
        quiet = cls(hours[0] * 60 + hours[1], hours[2] * 60 + hours[3])
        if quiet.start == quiet.end:
            raise ConfigurationError(path, "starts and ends at the same time", expected="22:00-07:00")
        return quiet

    def until(self, now: float, zone: tzinfo | None = None) -> float | None:
        """Return the end of the quiet hours that contain *now*, in seconds since the epoch; None outside of them.

        *zone* defaults to the time zone of the machine.
        """
        date = moment(now)
        if date is None:
            return None
        local = date.astimezone(zone)
        minute = local.hour * 60 + local.minute
        inside = self.start <= minute < self.end if self.start < self.end else not self.end <= minute < self.start
        if not inside:
            return None
        remaining = timedelta(minutes=(self.end - minute) % DAY_MINUTES)
        return (local.replace(second=0, microsecond=0) + remaining).timestamp()
