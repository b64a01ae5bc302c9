"""The page of a report: one HTML file without scripts, fonts or external addresses.

All text from an agent passes `escape`; a strict content security policy is the second line of defense.
"""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Final

from windowpane.core.characters import plain
from windowpane.text import palette
from windowpane.text.labels import COMPONENT_LABELS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from windowpane.core.vocabulary import Component


ROWS: Final = 200
"""Rows of each table; further rows are counted."""
LONG: Final = 24
"""Characters of a cell beyond which it is text and not a number."""
UNFOLDED: Final = 12
"""Rows that are visible without unfolding."""

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def html_page(title: str, *parts: str) -> str:
    """Return the whole page; *parts* are markup, and the title is text."""
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title><style>{_style()}</style></head><body><main>",
            *parts,
            "<footer>Made by Windowpane. Counts marked ≈ are estimates; – is unknown.</footer>",
            "</main></body></html>",
        ]
    )


def identity(facts: Iterable[tuple[str, str]]) -> str:
    """Return names with their values in one paragraph."""
    spans = " ".join(f"<span>{name} <b>{escape(value)}</b></span>" for name, value in facts)
    return f"<p class=identity>{spans}</p>"


def tiles(values: Iterable[tuple[str, str, str]]) -> str:
    """Return large values, each below its name and above its unit."""
    markup = "".join(
        f"<div><span>{escape(name)}</span><b>{escape(value)}</b><span>{escape(unit)}</span></div>"
        for name, value, unit in values
    )
    return f"<section class=tiles>{markup}</section>"


def legend(components: Iterable[Component]) -> str:
    """Return the colors of *components* with their names."""
    return "".join(f'<span><i class="{name}"></i>{COMPONENT_LABELS[name]}</span>' for name in components)


def table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table under its title; the rows of a long one continue in a folded part."""
    if not rows:
        return ""
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)

    def part(rows: Sequence[Sequence[str]]) -> str:
        body = "".join(_row(row) for row in rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    folded = rows[UNFOLDED:ROWS]
    more = f"<p>and {len(rows) - ROWS:,} more</p>" if len(rows) > ROWS else ""
    rest = f"<details><summary>{len(folded)} more</summary>{part(folded)}{more}</details>" if folded else ""
    return f"<h2>{escape(title)}</h2>{part(rows[:UNFOLDED])}{rest}"


def _row(cells: Iterable[str]) -> str:
    """Return a row in which only long cells may break anywhere, and no number does."""
    tags = (f"<td{' class=long' * (len(cell) > LONG)}>{escape(cell)}</td>" for cell in cells)
    return f"<tr>{''.join(tags)}</tr>"


def _style() -> str:
    """Return the style sheet, with all colors from the palette."""

    def colors(index: int) -> str:
        areas = [
            f".{name}{{fill:{tone[index]};background:{tone[index]}}}"
            for name, tone in palette.COMPONENT_TONES.items()
        ]
        levels = [
            f".line-{zone}{{stroke:{palette.ZONE_TONES[zone][index]}}}"
            f".label-{zone}{{fill:{palette.ZONE_TEXT_TONES[zone][index]}}}"
            for zone in ("yellow", "orange", "red")
        ]
        marks = [f".{name}{{fill:{tone[index]}}}" for name, tone in palette.SEVERITY_TONES.items()]
        return "".join([*areas, *levels, f".mark{{fill:{palette.EVENT[index]}}}", *marks])

    def backgrounds(index: int) -> str:
        return (
            f":root{{--ground:{palette.GROUND[index]};--ink:{palette.INK[index]};"
            f"--quiet:{palette.QUIET[index]};--rule:{palette.RULE[index]}}}"
        )

    dark = backgrounds(1) + colors(1)
    return backgrounds(0) + _LAYOUT + colors(0) + f"@media(prefers-color-scheme:dark){{{dark}}}"


_LAYOUT: Final = (
    "body{margin:0;background:var(--ground);color:var(--ink);font:15px/1.5 system-ui,sans-serif;"
    "font-variant-numeric:tabular-nums}main{max-width:1080px;margin:0 auto;padding:24px}"
    "h1{font-size:22px;line-height:1.3;margin:0 0 8px}h2{font-size:16px;margin:28px 0 8px}"
    ".identity span{display:inline-block;margin-right:16px;color:var(--quiet)}.identity b{color:var(--ink);"
    "font-weight:500;overflow-wrap:anywhere}"
    ".tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(112px,1fr));gap:1px;padding:1px}"
    ".tiles div{outline:1px solid var(--rule);padding:8px 12px}"
    ".tiles span{display:block;color:var(--quiet);font-size:12px}.tiles b{font-size:20px;font-weight:600}"
    ".quiet{color:var(--quiet);margin:6px 0}"
    ".wide{overflow-x:auto}@media screen{.wide svg{min-width:640px}}"
    "svg{width:100%;height:auto;display:block}.grid{stroke:var(--rule)}.axis{fill:var(--quiet);font-size:11px}"
    ".line{fill:none;stroke:var(--ink);stroke-width:1.5;stroke-dasharray:4 4}.line-limit{stroke-dasharray:none}"
    ".line-compaction{stroke-dasharray:9 6}.line-yellow,.line-orange{stroke-width:1}"
    ".leader{stroke-width:1;stroke-dasharray:none}"
    ".label{fill:var(--ink);font-size:11px}.mark{stroke:var(--ground)}"
    ".legend span{display:inline-block;margin-right:16px;color:var(--quiet);font-size:13px}"
    ".strip{display:flex;height:56px;border:1px solid var(--rule);margin:8px 0}.strip i{border-right:1px solid "
    "var(--ground)}.strip .free{background:none;border:0}"
    ".legend i{display:inline-block;width:10px;height:10px;margin-right:6px}"
    "table{border-collapse:collapse;width:100%;font-size:13px}th{text-align:left;color:var(--quiet);font-weight:500}"
    "th,td{padding:4px 12px 4px 0;border-bottom:1px solid var(--rule);vertical-align:top}"
    ".long{overflow-wrap:anywhere}.lead{font-size:16px;margin:0 0 8px}.tiles b{white-space:nowrap}"
    ".appendix{margin-top:28px}summary{margin:8px 0;color:var(--quiet);font-size:13px;cursor:pointer}"
    "footer{margin-top:32px;color:var(--quiet);font-size:12px}"
    "@page{size:A4;margin:12mm}@media print{body{font-size:11px}main{padding:0}table{font-size:10px}"
    "h1{font-size:18px}.lead{font-size:13px}h2{font-size:13px;margin:10px 0 4px}.tiles b{font-size:15px}"
    ".tiles{grid-template-columns:repeat(auto-fit,minmax(76px,1fr))}.tiles div{padding:4px 6px}"
    ".tiles span,.legend span{font-size:9px}"
    "svg{max-height:54mm}th,td{padding:2px 10px 2px 0}td:not(.long){white-space:nowrap}.lead,.quiet{margin:2px 0}"
    ".appendix,details{display:none}footer{margin-top:8px}*{print-color-adjust:exact}}"
)


def escape(text: str) -> str:
    """Return text that HTML and SVG show literally, without characters that act."""
    return html.escape(plain(text))
