"""The recordings of OpenHands: events of its earlier releases (V0) and of its SDK (V1)."""
