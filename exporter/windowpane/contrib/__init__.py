"""What others contribute: presets in the words and numbers of other systems."""
