"""A process that makes many objects looks for cycles rarely, and as before once it is done."""

from __future__ import annotations

import gc

import pytest

from windowpane.effects.processes import NEW_OBJECTS, rare_collection


def test_the_settings_return_with_the_end_of_the_block() -> None:
    before = gc.get_threshold()

    with rare_collection():
        assert gc.get_threshold() == (NEW_OBJECTS, *before[1:])
        assert gc.get_freeze_count() > 0
    with pytest.raises(KeyError), rare_collection():
        raise KeyError

    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0
