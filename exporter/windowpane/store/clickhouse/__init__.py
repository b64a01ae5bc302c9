"""A copy of the store in ClickHouse: its tables, the copier that fills them, and the reads of pages."""
