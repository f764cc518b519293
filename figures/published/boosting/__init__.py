"""Figures of boosting over conjunctions."""
