"""The window: its blocks, references between them, and the histories that it is made from."""
