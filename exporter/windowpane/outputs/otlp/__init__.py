"""OpenTelemetry: metrics and events pushed as OTLP over HTTP, and the window's attributes on the current span."""
