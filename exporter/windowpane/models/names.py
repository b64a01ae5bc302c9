"""Model names in the spelling of clients, split into prefixes and name.

`litellm_proxy/openai/gpt-4o` is the same model as `gpt-4o`, but `acme/gpt-4o` may be another: only prefixes known
to route to a vendor's model, or to name its vendor, are ignored.
"""

from __future__ import annotations

from dataclasses import dataclass

ROUTERS = frozenset({"litellm", "litellm_proxy", "models", "text-completion-openai"})
"""Prefixes that name a route and not a provider."""

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
"""Names that clients use for a provider, to its id in the model catalog."""


@dataclass(frozen=True, slots=True)
class ModelName:
    """A model reference, split into its parts."""

    prefixes: tuple[str, ...]
    """Prefixes before the name, outermost first, in lower case, without routers."""
    name: str
    """The last part, in lower case."""


def provider_id(prefix: str) -> str:
    """Return the catalog's id of the provider that *prefix* names, by default *prefix* itself."""
    return _ALIASES.get(prefix, prefix)


def split_model_name(model: str) -> ModelName:
    """Split *model* at its slashes; the name itself is kept whole."""
    *prefixes, name = model.strip().lower().split("/")
    return ModelName(
        prefixes=tuple(prefix for prefix in prefixes if prefix not in ROUTERS),
        name=name,
    )
