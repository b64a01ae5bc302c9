"""Sessions of opencode: exported documents, its file storage, and its database."""
