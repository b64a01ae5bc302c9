"""The readers, one module or folder for each format, and what some of them share."""
