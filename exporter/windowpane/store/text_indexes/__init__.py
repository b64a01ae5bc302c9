"""The indexes for search, one module per engine."""
