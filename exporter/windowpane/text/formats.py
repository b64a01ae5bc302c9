"""Numbers, durations and times as text: the only place that formats them.

Unknown is always `–`, never 0 and never blank; an estimate starts with `≈`.
"""

from __future__ import annotations

import math

from windowpane.core.times import moment

TYPE_CHECKING = False  # the status line of a coding agent, which uses this, must not wait for typing
if TYPE_CHECKING:
    from datetime import tzinfo
    from typing import Final

UNKNOWN: Final = "–"
ESTIMATED: Final = "≈"
STATED: Final = "*"
"""Behind a total that the recording states of the whole session."""


def in_ascii(text: str) -> str:
    """Return *text* for a terminal without Unicode."""
    return text.replace("–", "-").replace("−", "-").replace(ESTIMATED, "~").encode("ascii", "replace").decode()


def tokens(value: float | None, *, estimated: bool = False) -> str:
    """Return tokens in full: `12,345`."""
    if value is None or math.isnan(value):
        return UNKNOWN
    return f"{ESTIMATED if estimated else ''}{round(value):,}"


def tokens_short(value: float | None, *, estimated: bool = False, signed: bool = False) -> str:
    """Return tokens in short: `940`, `12.3k`, `1.25M`; *signed* adds a plus sign."""
    if value is None or math.isnan(value):
        return UNKNOWN
    size = abs(round(value))
    prefix = "−" if value < 0 and size else "+" if signed and size else ""
    if size < 1_000:
        text = str(size)
    elif size < 99_950:
        text = f"{size / 1_000:.1f}".removesuffix(".0") + "k"
    elif size < 999_500:
        text = f"{size / 1_000:.0f}k"
    else:
        text = f"{size / 1e6:.2f}".rstrip("0").rstrip(".") + "M"
    return f"{ESTIMATED if estimated else ''}{prefix}{text}"


def tokens_rounded(value: float | None) -> str:
    """Return tokens for a sentence: `8,123`, `118k`, `1.05M`."""
    if value is None:
        return UNKNOWN
    if value < 10_000:
        return f"{value:,.0f}"
    return f"{value / 1_000:,.0f}k" if value < 1_000_000 else f"{value / 1e6:,.2f}M"


def size(value: int) -> str:
    """Return bytes as `940 B`, `12.4 MB`, `1.2 GB`; decimal units."""
    scaled, unit = float(value), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if scaled < 999.5:
            break
        scaled, unit = scaled / 1_000, larger
    return f"{scaled:.0f} {unit}" if unit == "B" or scaled >= 99.5 else f"{scaled:.1f} {unit}"


def percent(ratio: float | None, *, estimated: bool = False) -> str:
    """Return a ratio as `87%`; a ratio below 1 is never rounded up to 100%."""
    if ratio is None or math.isnan(ratio):
        return UNKNOWN
    mark = ESTIMATED if estimated else ""
    if 0 < ratio < 0.005:
        return f"{mark}<1%"
    if 0.995 <= ratio < 1:
        return f"{mark}{math.floor(ratio * 1_000) / 10:.1f}%"
    return f"{mark}{ratio:.0%}"


def small_percent(ratio: float | None) -> str:
    """Return a ratio of which differences of less than a percent matter: `0.4%`."""
    return UNKNOWN if ratio is None or math.isnan(ratio) else f"{ratio:.1%}"


def points(difference: float) -> str:
    """Return the difference of two ratios in percentage points: `+2.5 points`."""
    return f"{100 * difference:+.1f} points".replace("-", "−")


def ratio(value: float | None) -> str:
    """Return a ratio or a score as `0.87`."""
    return UNKNOWN if value is None or math.isnan(value) else f"{value:.2f}"


def decimal(value: float | None) -> str:
    """Return any other number: `2.5`, `1,204`."""
    return UNKNOWN if value is None or math.isnan(value) else f"{value:,.2f}".removesuffix(".00")


