"""The observer of agents that manage their windows themselves: it diffs the messages they send into facts."""
