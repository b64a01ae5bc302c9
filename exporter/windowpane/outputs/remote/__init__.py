"""Events between machines: sent from the agent's process, received by `windowpane serve --ingest`."""
