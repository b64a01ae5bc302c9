"""A model's name as clients write it, taken apart without losing what tells models apart.

`litellm_proxy/openai/gpt-4o` names the same model as `gpt-4o`, but `acme/gpt-4o` need not: only
prefixes that are known to route to somebody else's model, or to name its vendor, may be looked through.
"""

from __future__ import annotations

from dataclasses import dataclass

ROUTERS = frozenset({"litellm", "litellm_proxy", "models", "text-completion-openai"})
"""Prefixes that say how a call travels, and nothing about the model."""

_ALIASES = {
    "amazon": "aws",
    "azure_ai": "azure",
    "bedrock": "aws",
    "chatgpt": "openai",
    "codex": "openai",
    "copilot": "github-copilot",
    "fireworks_ai": "fireworks",
    "gemini": "google",
    "github": "github-copilot",
    "github_copilot": "github-copilot",
    "google-vertex": "google",
    "moonshot": "moonshotai",
    "openai-codex": "openai",
    "together_ai": "together",
    "vertex": "google",
    "vertex_ai": "google",
    "xai": "x-ai",
}
"""Names clients use for a provider, to the one name the catalog uses."""


@dataclass(frozen=True, slots=True)
class ModelName:
    """A model reference in its parts."""

    prefixes: tuple[str, ...]
    """What stands before the name, outermost first, in lower case, routers left out."""
    name: str
    """The last part, in lower case."""


def provider_id(prefix: str) -> str:
    """The one name of the provider that *prefix* means, or *prefix* itself."""
    return _ALIASES.get(prefix, prefix)


def split_model_name(model: str) -> ModelName:
    """Take *model* apart at its slashes; nothing of the name itself is dropped."""
    *prefixes, name = model.strip().lower().split("/")
    return ModelName(
        prefixes=tuple(prefix for prefix in prefixes if prefix not in ROUTERS),
        name=name,
    )
