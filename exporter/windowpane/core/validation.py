"""Errors of Pydantic as a problem and what was expected, without the text that was given: it may be a secret."""

from __future__ import annotations

import re
from typing import Final

from pydantic_core import ErrorDetails

_EXPECTED: Final = {
    "missing": ("missing", "a value"),
    "invalid_key": ("invalid", "a name as key"),
    "model_type": ("invalid", "a mapping"),
    "dict_type": ("invalid", "a mapping"),
    "tuple_type": ("invalid", "a list"),
    "path_type": ("invalid", "a path"),
}
"""Problem and expectation of errors that Pydantic describes in terms of Python."""
_BOUNDS: Final = ("gt", "ge", "lt", "le")
_SENTENCE: Final = re.compile(
    r"(?:Input|Value|String|Tuple) should (?:be |have |match )?(.*?)(?:, (?:unable|got) .*)?"
)


def described(detail: ErrorDetails) -> tuple[str, str]:
    """Return the problem of one error and what was expected, without the key it is about."""
    if detail["type"] in _EXPECTED:
        return _EXPECTED[detail["type"]]
    context = detail.get("ctx", {})
    if isinstance(error := context.get("error"), ValueError):
        return str(error), ""
    is_out_of_range = not context.keys().isdisjoint(_BOUNDS)
    problem = f"{detail['input']} is out of range" if is_out_of_range else "invalid"
    sentence = _SENTENCE.fullmatch(detail["msg"])
    return problem, detail["msg"] if sentence is None else sentence[1]
