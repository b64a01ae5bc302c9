"""Watching the clients of OpenAI and Anthropic: `observe(client)` and `session(...)`."""
