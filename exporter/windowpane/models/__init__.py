"""Thin adapters to model clients and frameworks."""
