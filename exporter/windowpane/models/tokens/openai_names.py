"""Which of OpenAI's encodings a model name means, if any."""

from __future__ import annotations

import re

from windowpane.models.names import provider_id, split_model_name
from windowpane.models.tokens.encodings import CL100K, O200K, EncodingSpec

_SELLERS = frozenset({"openai", "azure", "github-copilot", "openrouter"})
"""Who sells OpenAI's models under their own names. Behind any other prefix the name proves nothing."""

_O200K_NAMES = re.compile(
    r"(?:ft:)?(?:(?:chatgpt-)?gpt-4o|chatgpt-4o|gpt-4\.1|gpt-4\.5|gpt-5|gpt-oss|o1|o3|o4-mini)(?:[-.:@]|$)"
)
_CL100K_NAMES = re.compile(r"(?:ft:)?(?:gpt-4|gpt-3\.5|gpt-35-turbo)(?:[-:@]|$)")


def encoding_of(model: str) -> EncodingSpec | None:
    """The encoding of *model* by tiktoken 0.14's table (`tiktoken/model.py`), or None.

    None also for models newer than the table: their counts are estimates until somebody knows better.
    """
    reference = split_model_name(model)
    if not _SELLERS.issuperset(map(provider_id, reference.prefixes)):
        return None
    if _O200K_NAMES.match(reference.name):
        return O200K
    return CL100K if _CL100K_NAMES.match(reference.name) else None
