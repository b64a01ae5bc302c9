"""Everything that is read from a store, apart from searches."""
