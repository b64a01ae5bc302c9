"""The rows that pages read, folded from events as they are written."""
