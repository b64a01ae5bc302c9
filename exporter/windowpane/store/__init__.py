"""The event store: append-only, hash-chained, readable by every page."""
