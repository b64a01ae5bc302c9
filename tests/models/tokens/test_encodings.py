"""The packaged vocabularies: complete, verified and equal to tiktoken's."""

from __future__ import annotations

import gzip

import pytest
import tiktoken_ext.openai_public

from windowpane.exceptions import VocabularyError
from windowpane.models.tokens.encodings import CL100K, O200K, EncodingSpec, load_ranks, packaged_vocabulary


@pytest.mark.parametrize(("spec", "tokens"), [(O200K, 199_998), (CL100K, 100_256)])
def test_a_vocabulary_is_complete(spec: EncodingSpec, tokens: int) -> None:
    ranks = load_ranks(spec)

    assert sorted(ranks.values()) == list(range(tokens))


@pytest.mark.parametrize("spec", [O200K, CL100K])
def test_the_specification_equals_tiktokens(spec: EncodingSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    requested_hashes: list[str] = []

    def record(_address: str, *, expected_hash: str) -> dict[bytes, int]:
        requested_hashes.append(expected_hash)
        return {}

    monkeypatch.setattr(tiktoken_ext.openai_public, "load_tiktoken_bpe", record)
    theirs = getattr(tiktoken_ext.openai_public, spec.name)()

    assert theirs["pat_str"] == spec.pattern
    assert requested_hashes == [spec.sha256]


def missing(name: str) -> bytes:
    raise FileNotFoundError(name)


def altered(name: str) -> bytes:
    return gzip.compress(gzip.decompress(packaged_vocabulary(name)).replace(b"IQ== 0", b"IQ== 1", 1))


def truncated(name: str) -> bytes:
    return packaged_vocabulary(name)[:-1000]


@pytest.mark.parametrize(
    ("read", "problem"),
    [
        (missing, "cannot be read"),
        (truncated, "cannot be read"),
        (altered, "SHA-256 is"),
        (lambda _: b"not gzip", "cannot be read"),
    ],
)
def test_damaged_data_is_rejected_with_its_name(read: object, problem: str) -> None:
    with pytest.raises(VocabularyError, match=f"cl100k_base: {problem}"):
        load_ranks(CL100K, read=read)  # type: ignore[arg-type]
