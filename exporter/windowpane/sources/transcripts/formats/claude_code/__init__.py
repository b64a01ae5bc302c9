"""Claude Code's transcripts: the reader, the content of a row, the order within a session, and compactions."""
