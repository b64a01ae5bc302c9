"""Every way out: the process's sinks, the HTTP endpoints, OpenTelemetry, and servers on other machines."""
