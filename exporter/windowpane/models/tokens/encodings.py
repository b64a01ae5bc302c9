"""OpenAI's two byte-pair vocabularies, read from the package's own data.

Nothing is downloaded and no cache folder is written: the vocabulary is unpacked, checked against the
SHA-256 that tiktoken itself demands, and handed to tiktoken as ranks. No special tokens are registered,
because text an agent read (`<|endoftext|>` in a file) is ordinary text to the model's API.
"""

from __future__ import annotations

import binascii
import gzip
import hashlib
import zlib
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING

from windowpane.exceptions import VocabularyError

if TYPE_CHECKING:
    from collections.abc import Callable

    import tiktoken


@dataclass(frozen=True, slots=True)
class EncodingSpec:
    """What defines an encoding besides its vocabulary."""

    name: str
    sha256: str
    """Of the uncompressed vocabulary file, as published."""
    pattern: str
    """How text is split before merging; from tiktoken 0.14, `tiktoken_ext/openai_public.py`."""


O200K = EncodingSpec(
    name="o200k_base",
    sha256="446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    pattern=r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
)
"""GPT-4o, GPT-4.1, GPT-5, the o-series and gpt-oss."""

CL100K = EncodingSpec(
    name="cl100k_base",
    sha256="223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    pattern=r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
)
"""GPT-4, GPT-4 Turbo and GPT-3.5 Turbo."""


def packaged_vocabulary(name: str) -> bytes:
    """The compressed vocabulary file of encoding *name*, as shipped."""
    return (resources.files("windowpane.models.tokens") / "data" / f"{name}.tiktoken.gz").read_bytes()


def load_ranks(spec: EncodingSpec, *, read: Callable[[str], bytes] = packaged_vocabulary) -> dict[bytes, int]:
    """Token bytes to merge rank. Takes about 0.1 s.

    Raises `VocabularyError` when the data is missing, not gzip, or not what was published.
    """
    try:
        content = gzip.decompress(read(spec.name))
    except (OSError, EOFError, zlib.error) as error:
        raise VocabularyError(spec.name, f"cannot be read ({error})") from error
    found = hashlib.sha256(content).hexdigest()
    if found != spec.sha256:
        raise VocabularyError(spec.name, f"SHA-256 is {found}, expected {spec.sha256}")
    pairs = (line.split() for line in content.splitlines())
    return {binascii.a2b_base64(token): int(rank) for token, rank in pairs}


def load_encoding(spec: EncodingSpec) -> tiktoken.Encoding:
    """A tiktoken encoder of *spec*. Takes 0.2 to 0.4 s and about 80 MB: call it off the agent's thread."""
    import tiktoken

    return tiktoken.Encoding(
        name=spec.name, pat_str=spec.pattern, mergeable_ranks=load_ranks(spec), special_tokens={}
    )
