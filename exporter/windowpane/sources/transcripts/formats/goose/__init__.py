"""Sessions of Goose: its database, and the JSON Lines of earlier releases."""
