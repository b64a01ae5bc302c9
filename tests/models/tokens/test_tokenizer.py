"""The tokenizer that counts: for bulk the faster one where it is installed, with the same result."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from windowpane.models.tokens.encodings import CL100K, O200K, EncodingSpec, load_encoding
from windowpane.models.tokens.exact_counter import Vocabulary, load_for_bulk

CHARACTERS = st.one_of(
    st.characters(),
    st.characters(min_codepoint=32, max_codepoint=126),
    st.sampled_from(
        " \t\n\r\x0b\x0c\x1c\x85\xa0\u2028\u3000\u200b'\u017f\u0130\u0308aAsStT1\u0663\u00bd/\\\\<|>{}"
    ),
)


@pytest.mark.parametrize("spec", [O200K, CL100K])
def test_the_faster_tokenizer_counts_as_tiktoken_does(spec: EncodingSpec) -> None:
    pytest.importorskip("toktok")
    count, encoding = load_for_bulk(spec), load_encoding(spec)

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


def test_without_the_library_tiktoken_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "toktok", None)

    assert load_for_bulk(O200K)("hello world") == 2


def test_another_library_of_the_name_is_not_used(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    wrong = SimpleNamespace(_encoding=lambda _name: SimpleNamespace(count=len))
    for other in (wrong, SimpleNamespace(_encoding=lambda _name: None)):
        monkeypatch.setitem(sys.modules, "toktok", other)

        assert load_for_bulk(O200K)("hello world") == 2

    assert "instead of 30, tiktoken counts" in caplog.messages[0]
    assert caplog.messages[1:] == ["toktok cannot be used, tiktoken counts"]


def test_an_agent_is_not_held_up_by_the_faster_tokenizer(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    library = SimpleNamespace(_encoding=lambda name: loaded.append(name) or SimpleNamespace(count=lambda _: 30))
    monkeypatch.setitem(sys.modules, "toktok", library)
    beside_agent, for_bulk = Vocabulary(O200K), Vocabulary(O200K)

    assert beside_agent.wait()
    assert not loaded
    for_bulk.require()
    assert loaded == ["o200k_base"]
