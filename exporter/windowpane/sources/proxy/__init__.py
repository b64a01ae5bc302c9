"""A transparent reverse proxy for model providers, which observes the calls that pass through it."""
