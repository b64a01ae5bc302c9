"""Words of six languages, compared without their inflection."""

from __future__ import annotations

import pytest

from windowpane.fidelity.languages import stem


@pytest.mark.parametrize(
    "words", ["stop stops stopped stopping", "retry retries retried", "commit commits committed"]
)
def test_the_forms_of_a_word_have_one_stem(words: str) -> None:
    assert len({stem(word) for word in words.split()}) == 1
