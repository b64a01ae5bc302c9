"""The engine of a store in a PostgreSQL database, version 14 or newer, through psycopg 3."""
