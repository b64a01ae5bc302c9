"""Full-text search, and the indexes of each engine."""
