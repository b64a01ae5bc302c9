"""The HTTP endpoint of a process, the exporter of a whole store, and the store's maintenance."""
