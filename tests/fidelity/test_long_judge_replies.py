"""A judge's reply is read in linear time, whatever surrounds its answer."""

from __future__ import annotations

import pytest

from windowpane.fidelity.judge.prompts import read_answer, read_verdict


@pytest.mark.timeout(30)
@pytest.mark.parametrize("blank", [" ", "\n", '"', "*", "x " * 8])
def test_a_million_characters_around_an_answer_are_read(blank: str) -> None:
    run = blank * (1_000_000 // len(blank))

    assert read_answer(f"{run}42{run}blue") is not None
    assert read_answer(f"    {' ' * 1_000_000}42{' ' * 1_000_000}") == "42"
    assert read_verdict(f"yes{' ' * 1_000_000}.") == "yes"
