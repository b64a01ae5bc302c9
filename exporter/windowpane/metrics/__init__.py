"""The metric catalog and its two expositions."""
