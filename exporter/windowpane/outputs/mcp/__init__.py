"""Tools by which an agent asks about its own context window, over the Model Context Protocol."""
