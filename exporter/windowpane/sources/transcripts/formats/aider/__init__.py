"""The recordings of Aider: the history of its chats, and its log of analytics."""
