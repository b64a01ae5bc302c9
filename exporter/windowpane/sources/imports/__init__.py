"""Ingest: recordings imported or followed on disk, with their alerts, into a store."""
