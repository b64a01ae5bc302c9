"""OTLP in: the endpoint that takes traces and logs, the record of their calls, and the import of dumps."""
