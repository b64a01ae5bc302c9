"""The configuration: its keys, defaults and bounds, and how files, environment and arguments are combined."""