def rate(value: float, *, signed: bool = False) -> str:
    """Return a number of something per turn or per 100 calls, or a multiple: `2.5`, `+2.5`."""
    return f"{value:+.1f}".replace("-", "−") if signed else f"{value:.1f}"


def copied_calls(number: int) -> str:
    """Return a phrase about calls that another session counts; empty for none."""
    return f"{count(number, 'call')} not included: copied from another session" if number else ""


def stated_totals(input_tokens: int | None, output_tokens: int | None, cost: float | None) -> str:
    """Return the totals that a recording states: `stated by the recording: sent 1,204 tokens, cost $0.42`."""
    parts = [
        f"sent {tokens(input_tokens)} tokens" if input_tokens else "",
        f"written {tokens(output_tokens)}" if output_tokens else "",
        f"cost {dollars(cost)}" if cost else "",
    ]
    return f"stated by the recording for the whole session: {', '.join(filter(None, parts))}"


def dollars(value: float | None, *, estimated: bool = False, stated: bool = False) -> str:
    """Return US dollars: `$0.42`, `$0.0012`, `$1,204`, `<$0.0001`, `≈$0.42`, `$0.42*` for a stated total."""
    if value is None or math.isnan(value):
        return UNKNOWN
    if stated or estimated:
        return dollars(value) + STATED if stated else ESTIMATED + dollars(value)
    if value < 0:
        return f"−{dollars(-value)}"
    if value == 0 or 0.01 <= value < 1_000:
        return f"${value:,.2f}"
    if value < 0.00005:
        return "<$0.0001"
    return f"${value:,.0f}" if value >= 1_000 else f"${value:.4f}"


def seconds(value: float | None) -> str:
    """Return a duration: `4 ms`, `3.2 s`, `2 min 5 s`, `3 h 12 min`."""
    if value is None or math.isnan(value):
        return UNKNOWN
    if value < 1:
        return "<1 ms" if 0 < value < 0.0005 else f"{value * 1_000:.0f} ms"
    if value < 60:
        return f"{value:.1f} s"
    if value < 3_600:
        return f"{int(value // 60)} min {int(value % 60)} s"
    return f"{int(value // 3_600)} h {int(value % 3_600 // 60)} min"


def turns_until(value: float | None) -> str:
    """Return the turns of a forecast: `now`, `4`, `flat` without growth, `>999` when far away."""
    if value is None or math.isnan(value):
        return UNKNOWN
    if math.isinf(value):
        return "flat"
    if value <= 0:
        return "now"
    if value > 999:
        return ">999"
    return f"{value:.0f}" if value >= 1 else "<1"


def turns_band(early: float | None, late: float | None) -> str:
    """Return the 10–90 band of a forecast, such as `3–7`; empty if it is unknown or both ends read the same."""
    low, high = turns_until(early), turns_until(late)
    return "" if low == high or UNKNOWN in (low, high) else f"{low}–{high}"


def count(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun: `1 turn`, `1,204 turns`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def ago(at: float | None, now: float) -> str:
    """Return the time since *at*: `now`, `5 s ago`, `2 min ago`, `3 h ago`, `12 days ago`."""
    if at is None:
        return UNKNOWN
    passed = max(0.0, now - at)
    for unit, size in (("day", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        if passed >= size:
            whole = int(passed // size)
            return f"{count(whole, 'day') if unit == 'day' else f'{whole} {unit}'} ago"
    return "now"


def utc(at: float | None) -> str:
    """Return a time in UTC: `2026-03-02 11:04:05 UTC`."""
    date = moment(at)
    return UNKNOWN if date is None else f"{date:%Y-%m-%d %H:%M:%S} UTC"


def local(at: float | None, *, zone: tzinfo | None = None) -> str:
    """Return a time in *zone*, by default this machine's: `2026-03-02 12:04:05`."""
    date = moment(at)
    return UNKNOWN if date is None else f"{date.astimezone(zone):%Y-%m-%d %H:%M:%S}"
