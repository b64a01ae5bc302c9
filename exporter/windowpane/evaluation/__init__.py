"""Evaluation of policies and prompts on recorded sessions."""
