"""Delivery of alerts: messages wait in an outbox, and one thread per channel sends them."""
