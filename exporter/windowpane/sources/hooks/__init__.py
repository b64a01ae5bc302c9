"""The hooks that a coding agent runs at every prompt: standard library only, and without the command line."""
