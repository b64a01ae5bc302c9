"""Tasks of Cline, and of Roo Code, which was forked from it."""
