"""Quiet hours: when a channel hears of critical alerts only, and of the rest afterwards."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from windowpane.exceptions import ConfigurationError

_FORM: Final = re.compile(r"([01]\d|2[0-3]):([0-5]\d)\s*-\s*([01]\d|2[0-3]):([0-5]\d)")
DAY_MINUTES: Final = 24 * 60


@dataclass(frozen=True, slots=True)
class QuietHours:
    """A daily span of local time, in minutes after midnight; may run past midnight."""

    begin: int
    end: int

    @classmethod
    def parse(cls, text: str, *, path: str = "quiet_hours") -> QuietHours:
        """Quiet hours written `22:00-07:00`. Raises `ConfigurationError` naming *path*."""
        match = _FORM.fullmatch(text.strip())
        if match is None:
            raise ConfigurationError(path, f"{text!r} is no span of the day", expected="22:00-07:00")
        hours = [int(part) for part in match.groups()]
        quiet = cls(hours[0] * 60 + hours[1], hours[2] * 60 + hours[3])
        if quiet.begin == quiet.end:
            raise ConfigurationError(path, "begins and ends at the same time", expected="22:00-07:00")
        return quiet

    def until(self, now: float, zone: tzinfo | None = None) -> float | None:
        """When the quiet hours that *now* lies in end, in seconds since the epoch; None outside of them.

        *zone* is the machine's own where none is given.
        """
        local = datetime.fromtimestamp(now, UTC).astimezone(zone)
        minute = local.hour * 60 + local.minute
        inside = self.begin <= minute < self.end if self.begin < self.end else not self.end <= minute < self.begin
        if not inside:
            return None
        left = (self.end - minute) % DAY_MINUTES
        ends = local.replace(second=0, microsecond=0) + timedelta(minutes=left)
        return ends.timestamp()
