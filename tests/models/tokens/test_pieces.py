"""Splitting long texts for the tokenizer."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windowpane.models.tokens import exact_counter as subject
from windowpane.models.tokens.encodings import CL100K, O200K, EncodingSpec, load_encoding
from windowpane.models.tokens.exact_counter import Vocabulary

_LINES = st.lists(
    st.sampled_from(["x = 1\n", "\n\n", "  \n", ";\n/", "don't\n", "\t", "漢字\n", "a", "7\n", "\r\n", " "])
    | st.text(max_size=8),
    max_size=60,
).map("".join)


@given(text=st.text(max_size=400))
def test_joined_pieces_equal_the_text(text: str) -> None:
    assert "".join(subject.split_text(text)) == text


@pytest.mark.parametrize("spec", [O200K, CL100K])
def test_cuts_at_line_starts_do_not_change_the_count(spec: EncodingSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    encoding = load_encoding(spec)

    @settings(max_examples=300)
    @given(text=_LINES)
    def holds(text: str) -> None:
        cuts = [match.end() for match in subject._SAFE_CUT.finditer(text)]
        parts = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]

        assert sum(len(encoding.encode_ordinary(part)) for part in parts) == len(encoding.encode_ordinary(text))

    holds()


@pytest.mark.parametrize(
    "text",
    [" " * 1_200_000 + "x", "a" * 1_200_000, "\n" * 1_200_000, "=" * 1_200_000, "漢" * 1_200_000],
    ids=["blanks", "letters", "newlines", "symbols", "han"],
)
def test_a_run_of_a_million_characters_is_counted(text: str) -> None:
    vocabulary = Vocabulary(O200K)
    vocabulary.require()
    count = vocabulary.count(text)

    assert count is not None
    assert 0 < count <= len(text)
    assert max(map(len, subject.split_text(text))) <= subject.PIECE_CHARACTERS
