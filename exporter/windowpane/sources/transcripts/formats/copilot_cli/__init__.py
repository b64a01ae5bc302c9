"""Sessions of GitHub Copilot CLI: the reader, and the state of one session."""
