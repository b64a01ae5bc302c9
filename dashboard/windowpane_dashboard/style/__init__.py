"""Colors, icon and style sheet, and text of agents made harmless to display."""
