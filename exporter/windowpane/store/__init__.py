"""The event store: an append-only, hash-chained record of events, and the rows projected from them.

`tables` declares every table once. `writes` stores events, `projections` folds them into rows, `reads` and
`search` return them, `audit` verifies the chain. A store is in `sqlite` or `postgres`; `clickhouse` has copies.
"""
