"""What a manager can be told when it is made."""

from __future__ import annotations

from dataclasses import fields

import pytest

from windowpane.control.managed import Seams
from windowpane.exceptions import ConfigurationError
from windowpane.managing import ContextWindowManager
from windowpane.options import ManagerOptions, Options
from windowpane.testing import RecordingSink, in_memory_seams


def seams() -> Seams:
    return in_memory_seams(RecordingSink())


def test_the_types_that_editors_see_are_those_of_the_options() -> None:
    """Every option can be completed, none that does not exist."""
    assert list(ManagerOptions.__annotations__) == [field.name for field in fields(Options)]
    seen = {name: hint.__forward_arg__ for name, hint in ManagerOptions.__annotations__.items()}
    assert seen == Options.__annotations__


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"polcy": "lru"}, "polcy"),
        ({"policy": "newest"}, "eviction.policy"),
        ({"limit_tokens": 3}, "limit_tokens"),
    ],
)
def test_an_option_that_is_wrong_is_named(options: dict[str, object], key: str) -> None:
    """A typo or a value out of range is an error with its key, never ignored."""
    with pytest.raises(ConfigurationError) as error:
        ContextWindowManager(agent="a", model="m", seams=seams(), **options)  # type: ignore[typeddict-item]

    assert error.value.path == key
