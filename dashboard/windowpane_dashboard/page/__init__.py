"""The parts that all pages share: address, widgets, store, times, downloads, messages."""
