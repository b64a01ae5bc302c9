"""Judged fidelity: questions whose answers the original gives, asked of what a compression left."""
