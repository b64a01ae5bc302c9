"""The shapes in which messages, replies and usage are sent: one reader of each, which every way in uses.

Pure and duck-typed: messages may be dictionaries or objects of the providers' clients, and no client is imported.
"""
