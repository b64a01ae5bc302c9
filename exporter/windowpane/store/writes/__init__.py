"""Everything that is written to a store: events with their chain, and what readers and retention change."""
