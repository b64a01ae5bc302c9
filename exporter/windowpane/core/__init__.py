"""The pure core: events, the window, the tracker that derives events from facts. No files, network or clock."""
