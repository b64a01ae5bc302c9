"""Alert rules, their engine, and delivery."""
