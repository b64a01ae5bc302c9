"""The sections of the pages."""
