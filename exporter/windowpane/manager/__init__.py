"""The managed window: drivers with hooks, the engine of a session and its state, plans and their steps."""
