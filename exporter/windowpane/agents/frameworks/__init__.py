"""Managed windows inside agent frameworks: each adapter puts a manager in place of the framework's own.

A framework is imported when its adapter is made.
"""
