"""OpenTelemetry's traces and logs read as model calls: request bodies to spans, spans to calls. Pure."""
