"""Names and keyed numbers are found in the runs of a text as the regular expression finds them in its tokens."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import example, given
from hypothesis import strategies as st

from windowpane.fidelity.tokens import TOKEN, TOKEN_KINDS, KeyedNumber, Runs

PIECES = (
    *(
        "src/a.py",
        "parseDate",
        "user_id",
        "must",
        "Pending",
        "ValueError",
        "timeout",
        "x",
        "30s",
        "-5",
        "1,5",
        "٣",
    ),
    *("größe", "→", "·", "…", "=", ":", "==", " ", "\n", "\t", ".", "/", "-", "$", "%", "[", '"', "." * 40),
    *("\ud800", "a" * 300),
)
TEXTS = st.lists(st.sampled_from(PIECES), max_size=25).map("".join)


def keyed_numbers(text: str) -> Iterator[KeyedNumber]:
    for line in text.split("\n"):
        tokens = TOKEN.findall(line)
        for key, equals, value in zip(tokens, tokens[1:], tokens[2:], strict=False):
            if equals in "=:" and TOKEN_KINDS[value] == "number" and len(key) > 2 and not key[0].isdigit():
                yield KeyedNumber(key, value)


@given(TEXTS)
def test_runs_hold_the_tokens_of_the_text(text: str) -> None:
    kinds = {token: TOKEN_KINDS[token] for token in TOKEN.findall(text)}
    marked = [(token, kind) for token, kind in kinds.items() if kind is not None and kind != "number"]

    assert list(dict.fromkeys(Runs(text).marked())) == marked


@given(
    st.lists(st.sampled_from(("timeout", "x", "30s", "-5", "=", ":", " ", "\n", "..", "→")), max_size=12).map(
        "".join
    )
)
@example("timeout\n= 30s")
@example("timeout .. = .. 30s: -5")
def test_a_number_has_the_token_before_it_as_its_key(text: str) -> None:
    assert list(Runs(text).keyed_numbers()) == list(keyed_numbers(text))
