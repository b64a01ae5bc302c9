"""The report as JSON, for scripts."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from windowpane.report.gather import SessionReport


def to_json(report: SessionReport) -> dict[str, Any]:
    """The report as plain JSON types; infinite forecasts become the string `inf`."""
    document = asdict(report)
    document["answer"] = report.answer
    plain = _plain(document)
    assert isinstance(plain, dict)
    return plain


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and math.isinf(value):
        return "inf"
    return value
