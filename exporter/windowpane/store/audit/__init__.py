"""Proof that a store is complete and unaltered."""
