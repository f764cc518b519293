"""Learners of stored examples: replica theory and learning curves."""
