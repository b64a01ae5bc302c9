"""Readers of recordings that hold every model call whole: all the messages it sent, and its reply."""
