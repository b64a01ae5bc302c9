"""OpenAI's two byte-pair encodings, read from the package's data, and the models that use them.

Nothing is downloaded and no cache folder is written: the vocabulary is unpacked, checked against the SHA-256 that
tiktoken requires, and passed to tiktoken as ranks. No special tokens are registered, because text that an agent
read (`<|endoftext|>` in a file) is ordinary text to the model's API.
"""

from __future__ import annotations

import binascii
import gzip
import hashlib
import re
import zlib
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING

from windowpane.exceptions import VocabularyError
from windowpane.models.names import provider_id, split_model_name

if TYPE_CHECKING:
    from collections.abc import Callable

    import tiktoken


@dataclass(frozen=True, slots=True)
class EncodingSpec:
    """The definition of an encoding, without its vocabulary."""

    name: str
    sha256: str
    """SHA-256 of the uncompressed vocabulary file, as published."""
    pattern: str
    """Regular expression that splits text before merging; tiktoken 0.14, `tiktoken_ext/openai_public.py`."""
    checked_tokens: int
    """Tokens of `tokenizer.CHECKED_TEXT`."""


O200K = EncodingSpec(
    name="o200k_base",
    sha256="446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    pattern=r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    checked_tokens=30,
)
"""GPT-4o, GPT-4.1, GPT-5, the o-series and gpt-oss."""

CL100K = EncodingSpec(
    name="cl100k_base",
    sha256="223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    pattern=r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    checked_tokens=31,
)
"""GPT-4, GPT-4 Turbo and GPT-3.5 Turbo."""


def packaged_vocabulary(name: str) -> bytes:
    """Return the compressed vocabulary file of the encoding *name* from the package."""
    return (resources.files("windowpane.models.tokens") / "data" / f"{name}.tiktoken.gz").read_bytes()


def load_ranks(spec: EncodingSpec, *, read: Callable[[str], bytes] = packaged_vocabulary) -> dict[bytes, int]:
    """Return the merge rank of each token, in about 0.1 s.

    Raises `VocabularyError` for data that is missing, not gzip, or different from the published file.
    """
    try:
        content = gzip.decompress(read(spec.name))
    except (OSError, EOFError, zlib.error) as error:
        raise VocabularyError(spec.name, f"cannot be read ({error})") from error
    digest = hashlib.sha256(content).hexdigest()
    if digest != spec.sha256:
        raise VocabularyError(spec.name, f"SHA-256 is {digest}, expected {spec.sha256}")
    pairs = (line.split() for line in content.splitlines())
    return {binascii.a2b_base64(token): int(rank) for token, rank in pairs}


def load_encoding(spec: EncodingSpec) -> tiktoken.Encoding:
    """Return a tiktoken encoder, which encodes ordinary text and cannot be pickled.

    Takes 0.2 to 0.4 s and about 60 MB, so never call it on the agent's thread.
    """
    import tiktoken

    ranks = load_ranks(spec)
    encoding = tiktoken.Encoding(name=spec.name, pat_str=spec.pattern, mergeable_ranks=ranks, special_tokens={})
    ranks.clear()  # 25 MB: the encoder has copied them
    return encoding


_OPENAI_SELLERS = frozenset({"openai", "azure", "github-copilot", "openrouter"})
"""Providers that sell OpenAI's models under OpenAI's names; other prefixes may sell anything under them."""

_O200K_NAMES = re.compile(
    r"(?:ft:)?(?:(?:chatgpt-)?gpt-4o|chatgpt-4o|gpt-4\.1|gpt-4\.5|gpt-5|gpt-oss|o1|o3|o4-mini)(?:[-.:@]|$)"
)
_CL100K_NAMES = re.compile(r"(?:ft:)?(?:gpt-4|gpt-3\.5|gpt-35-turbo)(?:[-:@]|$)")


def encoding_of(model: str) -> EncodingSpec | None:
    """Return the encoding of *model* by the table of tiktoken 0.14 (`tiktoken/model.py`).

    None for other models, also for models newer than the table: their counts are estimates.
    """
    reference = split_model_name(model)
    if not _OPENAI_SELLERS.issuperset(map(provider_id, reference.prefixes)):
        return None
    if _O200K_NAMES.match(reference.name):
        return O200K
    return CL100K if _CL100K_NAMES.match(reference.name) else None
