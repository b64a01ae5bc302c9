"""The dashboard's server: its start, its index page, and a copy in the background."""
