"""The metric catalogue and its two expositions."""
