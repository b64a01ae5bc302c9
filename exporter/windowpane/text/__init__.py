"""Numbers, names, events and status lines as text: the same in the dashboard, reports, terminal and alerts."""
