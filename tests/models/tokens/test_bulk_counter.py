"""Counts of large imports: by a faster tokenizer, with the same result."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from windowpane.models.tokens import bulk_counter
from windowpane.models.tokens.bulk_counter import load_bulk_counter
from windowpane.models.tokens.encodings import CL100K, O200K, EncodingSpec, load_encoding
from windowpane.models.tokens.tiktoken_counter import Vocabulary

CHARACTERS = st.one_of(
    st.characters(),
    st.characters(min_codepoint=32, max_codepoint=126),
    st.sampled_from(
        " \t\n\r\x0b\x0c\x1c\x85\xa0\u2028\u3000\u200b'\u017f\u0130\u0308aAsStT1\u0663\u00bd/\\\\<|>{}"
    ),
)


@pytest.mark.parametrize("spec", [O200K, CL100K])
def test_the_faster_tokenizer_counts_as_tiktoken_does(spec: EncodingSpec) -> None:
    """Over any text: of all scripts, blanks, contractions, names of special tokens, runs of one character."""
    pytest.importorskip("fastokens")
    count, encoding = load_bulk_counter(spec), load_encoding(spec)
    assert count is not None

    @settings(max_examples=150)
    @given(text=st.text(CHARACTERS, max_size=200))
    @example(text="it'\u017f the KING'S <|endoftext|> <|im_start|>")
    @example(text="half a pair \ud83d")
    @example(text=" " * 6_000 + "x")
    @example(text="a" * 6_000)
    @example(text="\u6f22" * 6_000)
    def equal(text: str) -> None:
        assert count(text) == len(encoding.encode_ordinary(text))

    equal()


def test_it_is_loaded_after_much_text_and_only_for_an_import(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before and after it the counts are those of tiktoken; without the library nothing changes."""
    encode = load_encoding(O200K).encode_ordinary
    loaded: list[str] = []

    def load(spec: EncodingSpec) -> Callable[[str], int]:
        loaded.append(spec.name)
        return lambda piece: len(encode(piece))

    monkeypatch.setattr("windowpane.models.tokens.tiktoken_counter.load_bulk_counter", load)
    vocabulary = Vocabulary(O200K)
    vocabulary.require()
    texts = [f"{number} text of an import" for number in range(20)]
    expected = [len(encode(text)) for text in texts]

    assert [vocabulary.count(f"{text}!") for text in texts] == [count + 1 for count in expected]
    assert loaded == []
    vocabulary.expect_bulk(after_characters=200)
    assert [vocabulary.count(text) for text in texts] == expected
    assert loaded == ["o200k_base"]


def test_without_the_library_tiktoken_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library is optional."""
    monkeypatch.setitem(sys.modules, "fastokens", None)

    assert bulk_counter.load_bulk_counter(O200K) is None
