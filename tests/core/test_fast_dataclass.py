"""Values of the hot path: frozen, quick to make, and dataclasses to everyone who asks."""

from __future__ import annotations

import copy
import dataclasses
import gc
import pickle
from typing import Any

import pytest

from windowpane.core.events import PressureMeasured
from windowpane.core.window.blocks import Block

BLOCK = Block("b0", "user_message", 1, 1, "b0", 1, "", 2, "exact", "go")


def test_fields_have_their_names_defaults_and_kind() -> None:
    fields = {field.name: field for field in dataclasses.fields(PressureMeasured)}

    assert fields["blocks"].default == 0
    assert fields["added_by_component"].default_factory is dict
    assert (fields["phase"].kw_only, fields["used_tokens"].kw_only) == (True, False)
    assert fields["used_tokens"].default is dataclasses.MISSING


def test_a_value_can_be_replaced_and_copied_and_not_changed() -> None:
    changed = dataclasses.replace(BLOCK, tokens=2)

    assert (changed.tokens, BLOCK.tokens, dataclasses.asdict(changed)["text"]) == (2, 1, "go")
    assert copy.copy(BLOCK) == pickle.loads(pickle.dumps(BLOCK)) == BLOCK  # it was made here
    assert {BLOCK: 1}[copy.copy(BLOCK)] == 1
    value: Any = BLOCK
    with pytest.raises(AttributeError):
        value.tokens = 3


def test_the_garbage_collector_does_not_look_at_a_value() -> None:
    assert not gc.is_tracked(BLOCK)
