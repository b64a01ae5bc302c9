"""The engine of a store in a SQLite file."""
