"""Every way in: observed clients, transcripts, telemetry, the proxy and hooks, as facts for a tracker."""
