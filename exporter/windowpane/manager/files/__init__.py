"""Files of a managed session: archive, checkpoints, notes, and facts about its surroundings."""
