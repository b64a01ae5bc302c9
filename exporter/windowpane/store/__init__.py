"""The event store: an append-only, hash-chained SQLite file and the rows projected from its events.

`interface` holds the protocols, `records` the rows, `sqlite` the store itself.
"""
