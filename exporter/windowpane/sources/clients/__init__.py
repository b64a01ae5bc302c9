"""The clients of model providers, watched: the only part of the observer that reads a clock or touches a library.

Each provider has a module with one function, `watch_<provider>(client, watched)`, which returns whether *client*
is one of that provider's and is watched from now on. `api.ADAPTERS` lists these functions.
"""
