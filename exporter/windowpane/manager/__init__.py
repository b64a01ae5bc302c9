"""The context-window manager and its subsystems."""
