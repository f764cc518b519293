"""Figures of learners of stored examples."""
