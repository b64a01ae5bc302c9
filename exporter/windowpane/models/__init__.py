"""Models: window sizes and prices, names, token counts, replies, errors, and adapters to provider clients."""
