"""Out to OpenTelemetry: metrics and events pushed as OTLP over HTTP, and the window on the current span."""
