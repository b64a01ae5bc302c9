"""The state of a window in one line, for terminals and for the status line of a coding agent."""

from __future__ import annotations

from windowpane.text.forecasts import next_event
from windowpane.text.formats import in_ascii, percent, tokens_short, turns_band
from windowpane.text.zones import ZONE_SHAPES, gauge, zone_mark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from windowpane.core.events import Pressure
    from windowpane.core.vocabulary import Zone
    from windowpane.text.forecasts import NextEvent


def gauge_line(pressure: Pressure, *, unicode: bool = True) -> str:
    """Return `[########..] 78% ◕ orange  red in 4 (3–7)`, or the tokens alone if the limit is unknown."""
    estimated = pressure.is_estimated
    if pressure.utilization is None:
        used = tokens_short(pressure.used_tokens, estimated=estimated)
        line = f"{gauge(None)} {used} tokens of an unknown limit"
        return line if unicode else in_ascii(line)
    zone = zone_mark(pressure.zone, unicode=unicode)
    line = f"{gauge(pressure.utilization)} {percent(pressure.utilization, estimated=estimated)} {zone}"
    event = next_event(pressure)
    if event.text:
        band = turns_band(*event.band(pressure))
        line += f"  {event.text}" + (f" ({band})" if band else "")
    return line if unicode else in_ascii(line)


def status_line(
    *,
    zone: Zone | None,
    utilization: float | None,
    used_tokens: int,
    limit_tokens: int | None,
    velocity: float | None = None,
    ahead: NextEvent | None = None,
) -> str:
    """Return `◕ 78% 156k/200k +4.1k/turn red in 4` without the parts that are unknown."""
    parts = [ZONE_SHAPES[zone]] if zone is not None else []
    if utilization is not None:
        parts.append(percent(utilization))
    used = tokens_short(used_tokens)
    parts.append(used if limit_tokens is None else f"{used}/{tokens_short(limit_tokens)}")
    if velocity is not None:
        parts.append(f"{tokens_short(velocity, signed=True)}/turn")
    if ahead is not None and ahead.text:
        parts.append(ahead.text)
    return " ".join(parts)
