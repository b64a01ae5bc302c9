"""Managers, options, spans and framework adapters that an agent's own code imports."""
