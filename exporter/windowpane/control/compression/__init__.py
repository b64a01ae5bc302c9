"""Compression: strategies that replace content by less."""
