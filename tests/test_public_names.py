"""The public names of `windowpane`."""

from __future__ import annotations

import pytest

import windowpane


def test_every_public_name_can_be_had() -> None:
    for name in windowpane.__all__:
        assert getattr(windowpane, name) is not None

    assert windowpane.__all__ == sorted(windowpane.__all__)


def test_public_objects_are_those_of_their_module() -> None:
    from windowpane.agents.managers import ContextWindowManager

    assert windowpane.ContextWindowManager is ContextWindowManager


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        windowpane.no_such_name  # noqa: B018  # the look-up is what is tested
